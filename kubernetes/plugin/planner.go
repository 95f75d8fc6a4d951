package plugin

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/kubernetes/plugin/brain"
	"github.com/cotenant/cotenant/kubernetes/plugin/plan"
	"github.com/cotenant/cotenant/kubernetes/plugin/pods"
)

// policies are made for one version of the files, and remember co-locations
// from plan to plan.
type policies struct {
	state *brain.State
	plan.Policies
}

// policiesOf makes the policies anew where the files changed, or where an
// earlier plan still runs with the old ones.
func (c *core) policiesOf(s *brain.State) (*policies, error) {
	if c.policies != nil && c.policies.state == s {
		return c.policies, nil
	}
	services, err := s.Services()
	if err != nil {
		return nil, err
	}
	jobs, err := s.Jobs(context.Background())
	if err != nil {
		return nil, err
	}
	c.policies = &policies{
		state:    s,
		Policies: plan.Policies{Model: s.Model, Services: services, Jobs: jobs, Unsure: *c.args.Unsure},
	}
	return c.policies, nil
}

// view is how this scheduler's nodes become a cluster.
func (c *core) view(s *brain.State) pods.View {
	slots := s.Most
	if n := c.args.SlotsPerNode; n > 0 {
		slots = func(string) int { return n }
	}
	return pods.View{Known: s.Known, Class: s.Class, Slots: slots, Now: c.now(), At: c.at}
}

// plan makes one plan for the pods of a batch and issues it to them. infos are
// the nodes that they may go to. probe asks the scheduler's filters.
func (c *core) plan(ctx context.Context, s *brain.State, batch []*entry, infos []fwk.NodeInfo, why string) *issued {
	c.planning.Lock()
	defer c.planning.Unlock()
	start := time.Now()
	defer func() { planSeconds.Observe(time.Since(start).Seconds()) }()
	plansMade.WithLabelValues(why).Inc()
	planPods.Observe(float64(len(batch)))
	c.plans++
	c.planned = start
	change := c.waiting.changes()

	made := c.make(ctx, s, batch, infos, start.Add(c.budget(len(batch))))
	out := &issued{Plan: made, at: start, version: s.Version, policy: c.args.Policy.Name, number: c.plans, change: change, nodes: make(map[string]*v1.Node, len(made.On))}
	for _, info := range infos {
		if n := info.Node(); n != nil {
			out.nodes[n.Name] = n
		}
	}
	c.waiting.issue(batch, out)
	c.logger.V(2).Info("Planned", "pods", len(batch), "placed", len(made.Node), "held", len(made.Held), "left", len(made.Fallback), "why", why, "seconds", time.Since(start).Seconds())
	return out
}

// budget is how long a plan for so many pods may take.
func (c *core) budget(pods int) time.Duration {
	return c.args.TimeBudget.Duration + time.Duration(pods)*c.args.TimePerPod.Duration
}

// make makes a plan of the nodes as they are.
func (c *core) make(ctx context.Context, s *brain.State, batch []*entry, infos []fwk.NodeInfo, deadline time.Time) *plan.Plan {
	return c.ask(s, batch, deadline, func() plan.Problem {
		spec := c.view(s).Spec(infos)
		groups := c.groups(notRunning(batch, spec.Running), c.admission().of(ctx, infos))
		return plan.Problem{Spec: spec, Groups: apart(groups, spec.Running)}
	})
}

// ask calls the policies in a goroutine of their own, so that one which neither
// stops nor returns stops nobody: its pods are left to the scheduler. What is asked
// is put together only where they can be asked.
func (c *core) ask(s *brain.State, batch []*entry, deadline time.Time, what func() plan.Problem) *plan.Plan {
	if c.late.Load() {
		return all(batch, plan.Reason{Code: plan.PolicyLate, Words: "the policy is still at a plan that was given up on"})
	}
	by, err := c.policiesOf(s)
	if err != nil {
		return all(batch, plan.Reason{Code: plan.PolicyFailed, Words: err.Error()})
	}
	problem := what()
	problem.Objective, problem.Now, problem.Seed = c.objective, c.now(), uint64(c.plans)
	problem.Stop = func() bool { return !time.Now().Before(deadline) }
	done := make(chan *plan.Plan, 1)
	c.late.Store(true)
	go func() {
		made := plan.Make(by.Policies, problem)
		c.late.Store(false) // before anybody hears of it and asks again
		done <- made
	}()
	// Half as long again for a policy that stops at the deadline to put together
	// what it has.
	timer := time.NewTimer(time.Until(deadline) * 3 / 2)
	defer timer.Stop()
	select {
	case p := <-done:
		return p
	case <-timer.C:
		c.policies = nil // what still runs is not for two goroutines
		return all(batch, plan.Reason{Code: plan.PolicyLate, Words: fmt.Sprintf("no plan for %d pods within the time budget", len(batch))})
	}
}

// notRunning leaves out the pods that have a node in the scheduler's cache,
// which is ahead of what the API server has told.
func notRunning(batch []*entry, running []cluster.Running) []*entry {
	there := make(map[cluster.TaskID]bool, len(running))
	for i := range running {
		there[running[i].ID] = true
	}
	var out []*entry
	for _, e := range batch {
		if !there[e.view.Task.ID] {
			out = append(out, e)
		}
	}
	return out
}

// apart gives groups of which some tasks run another name: for policies, what
// waits is a group of its own.
func apart(groups []plan.Group, running []cluster.Running) []plan.Group {
	there := map[string]bool{}
	for i := range running {
		there[running[i].Group] = true
	}
	for i := range groups {
		if there[groups[i].Name] {
			groups[i].Name += plan.Rest
		}
	}
	return groups
}

// all is a plan that leaves every pod to the scheduler.
func all(batch []*entry, why plan.Reason) *plan.Plan {
	p := &plan.Plan{Fallback: map[cluster.TaskID]plan.Reason{}}
	for _, e := range batch {
		p.Fallback[e.view.Task.ID] = why
	}
	return p
}

// groups turns pods that wait into the groups of a plan, each pod with the nodes
// that it is admitted to.
func (c *core) groups(batch []*entry, admitted func(*entry) *plan.Allowed) []plan.Group {
	var out []plan.Group
	at := map[string]int{}
	for _, e := range batch {
		i, ok := at[e.view.Group]
		if !ok {
			i = len(out)
			at[e.view.Group] = i
			out = append(out, plan.Group{Name: e.view.Group, Gang: e.view.Gang != nil, Arrival: c.at(e.since), Priority: e.view.Priority})
		}
		out[i].Pods = append(out[i].Pods, plan.Pod{
			Task: e.view.Task, Allowed: admitted(e), OnePerNode: pods.OnePerNode(e.pod), Spread: pods.Spread(e.pod),
		})
	}
	return out
}

// admission remembers which nodes the scheduler's filters admit each kind of pod
// to. It is for one list of nodes.
type admission struct {
	*core
	allowed map[uint64]*plan.Allowed
	shared  map[string]*plan.Allowed
}

func (c *core) admission() *admission {
	return &admission{c, map[uint64]*plan.Allowed{}, map[string]*plan.Allowed{}}
}

// of asks the filters for kinds that were not asked for yet; infos are the
// nodes. It is for the scheduler's own goroutine, as its snapshot is.
func (a *admission) of(ctx context.Context, infos []fwk.NodeInfo) func(*entry) *plan.Allowed {
	labels := true
	if picky, err := a.handle.SnapshotSharedLister().NodeInfos().HavePodsWithRequiredAntiAffinityList(); err == nil {
		labels = len(picky) > 0
	}
	return func(e *entry) *plan.Allowed {
		of := e.kind
		if e.plain && !labels {
			of = e.shape
		}
		kind := of()
		set, probed := a.allowed[kind]
		if probed {
			return set
		}
		set = a.admitted(ctx, e.pod, infos)
		if set != nil {
			if same, ok := a.shared[set.Name]; ok {
				set = same
			}
			a.shared[set.Name] = set
		}
		a.allowed[kind] = set
		return set
	}
}

// probeKey marks a cycle in which the scheduler's filters are asked: the plugin
// itself has no say in it.
const probeKey fwk.StateKey = "cotenant.dev/probe"

type probe struct{}

func (probe) Clone() fwk.StateData { return probe{} }

func probing(state fwk.CycleState) bool {
	_, err := state.Read(probeKey)
	return err == nil
}

// admitted asks the scheduler's own filters which nodes take the pod now; nil
// is all of them.
func (c *core) admitted(ctx context.Context, pod *v1.Pod, infos []fwk.NodeInfo) *plan.Allowed {
	if c.framework == nil {
		return nil
	}
	set, why := make([]bool, len(infos)), make([]string, len(infos))
	var count atomic.Int64
	state := probeState()
	filter, status := c.filters(ctx, state, pod)
	c.handle.Parallelizer().Until(ctx, len(infos), func(i int) {
		said := status
		if said.IsSuccess() && infos[i].Node() != nil {
			said = filter(infos[i])
		}
		if set[i] = said.IsSuccess() && infos[i].Node() != nil; set[i] {
			count.Add(1)
		} else {
			why[i] = said.Message()
		}
	}, Name)
	all := &plan.Allowed{Name: nameOf(set), Node: set, Why: why}
	if best := c.preferred(ctx, state, pod, infos, all); best != all || count.Load() < int64(len(infos)) {
		return best
	}
	return nil
}

func nameOf(set []bool) string {
	var name strings.Builder
	for _, ok := range set {
		if ok {
			name.WriteByte('1')
		} else {
			name.WriteByte('0')
		}
	}
	return name.String()
}

// probeState is for a cycle of its own.
func probeState() *framework.CycleState {
	state := framework.NewCycleState()
	state.Write(probeKey, probe{})
	return state
}

// filters are the scheduler's filters for a pod; the status is that of what they
// all begin with.
func (c *core) filters(ctx context.Context, state *framework.CycleState, pod *v1.Pod) (func(fwk.NodeInfo) *fwk.Status, *fwk.Status) {
	only, status, _ := c.framework.RunPreFilterPlugins(ctx, state, pod)
	return func(info fwk.NodeInfo) *fwk.Status {
		if !only.AllNodes() && !only.NodeNames.Has(info.Node().Name) {
			return fwk.NewStatus(fwk.Unschedulable, "node is not among those that plugins name")
		}
		return c.framework.RunFilterPluginsWithNominatedPods(ctx, state, pod, info)
	}, status
}

// admits asks the scheduler's filters about one node.
func (c *core) admits(ctx context.Context, pod *v1.Pod, info fwk.NodeInfo) *fwk.Status {
	if c.framework == nil {
		return nil
	}
	filter, status := c.filters(ctx, probeState(), pod)
	if !status.IsSuccess() {
		return status
	}
	return filter(info)
}

// tasksOn lists the pods on a node of which plans know.
func tasksOn(info fwk.NodeInfo, known func(string) bool) []cluster.TaskID {
	var ids []cluster.TaskID
	for _, p := range info.GetPods() {
		if pod := p.GetPod(); known(pods.Workload(pod)) && !pods.Ended(pod) {
			ids = append(ids, cluster.TaskID(pod.UID))
		}
	}
	return ids
}

// fits reports whether what the pod requests is free on the node.
func fits(request cluster.Resources, info fwk.NodeInfo) bool {
	free, used := info.GetAllocatable(), info.GetRequested()
	if len(info.GetPods())+1 > free.GetAllowedPodNumber() {
		return false
	}
	for name, n := range request {
		var left int64
		switch name {
		case cluster.CPU:
			left = free.GetMilliCPU() - used.GetMilliCPU()
		case cluster.Memory:
			left = free.GetMemory() - used.GetMemory()
		case string(v1.ResourceEphemeralStorage):
			left = free.GetEphemeralStorage() - used.GetEphemeralStorage()
		default:
			left = free.GetScalarResources()[v1.ResourceName(name)] - used.GetScalarResources()[v1.ResourceName(name)]
		}
		if n > left {
			return false
		}
	}
	return true
}
