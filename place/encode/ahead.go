package encode

import (
	"cmp"
	"math"
	"slices"

	"github.com/cotenant/cotenant/place"
)

// equal is by how much gains differ at most that prices make equal, as on the
// only node with room. The workload that gains most is preferred then, so that
// their numbers don't matter.
const equal = 1e-9

// pathSteps is how far the features look ahead on a node.
const pathSteps = 4

// nearby is how many workloads to come are tried on a node one by one once a
// task is there: where more are to come, those that gain most there now.
const nearby = 7

type pathKey struct {
	c, of place.Config // of: whose near workloads are tried
	room  int32
}

// view is a co-location as the place of what is to come.
type view struct {
	gains []float64 // by workload number; 0 where none is to come
	near  []int32   // the workloads that gain most, in the order of their numbers
}

// path is what a node can still become.
type path struct{ best, mean, worth, free, margin, scarce float64 }

// offer is what the nodes of a state give a task.
type offer struct {
	gain  float64
	nodes int
}

// marginal is the gain at the last place that n tasks of a workload to come
// need, one on each of the nodes that give them most.
func (e *Services) marginal(states []State, w int, n float64) float64 {
	if n <= 0 {
		return e.best[w]
	}
	e.offers = e.offers[:0]
	for _, o := range states {
		if o.Room > 0 {
			e.offers = append(e.offers, offer{e.see(o.Config).gains[w], o.Nodes})
		}
	}
	slices.SortFunc(e.offers, func(a, b offer) int { return cmp.Compare(b.gain, a.gain) })
	for _, o := range e.offers {
		if n -= float64(o.nodes); n <= 0 {
			return o.gain
		}
	}
	if len(e.offers) > 0 {
		return e.offers[len(e.offers)-1].gain
	}
	return e.best[w]
}

// claim finds how much more of each workload the nodes want than is to come.
func (e *Services) claim(states []State, demand []float64) {
	clear(e.scarce)
	for _, o := range states {
		if o.Room > 0 {
			_, wanted := e.follow(o.Config, e.see(o.Config).near, min(pathSteps, o.Room), e.margin)
			for _, u := range wanted {
				e.scarce[u] += float64(o.Nodes)
			}
		}
	}
	for w := range e.scarce {
		e.scarce[w] = math.Log((1 + e.scarce[w]) / (1 + demand[w]))
	}
}

// see is the view of a co-location. near is found with the mean gains of the
// cluster, so not before these are known.
func (e *Services) see(c place.Config) view {
	if v, ok := e.views[c]; ok {
		return v
	}
	v := view{gains: make([]float64, len(e.share))}
	for _, u := range e.kinds {
		v.gains[u] = e.gain(c, int(u))
	}
	v.near = e.kinds
	if len(e.kinds) > nearby {
		v.near = slices.Clone(e.kinds)
		slices.SortStableFunc(v.near, func(a, b int32) int {
			over := func(u int32) float64 { return math.Round((v.gains[u] - e.mean[u]) / equal) }
			return cmp.Or(cmp.Compare(over(b), over(a)), cmp.Compare(v.gains[b], v.gains[a]))
		})
		v.near = v.near[:nearby]
		slices.Sort(v.near)
	}
	e.views[c] = v
	return v
}

// around asks the model at once about one task more of each workload.
func (e *Services) around(c place.Config, workloads []int32) {
	e.fill = e.fill[:0]
	for _, u := range workloads {
		e.fill = append(e.fill, e.values.Next(c, int(u)))
	}
	e.values.Fill(e.fill)
}

// path looks ahead on a node, a task at a time: of the demand to come that is
// near to a co-location, the one that gains most over its price joins next.
func (e *Services) path(c, of place.Config, room int) path {
	steps := max(0, min(pathSteps, room))
	key := pathKey{c, of, int32(steps)}
	if p, ok := e.paths[key]; ok {
		return p
	}
	near := e.see(of).near
	var p path
	p.best, _ = e.follow(c, near, steps, e.best)
	p.mean, _ = e.follow(c, near, steps, e.mean)
	p.worth, _ = e.follow(c, near, steps, e.worth)
	p.free, _ = e.follow(c, near, min(2, steps), nil)
	margin, wanted := e.follow(c, near, steps, e.margin)
	p.margin = margin
	for _, u := range wanted {
		p.scarce += e.scarce[u] / float64(len(wanted))
	}
	e.paths[key] = p
	return p
}

// follow is the most that the next steps gain in sum, and the workloads that
// join up to there, which are shared, until the next call.
func (e *Services) follow(c place.Config, near []int32, steps int, price []float64) (top float64, joined []int32) {
	sum := 0.0
	e.joined = e.joined[:0]
	for range steps {
		at, most, gain := -1, math.Inf(-1), 0.0
		e.around(c, near)
		for _, u := range near {
			g := e.gain(c, int(u))
			over := g
			if price != nil {
				over -= price[u]
			}
			if over > most+equal || over > most-equal && g > gain {
				at, most, gain = int(u), over, g
			}
		}
		if at < 0 {
			break
		}
		sum += most
		e.joined = append(e.joined, int32(at))
		if sum > top {
			top, joined = sum, e.joined
		}
		c = e.values.Next(c, at)
	}
	return top, joined
}
