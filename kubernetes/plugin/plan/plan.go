package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
)

// Policies are what decides.
type Policies struct {
	Model interference.Model
	// Services places the groups of services, and gangs where Jobs is nil.
	Services place.Policy
	// Jobs places gangs of workers; nil leaves them to Services.
	Jobs place.Policy
	// Unsure is the standard deviation of a predicted performance from which the
	// model is not trusted; 0 trusts it always.
	Unsure float64
}

// Pod is one pod that waits.
type Pod struct {
	Task cluster.Task
	// Allowed are the nodes that the scheduler's filters admit it to, by index in
	// Spec.Nodes; nil is all.
	Allowed *Allowed
	// OnePerNode keeps pods of its workload off each other's nodes.
	OnePerNode bool
	// Spread is the most skew of its workload over the domains of a topology key.
	Spread map[string]int
}

// Group is pods that are placed in one decision.
type Group struct {
	Name     string
	Gang     bool
	Pods     []Pod
	Arrival  time.Duration
	Priority int32
}

// Problem is what is to be decided.
type Problem struct {
	Spec      cluster.Spec
	Groups    []Group // in the order in which they come
	Objective place.Objective
	Now       time.Duration
	Seed      uint64
	// Stop, where not nil, is asked by policies that search.
	Stop func() bool
}

// Plan is what was decided: each pod is in one of Node, Held and Fallback.
type Plan struct {
	Node map[cluster.TaskID]string
	// Held are the pods for which there was no place, or none good enough, and why.
	Held map[cluster.TaskID]string
	// Fallback are the pods that are left to the scheduler's own scores.
	Fallback map[cluster.TaskID]Reason
	// Performance is what the model believes of the pods that were placed.
	Performance map[cluster.TaskID]float64
	// On are the tasks on each node of the plan: what ran there and what is to come.
	On map[string]map[cluster.TaskID]bool
}

// Make plans. Where a policy or the model panics, pods are left to the scheduler.
func Make(by Policies, p Problem) (out *Plan) {
	out = newPlan()
	defer func() {
		if r := recover(); r != nil {
			out = newPlan()
			for _, g := range p.Groups {
				for _, pod := range g.Pods {
					out.Fallback[pod.Task.ID] = Reason{PolicyPanicked, fmt.Sprintf("%v: %v", errPanic, r)}
				}
			}
		}
	}()
	for _, r := range p.Spec.Running {
		out.put(r.ID, r.Node)
	}
	spec := p.Spec
	for _, part := range split(by, p.Groups) {
		for again := true; again; again = part.widen(out.Held) {
			spec.Running = slices.Concat(spec.Running, out.round(by, part, p, spec))
		}
	}
	out.doubt(by, spec)
	out.whole(p.Groups)
	return out
}

func newPlan() *Plan {
	return &Plan{
		Node: map[cluster.TaskID]string{}, Held: map[cluster.TaskID]string{}, Fallback: map[cluster.TaskID]Reason{},
		Performance: map[cluster.TaskID]float64{}, On: map[string]map[cluster.TaskID]bool{},
	}
}

// whole leaves a gang to the scheduler's scores where one of its pods is.
func (out *Plan) whole(groups []Group) {
	for _, g := range groups {
		if !g.Gang {
			continue
		}
		for _, pod := range g.Pods {
			why, ok := out.Fallback[pod.Task.ID]
			if !ok {
				continue
			}
			for _, other := range g.Pods {
				out.fall(other.Task.ID, why)
			}
			break
		}
	}
}

func (out *Plan) put(id cluster.TaskID, node string) {
	if out.On[node] == nil {
		out.On[node] = map[cluster.TaskID]bool{}
	}
	out.On[node][id] = true
}

// round is one call of a policy. It returns what it placed, as running tasks.
func (out *Plan) round(by Policies, part part, p Problem, spec cluster.Spec) []cluster.Running {
	spec.Nodes, spec.Constraints = part.rules(spec.Nodes)
	req := place.Request{
		Now: p.Now, Objective: p.Objective, Stop: p.Stop,
		Rand: rand.New(rand.NewPCG(p.Seed, uint64(len(out.Node)))),
	}
	byID := map[cluster.TaskID]cluster.Running{}
	for _, g := range part.groups {
		group := cluster.Group{Name: g.Name, Gang: g.Gang, Arrival: g.Arrival, Priority: int(g.Priority)}
		for _, pod := range g.Pods {
			group.Tasks = append(group.Tasks, pod.Task)
			byID[pod.Task.ID] = cluster.Running{Task: pod.Task, Group: g.Name}
			delete(out.Held, pod.Task.ID)
		}
		req.Pending = append(req.Pending, group)
	}
	d, why := decide(part.policy(by), &req, spec, by.Model)
	if why.Code != "" {
		why.Words = part.plainly(why.Words, spec)
		for id := range byID {
			out.Fallback[id] = why
		}
		return nil
	}
	said := map[string]string{} // many are held for the same
	for _, h := range d.Hold {
		if _, ok := said[h.Why]; !ok {
			said[h.Why] = part.plainly(h.Why, spec)
		}
		out.Held[h.Task] = said[h.Why]
	}
	var placed []cluster.Running
	for _, b := range d.Bind {
		r := byID[b.Task]
		r.Node = b.Node
		placed = append(placed, r)
		out.Node[b.Task] = b.Node
		out.put(b.Task, b.Node)
	}
	return placed
}

// decide asks the policy and checks what it says.
func decide(policy place.Policy, req *place.Request, spec cluster.Spec, m interference.Model) (place.Decision, Reason) {
	var err error
	if req.View, err = cluster.NewSnapshot(spec); err != nil {
		return place.Decision{}, Reason{BadView, err.Error()}
	}
	d, err := ask(policy, *req)
	switch {
	case err != nil:
		return d, Reason{codeOf(err), err.Error()}
	case req.Stopped() && len(d.Bind)+len(d.Hold) == 0:
		return d, Reason{PolicyLate, "the policy decided nothing within its time budget"}
	}
	d.Move, d.Resize = nil, nil // running pods are not moved
	if _, err := place.Evaluate(*req, d, m); err != nil {
		return d, Reason{BadDecision, err.Error()}
	}
	return d, Reason{}
}

// ask turns a panic of the policy into an error.
func ask(policy place.Policy, req place.Request) (d place.Decision, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errPanic, r)
		}
	}()
	return policy.Place(req)
}

// doubt asks the model about what came out: tasks of which it is not sure
// enough are left to the scheduler.
func (out *Plan) doubt(by Policies, spec cluster.Spec) {
	on := map[string]cluster.Colocation{}
	for _, r := range spec.Running {
		if on[r.Node] == nil {
			on[r.Node] = cluster.Colocation{}
		}
		on[r.Node][r.Workload]++
	}
	classes := map[string][]string{}
	for i := range spec.Nodes {
		if n := &spec.Nodes[i]; on[n.Name] != nil {
			classes[n.Class] = append(classes[n.Class], n.Name)
		}
	}
	said := map[string]map[string]interference.Estimate{}
	for class, names := range classes {
		cs := make([]cluster.Colocation, len(names))
		for i, name := range names {
			cs[i] = on[name]
		}
		for i, row := range by.Model.Predict(place.ModelClass(by.Model, class), history.Rate, cs) {
			said[names[i]] = map[string]interference.Estimate{}
			for j, w := range cs[i].Workloads() {
				said[names[i]][w] = row[j]
			}
		}
	}
	for _, r := range spec.Running {
		node, planned := out.Node[r.ID]
		if !planned {
			continue
		}
		e := said[node][r.Workload]
		switch {
		case !e.Known:
			out.fall(r.ID, Reason{ModelUnsure, fmt.Sprintf("nothing is known of %s beside its neighbours on %s: %s; measure it, or give a model that predicts it", r.Workload, node, on[node].Key())})
		case by.Unsure > 0 && e.Std > by.Unsure:
			out.fall(r.ID, Reason{ModelUnsure, fmt.Sprintf("the model expects %s beside its neighbours on %s at %.2f +- %.2f; it is trusted up to +- %.2f", r.Workload, node, e.Value, e.Std, by.Unsure)})
		default:
			out.Performance[r.ID] = e.Value
		}
	}
}

func (out *Plan) fall(id cluster.TaskID, why Reason) {
	if node, ok := out.Node[id]; ok {
		delete(out.On[node], id)
		delete(out.Node, id)
	}
	delete(out.Held, id)
	delete(out.Performance, id)
	out.Fallback[id] = why
}

// Stale says in words why the plan for a node no longer stands on what it was
// made of: a task is there that was neither there nor planned. "" where it
// does. Tasks that left make room and harm nobody.
func (out *Plan) Stale(node string, now []cluster.TaskID) string {
	on := out.On[node]
	for _, id := range now {
		if !on[id] {
			return fmt.Sprintf("task %s came to %s since", id, node)
		}
	}
	return ""
}
