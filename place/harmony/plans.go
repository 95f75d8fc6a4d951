package harmony

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/cotenant/cotenant/place/encode"
	"github.com/cotenant/cotenant/place/jobs"
)

// planner lists whole plans for gangs of several tasks: by gain over all
// sites, least loaded first, fullest first, on as few nodes as will do, and on
// each single node that holds the gang, the best few of them.
type planner struct {
	board *jobs.Board
	nodes [][]int32 // sites of devices by node
	why   jobs.Refusal
	words string // of why, where the board explains
	sites []int32
	found []int32
	begun []int32 // what is found for the first task
	order []int
	room  []int // free device slots by node
	start []int // by number of slots, where its nodes go in order
}

// maxSingle bounds the plans on a single node that are listed, maxJudged the
// nodes that are tried for them, those with the most room first, and maxAlike
// those of them with the same tenants and room.
const (
	maxSingle = 8
	maxJudged = 24
	maxAlike  = 2
)

func (p *planner) begin(b *jobs.Board) {
	p.board = b
	p.nodes = p.nodes[:0]
	for s := range b.Sites() {
		node, _ := b.Site(s)
		for len(p.nodes) <= node {
			p.nodes = append(p.nodes, nil)
		}
		p.nodes[node] = append(p.nodes[node], int32(s))
	}
}

// rule rates a site for a task that fits there; the highest is taken, the
// first of equals. Sites of a lower tier are not rated: where a rule has tiers,
// no gain makes up for one.
type rule struct {
	tier func(s int) float64 // nil for one tier
	rate func(t, s int) float64
}

// list appends the plans for a gang to ways.
func (p *planner) list(g int, ways []encode.Option) []encode.Option {
	b := p.board
	first := len(ways)
	p.sites = p.sites[:0]
	p.why = jobs.Fits
	load := func(s int) float64 {
		free, all := b.Slots(s)
		return float64(all-free)/float64(max(1, all)) + 1e-3*float64(len(b.Tenants(s)))
	}
	at := func(s int) int { node, _ := b.Site(s); return node }
	packed := func(s int) float64 {
		for _, o := range b.Tasks(g) {
			if x := b.At(int(o)); x >= 0 && at(x) == at(s) {
				return 1e6
			}
		}
		return 10 * float64(b.Room(at(s)))
	}
	p.begun = p.begun[:0]
	for _, r := range []rule{
		{rate: b.Gain},
		{rate: func(_, s int) float64 { return -load(s) }},
		{rate: func(_, s int) float64 { return load(s) }},
		{tier: packed, rate: func(t, s int) float64 { return packed(s) + b.Gain(t, s) }},
	} {
		ways = p.plan(g, ways, first, r)
		if p.why != jobs.Fits {
			return ways // what one rule cannot place none can, but for corner cases of resources
		}
	}
	return p.single(g, ways, first)
}

// plan appends the plan of a rule unless it is there already.
func (p *planner) plan(g int, ways []encode.Option, first int, r rule) []encode.Option {
	b := p.board
	mark, from := b.Mark(), len(p.sites)
	for i, t := range b.Tasks(g) {
		sites := p.begun // all rules begin on the same board
		if i > 0 || len(sites) == 0 {
			list, why := b.AnyOrder(int(t))
			if len(list) == 0 {
				p.why = why
				if b.Explain {
					p.words = b.Words(g, why)
				}
				b.Undo(mark)
				p.sites = p.sites[:from]
				return ways
			}
			p.found = p.found[:0]
			for _, c := range list {
				p.found = append(p.found, c.Site)
			}
			if i == 0 {
				p.begun = append(p.begun, p.found...)
			}
			sites = p.found
		}
		p.take(int(t), sites, r)
	}
	b.Undo(mark)
	return p.keep(ways, first, from)
}

// take puts a task on the best of some sites, and says how the rule rates it.
func (p *planner) take(t int, sites []int32, r rule) (top float64) {
	best, tier := int32(-1), math.Inf(-1)
	top = math.Inf(-1)
	for _, s := range sites {
		if r.tier != nil {
			of := r.tier(int(s))
			if of < tier {
				continue
			}
			if of > tier {
				best, tier, top = -1, of, math.Inf(-1)
			}
		}
		if v := r.rate(t, int(s)); best < 0 || v > top || v == top && s < best {
			best, top = s, v
		}
	}
	p.board.Put(t, int(best))
	p.sites = append(p.sites, best)
	return top
}

func (p *planner) keep(ways []encode.Option, first, from int) []encode.Option {
	sites := p.sites[from:len(p.sites):len(p.sites)]
	for i := range ways[first:] {
		if slices.Equal(ways[first+i].Sites, sites) {
			p.sites = p.sites[:from]
			ways[first+i].Alike++
			return ways
		}
	}
	return append(ways, encode.Option{Sites: sites, Alike: 1})
}

// judged lists the nodes on which a gang is tried whole: all of them, or those
// that look best where there are many.
func (p *planner) judged(g int) []int {
	b := p.board
	p.order = p.order[:0]
	if len(p.nodes) <= maxJudged {
		for node := range p.nodes {
			p.order = append(p.order, node)
		}
		return p.order
	}
	wants := 0
	for _, t := range b.Tasks(g) {
		wants += b.Wants(int(t))
	}
	p.byRoom(wants)
	alike := map[string]int{}
	var key []byte
	kept := p.order[:0]
	for _, node := range p.order {
		key = key[:0]
		for _, s := range p.nodes[node] {
			free, _ := b.Slots(int(s))
			key = binary.AppendVarint(binary.AppendVarint(key, int64(b.Config(int(s)))), int64(free))
		}
		for _, left := range b.Free(node) {
			key = binary.AppendVarint(key, left)
		}
		if alike[string(key)]++; alike[string(key)] <= maxAlike {
			kept = append(kept, node)
		}
		if len(kept) == maxJudged {
			break
		}
	}
	return kept
}

// byRoom fills order with the nodes that have at least so many free device
// slots, those with the most first, then in their order. Few numbers of slots
// occur, so the nodes are counted, not compared.
func (p *planner) byRoom(least int) {
	b := p.board
	p.room, p.start = p.room[:0], p.start[:0]
	for node := range p.nodes {
		room := b.Room(node)
		p.room = append(p.room, room)
		for len(p.start) <= room {
			p.start = append(p.start, 0)
		}
		p.start[room]++
	}
	n := 0
	for room := len(p.start) - 1; room >= max(0, least); room-- {
		p.start[room], n = n, n+p.start[room]
	}
	p.order = slices.Grow(p.order, n)[:n]
	for node, room := range p.room {
		if room >= least {
			p.order[p.start[room]] = node
			p.start[room]++
		}
	}
}

// single appends the plans that keep a gang on one node, the best few by gain.
func (p *planner) single(g int, ways []encode.Option, first int) []encode.Option {
	b := p.board
	type plan struct {
		sites []int32
		gain  float64
	}
	var plans []plan
	tasks := b.Tasks(g)
	for _, node := range p.judged(g) {
		mark, from := b.Mark(), len(p.sites)
		total, whole := 0.0, true
		for _, t := range tasks {
			lo, hi := b.Range(int(t))
			p.found = p.found[:0]
			for _, s := range p.nodes[node] {
				if int(s) >= lo && int(s) < hi && b.Fit(int(t), int(s)) == jobs.Fits {
					p.found = append(p.found, s)
				}
			}
			if len(p.found) == 0 {
				whole = false
				break
			}
			total += p.take(int(t), p.found, rule{rate: b.Gain})
		}
		b.Undo(mark)
		if !whole {
			p.sites = p.sites[:from]
			continue
		}
		plans = append(plans, plan{p.sites[from:len(p.sites):len(p.sites)], total})
	}
	slices.SortStableFunc(plans, func(x, y plan) int { return cmp.Compare(y.gain, x.gain) })
	for _, q := range plans[:min(maxSingle, len(plans))] {
		known := false
		for i := range ways[first:] {
			known = known || slices.Equal(ways[first+i].Sites, q.sites)
		}
		if !known {
			ways = append(ways, encode.Option{Sites: q.sites, Alike: 1})
		}
	}
	return ways
}
