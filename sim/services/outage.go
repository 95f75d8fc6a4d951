package services

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cotenant/cotenant/cluster"
)

// outage is a node that fails or comes back.
type outage struct {
	at   time.Duration
	node int32
	fail bool
}

// drawOutages draws all failures up to the horizon. Each node has a stream of
// its own.
func drawOutages(c *Config) []outage {
	if c.MTBF == 0 {
		return nil
	}
	var out []outage
	for n := range c.Cluster.Nodes {
		rng := rand.New(rand.NewPCG(c.Seed, uint64(n)<<8|streamNodes))
		at := 0.0
		for {
			at += max(1, rng.ExpFloat64()*float64(c.MTBF))
			if at >= float64(c.Horizon) {
				break
			}
			fails := time.Duration(at)
			out = append(out, outage{fails, int32(n), true})
			at += max(1, float64(c.Repair))
			if at >= float64(c.Horizon) {
				break
			}
			out = append(out, outage{time.Duration(at), int32(n), false})
		}
	}
	slices.SortStableFunc(out, func(a, b outage) int { return cmp.Compare(a.at, b.at) })
	return out
}

// outage fails a node, whose tasks wait again, or brings it back, empty.
func (r *run) outage(o outage) error {
	r.out.Events++
	r.changed = true
	r.down[o.node] = o.fail
	if o.fail {
		r.out.Failures++
		for len(r.on[o.node]) > 0 {
			t := r.on[o.node][0]
			r.lift(t)
			r.queue(t)
			r.out.Displaced++
		}
	}
	if err := r.settle(); err != nil {
		return err
	}
	r.nodes = slices.Clone(r.nodes)
	r.nodes[o.node].Unschedulable = o.fail || r.Cluster.Nodes[o.node].Unschedulable
	s, err := cluster.NewSnapshot(cluster.Spec{
		Nodes: r.nodes, Workloads: r.view.Workloads(), Running: r.view.Running(), Constraints: r.Cluster.Constraints,
	})
	if err != nil {
		return err
	}
	r.view, r.chain = s, cluster.NewBriefChain(s)
	return nil
}
