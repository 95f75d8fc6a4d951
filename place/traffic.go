package place

import (
	"math"
	"slices"

	"github.com/cotenant/cotenant/cluster"
)

// traffic is what the edges between workloads make of an objective's weight on
// traffic. A task of a workload with edges exchanges its traffic with the tasks
// of each edge's workload evenly, as behind a load balancer, and an edge takes
// its weight's part of all the edges' weights, those included that lead to
// workloads without tasks. Of that a task's near share is what it exchanges
// with tasks on its own node, and half of what it exchanges with others in its
// rack. An edge to the task's own workload leads to the other tasks of it. An
// edge counts at the end that has it, for the tasks of that workload; for both
// ends to count, both have one.
type traffic struct {
	ends [][]end // by workload number
	// most is, by workload number, what a task is worth whose partners are all on
	// its node; 0 where none has a task.
	most []float64
	unit float64 // what a near share of 1 is worth
}

// end is one end of an edge: each is what one task of workload to is worth on
// the node of the task that has the edge.
type end struct {
	to   int
	each float64
}

// newTraffic is the traffic between tasks of the given total numbers, by
// workload number; nil where the weight is 0 or no edge leads to a task.
func newTraffic(declared []cluster.Workload, workloads []string, total []int, weight float64) *traffic {
	if weight == 0 {
		return nil
	}
	tasks := 0
	for _, n := range total {
		tasks += n
	}
	t := &traffic{
		ends: make([][]end, len(workloads)), most: make([]float64, len(workloads)), unit: weight / float64(max(1, tasks)),
	}
	some := false
	for _, d := range declared {
		w := slices.Index(workloads, d.Name)
		if w < 0 || total[w] == 0 {
			continue
		}
		sum := 0.0
		for _, e := range d.Edges {
			sum += e.Amount()
		}
		for _, e := range d.Edges {
			to := slices.Index(workloads, e.To)
			if to < 0 {
				continue
			}
			partners := e.Partners(d.Name, total[to])
			if partners == 0 {
				continue
			}
			some = true
			part := t.unit * (e.Amount() / sum)
			t.most[w] += part
			t.ends[w] = append(t.ends[w], end{to, part / float64(partners)})
		}
	}
	if !some {
		return nil
	}
	return t
}

// beside is what so many tasks of each workload on one node are worth to each
// other.
func beside[N uint16 | int](t *traffic, counts []N) float64 {
	sum := 0.0
	for w, n := range counts {
		if n == 0 {
			continue
		}
		for _, e := range t.ends[w] {
			partners := counts[e.to]
			if e.to == w {
				partners--
			}
			sum += float64(n) * float64(partners) * e.each
		}
	}
	return sum
}

// racks are the racks of a cluster that hold more than one node each: in
// others the rack is the node.
type racks struct {
	of     []int32 // by node; -1 where its rack does not count
	counts [][]int // by rack and workload number: the tasks there
}

// newRacks sorts nodes by their label cluster.RackKey; nil where no rack has
// two.
func newRacks(p *cluster.Placement) *racks {
	nodes := p.Snapshot().Nodes()
	size := map[string]int{}
	for n := range nodes {
		if name := nodes[n].Labels[cluster.RackKey]; name != "" {
			size[name]++
		}
	}
	r := &racks{of: make([]int32, len(nodes))}
	number := map[string]int32{}
	for n := range nodes {
		r.of[n] = -1
		name := nodes[n].Labels[cluster.RackKey]
		if size[name] < 2 {
			continue
		}
		at, met := number[name]
		if !met {
			at = int32(len(r.counts))
			number[name] = at
			r.counts = append(r.counts, make([]int, len(p.Workloads())))
		}
		r.of[n] = at
		for w, k := range p.Counts(n) {
			r.counts[at][w] += k
		}
	}
	if len(r.counts) == 0 {
		return nil
	}
	return r
}

func (r *racks) clone() *racks {
	if r == nil {
		return nil
	}
	c := &racks{of: r.of, counts: make([][]int, len(r.counts))}
	for i := range c.counts {
		c.counts[i] = slices.Clone(r.counts[i])
	}
	return c
}

func (r *racks) move(w, node, by int) {
	if r == nil {
		return
	}
	if at := r.of[node]; at >= 0 {
		r.counts[at][w] += by
	}
}

// Traffic is the part of a config's Sum that comes of tasks being on one node
// with those they exchange traffic with.
func (v *Values) Traffic(c Config) float64 {
	if v.traffic == nil {
		return 0
	}
	return beside(v.traffic, v.configs[c].counts)
}

// Racked reports whether the value of the trial depends on which rack tasks
// are in: the objective counts traffic, some of the workloads exchange it, and
// some rack has two nodes. If so, Value is not the sum over nodes alone.
func (t *Trial) Racked() bool { return t.racks != nil }

// Rack numbers the rack of a node from 0; -1 where it does not count.
func (t *Trial) Rack(node int) int {
	if t.racks == nil {
		return -1
	}
	return int(t.racks.of[node])
}

// Own is what a config adds to the value on a node by itself: its Sum, and in a
// rack without the half of its traffic that the rack counts (see InRack). The
// value of the trial is the sum of Own over nodes and of InRack over racks,
// with the part of Worst.
func (t *Trial) Own(c Config, node int) float64 { return t.own(t.Values.Value(c).Sum, c, node) }

// own is Own of a config whose Sum is known.
func (t *Trial) own(sum float64, c Config, node int) float64 {
	if t.Rack(node) < 0 || math.IsInf(sum, -1) {
		return sum
	}
	return sum - t.Values.Traffic(c)/2
}

// Utmost is what a config adds to the value on a node at most, wherever all
// other tasks are: its traffic with those on other nodes counts as in the rack.
func (t *Trial) Utmost(c Config, node int) float64 {
	own := t.Own(c, node)
	if t.Rack(node) < 0 {
		return own
	}
	for w, n := range t.Values.Counts(c) {
		own += float64(n) * t.Values.traffic.most[w] / 2
	}
	return own
}

// InRack is what a rack adds to the value when it has by[w] tasks of each
// workload number w more than now; nil is as it is.
func (t *Trial) InRack(rack int, by []int) float64 {
	counts := t.racks.counts[rack]
	if by != nil {
		t.scratch = append(t.scratch[:0], counts...)
		for w, n := range by {
			t.scratch[w] += n
		}
		counts = t.scratch
	}
	return beside(t.Values.traffic, counts) / 2
}

// across is by how much the value rises through the rack if one more task of
// workload w is put on a node, beyond what the node's Sum counts.
func (t *Trial) across(w, node int) float64 {
	rack := t.Rack(node)
	if rack < 0 {
		return 0
	}
	one := func(counts func(int) int) float64 {
		sum := 0.0
		for _, e := range t.Values.traffic.ends[w] {
			sum += float64(counts(e.to)) * e.each
		}
		for from, ends := range t.Values.traffic.ends {
			for _, e := range ends {
				if e.to == w {
					sum += float64(counts(from)) * e.each
				}
			}
		}
		return sum
	}
	inRack, here := t.racks.counts[rack], t.Counts(node)
	return (one(func(w int) int { return inRack[w] }) - one(func(w int) int { return here[w] })) / 2
}

// near is that of NearShare, of the request's tasks.
func (t *Trial) near() float64 {
	if t.Values.traffic == nil {
		return math.NaN()
	}
	return t.Values.traffic.near(t.Placement, t.racks)
}

// NearShare is the mean near share (see Objective) of the tasks in a placement
// whose workload has an edge to one with tasks there; NaN where there is no
// such task.
func NearShare(p *cluster.Placement) float64 {
	total := make([]int, len(p.Workloads()))
	for n := range p.Snapshot().Nodes() {
		for w, k := range p.Counts(n) {
			total[w] += k
		}
	}
	t := newTraffic(p.Snapshot().Workloads(), p.Workloads(), total, 1)
	if t == nil {
		return math.NaN()
	}
	return t.near(p, newRacks(p))
}

func (t *traffic) near(p *cluster.Placement, r *racks) float64 {
	sum, tasks := 0.0, 0
	for n := range p.Snapshot().Nodes() {
		counts := p.Counts(n)
		here := beside(t, counts)
		if r != nil && r.of[n] >= 0 {
			here /= 2
		}
		sum += here
		for w, k := range counts {
			if t.most[w] > 0 {
				tasks += k
			}
		}
	}
	if r != nil {
		for _, counts := range r.counts {
			sum += beside(t, counts) / 2
		}
	}
	if tasks == 0 {
		return math.NaN()
	}
	return sum / t.unit / float64(tasks)
}
