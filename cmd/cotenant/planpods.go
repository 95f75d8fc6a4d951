package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
)

// recommended is the policy of a plan for pods that wait, where none is named: that
// of cotenant-scheduler. rival is what it is held against, which places as the
// stock scheduler scores.
const (
	recommended = metisName
	rival       = "spread"
)

// mostShown bounds the pods in the table; the other forms have all.
const mostShown = 60

// podPlan is where a pod that waits goes, or why it still waits.
type podPlan struct {
	Pod      string `json:"pod"`
	Workload string `json:"workload"`
	Node     string `json:"node,omitempty"`
	// Performance is what the judge expects of it there, beside Neighbours.
	Performance *number            `json:"performance,omitempty"`
	Neighbours  cluster.Colocation `json:"neighbours,omitempty"`
	Why         string             `json:"why,omitempty"` // it waits
}

// podsOf lists the pods of a plan in the order in which they came, and then those
// of workloads that nobody knows.
func (p *planInput) podsOf(r *plan) []podPlan {
	judge, _ := p.source.judge()
	node, held := map[cluster.TaskID]string{}, map[cluster.TaskID]string{}
	for _, b := range r.decision.Bind {
		node[b.Task] = b.Node
	}
	for _, h := range r.decision.Hold {
		held[h.Task] = h.Why
	}
	on := map[string]cluster.Colocation{}
	for _, n := range r.Placement {
		on[n.Node] = n.Colocation
	}
	pods := []podPlan{}
	for _, t := range r.request.Tasks() {
		x := podPlan{Pod: string(t.ID), Workload: t.Workload, Node: node[t.ID], Why: held[t.ID]}
		if x.Node != "" {
			i, _ := p.snapshot.NodeIndex(x.Node)
			v := number(math.NaN())
			if e := estimates(judge, p.snapshot.Nodes()[i].Class, on[x.Node])[t.Workload]; e.Known {
				v = number(e.Value)
			}
			x.Performance, x.Neighbours = &v, beside(on[x.Node], t.Workload)
		}
		pods = append(pods, x)
	}
	for _, t := range p.left {
		pods = append(pods, podPlan{Pod: string(t.ID), Workload: t.Workload, Why: "nobody measured " + t.Workload + "; measure it, or name another with the label cotenant.dev/workload"})
	}
	return pods
}

func thatWait(n int) string {
	if n == 1 {
		return "1 pod that waits"
	}
	return count(n, "pod") + " that wait"
}

// beside is a co-location without one task of the workload.
func beside(c cluster.Colocation, workload string) cluster.Colocation {
	out := maps.Clone(c)
	if out[workload]--; out[workload] == 0 {
		delete(out, workload)
	}
	return out
}

// estimates are what a model says of each workload of a co-location.
func estimates(m interference.Model, class string, c cluster.Colocation) map[string]interference.Estimate {
	out := map[string]interference.Estimate{}
	row := m.Predict(place.ModelClass(m, class), history.Rate, []cluster.Colocation{c})[0]
	for i, w := range c.Workloads() {
		out[w] = row[i]
	}
	return out
}

// againstRival holds the plan of one policy against the rival's, and against what
// runs as it is.
func (p *planInput) againstRival(ctx context.Context, f *planFlags, r *plan, limit limitOf) error {
	now, with := p.runs(r)
	r.RunningNow, r.RunningPlanned = &now, &with
	if r.Policy == rival {
		return nil
	}
	specs, err := parsePolicies([]string{rival})
	if err != nil {
		return err
	}
	policy, closePolicy, err := openPolicy(ctx, specs[0], policyOptions{model: p.source.belief})
	if err != nil {
		return err
	}
	defer closePolicy()
	other, err := p.plan(ctx, f, opened{rival, policy, closePolicy}, p.request(p.batch.groups(f.order, r.Seed), r.Seed), limit)
	if err != nil {
		return fmt.Errorf("%s: %w", rival, err)
	}
	other.Seed, r.rival = r.Seed, &other
	v := other.ValuePredicted
	if p.source.truth != nil {
		v = other.ValueTrue
	}
	r.ValueRival = &v
	return nil
}

// runs is the mean performance of the tasks that run, now and with the plan; NaN
// where none does or the judge is silent about one.
func (p *planInput) runs(r *plan) (now, with number) {
	judge, _ := p.source.judge()
	before, after := map[string]cluster.Colocation{}, map[string]cluster.Colocation{}
	for _, t := range p.snapshot.Running() {
		if before[t.Node] == nil {
			before[t.Node] = cluster.Colocation{}
		}
		before[t.Node][t.Workload]++
	}
	for _, n := range r.Placement {
		after[n.Node] = n.Colocation
	}
	mean := func(on map[string]cluster.Colocation) number {
		sum, n := 0.0, 0
		for node, run := range before {
			i, _ := p.snapshot.NodeIndex(node)
			for w, e := range estimates(judge, p.snapshot.Nodes()[i].Class, on[node]) {
				if !e.Known && run[w] > 0 {
					return number(math.NaN())
				}
				sum += float64(run[w]) * e.Value
				n += run[w]
			}
		}
		return number(sum / float64(n))
	}
	return mean(before), mean(after)
}

// writePods prints where the pods that wait would go, and what that is worth.
func (p *planInput) writePods(w io.Writer, r *plan, explain bool) error {
	placed := 0
	for _, x := range r.Pods {
		if x.Node != "" {
			placed++
		}
	}
	who := r.Policy
	if p.recommended {
		who += ", as cotenant-scheduler does,"
	}
	fmt.Fprintf(w, "%s has a node for %d of %s\n", who, placed, thatWait(len(r.Pods)))
	var rows [][]string
	pods := slices.Clone(r.Pods)
	// Those without a node first: they are what somebody has to look at.
	slices.SortStableFunc(pods, func(a, b podPlan) int { return min(len(a.Node), 1) - min(len(b.Node), 1) })
	for _, x := range pods[:min(len(pods), mostShown)] {
		if x.Node == "" {
			rows = append(rows, []string{x.Pod, x.Workload, "none", "-", "waits: " + x.Why})
			continue
		}
		rows = append(rows, []string{x.Pod, x.Workload, x.Node, x.Performance.text(3), "beside " + orNone(x.Neighbours.Key())})
	}
	if err := writeTable(w, []string{"pod", "workload", "node", " performance", "why"}, rows); err != nil {
		return err
	}
	if more := len(pods) - len(rows); more > 0 {
		fmt.Fprintf(w, "%s not shown; -o json has all\n", count(more, "pod"))
	}
	fmt.Fprintln(w)
	if len(r.Held) > 0 {
		fmt.Fprintln(w, "pods without a node count as 0 in the values; those of workloads that nobody measured do not count")
	}
	plans := []plan{*r}
	if r.rival != nil {
		plans = append(plans, *r.rival)
	}
	if err := p.writeTables(w, plans, false); err != nil {
		return err
	}
	if n := len(p.snapshot.Running()); n > 0 && r.RunningNow != nil {
		say := func(v *number) string {
			if !v.known() {
				return "not known"
			}
			return v.text(4)
		}
		fmt.Fprintf(w, "what runs (%s): mean performance %s now, %s with the plan\n", count(n, "pod"), say(r.RunningNow), say(r.RunningPlanned))
	}
	if explain {
		p.writeReasons(w, r)
	}
	return nil
}
