package plugin

import (
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/explain"
	"github.com/cotenant/cotenant/kubernetes/plugin/brain"
	"github.com/cotenant/cotenant/kubernetes/plugin/config"
	"github.com/cotenant/cotenant/kubernetes/plugin/plan"
	"github.com/cotenant/cotenant/kubernetes/plugin/pods"
)

// PreEnqueue implements framework.PreEnqueuePlugin: pods wait for their group.
// It is called under the lock of the scheduler's queue.
func (p *Plugin) PreEnqueue(_ context.Context, pod *v1.Pod) *fwk.Status {
	if !p.minds(pod.Namespace) {
		return nil
	}
	mode := p.args.ModeOf(pod.Namespace)
	e := p.waiting.see(pod, time.Now())
	if status := p.gathers(e, pod, mode); status != nil {
		return status
	}
	if status := p.stillHeld(e, mode); status != nil {
		return status
	}
	if status := p.outOfTurn(e); status != nil {
		return status
	}
	p.waiting.turnOf(e)
	return nil
}

// gathers says what the pod's group is waited for; nil where it may go.
func (p *Plugin) gathers(e *entry, pod *v1.Pod, mode config.Mode) *fwk.Status {
	w := p.waiting
	w.mu.Lock()
	defer w.mu.Unlock()
	g := w.groups[e.view.Group]
	gang := g != nil && g.holdsGang()
	native := e.view.Gang != nil && e.view.Gang.Native // the scheduler waits for these itself
	alone := native || !gang && (p.args.GroupWindow.Duration == 0 || mode == config.Assist || !p.brain.Now().Known(e.view.Task.Workload))
	if !e.released && !alone && !gang && g != nil && g.complete(pod, p.owners.want) {
		alone = true
		for _, other := range g.pending { // planned for together
			other.turn = true
		}
		select { // the others of its group go, too
		case p.completed <- struct{}{}:
		default:
		}
	}
	if e.released || alone {
		e.released = true
		return nil
	}
	if gang && !g.enough() {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf("%d of at least %d pods of gang %s are there", g.there(), g.minimum(), g.name))
	}
	if gang && g.unnumbered() {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf("waits until for %s no more pods of gang %s have come, or somebody says how many go together", p.args.GangWindow.Duration, g.name))
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf("waits up to %s for more pods of %s", mostWindows*p.args.GroupWindow.Duration, g.name))
}

// turnOf notes that the scheduler will try the pod.
func (w *waiting) turnOf(e *entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.turn, e.issued = true, keepIssued(e)
}

// keepIssued is the plan that an entry comes to its turn with: none where the
// last one had no place for it, since something has changed since.
func keepIssued(e *entry) *issued {
	if e.issued != nil && e.issued.Node[e.view.Task.ID] != "" {
		return e.issued
	}
	return nil
}

// lookEvery is how often all groups are looked through.
const lookEvery = 50 * time.Millisecond

// tick lets groups go when their time has come, and looks after gangs.
func (p *Plugin) tick(ctx context.Context) {
	ticker := time.NewTicker(max(5*time.Millisecond, p.args.GroupWindow.Duration/4))
	defer ticker.Stop()
	var looked time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.completed:
			p.letGo(time.Now())
		case now := <-ticker.C:
			p.letGo(now)
			if now.Sub(looked) >= lookEvery {
				looked = now
				p.lookAfterGangs(ctx, now)
				p.passTurn(now)
			}
			if p.args.JobsPolicy != nil {
				p.activate(p.waiting.room(now, p.args.GroupWindow.Duration))
			}
		}
	}
}

// activate moves pods to the scheduler's active queue. No lock may be held.
func (c *core) activate(list []*v1.Pod) {
	if len(list) == 0 {
		return
	}
	named := make(map[string]*v1.Pod, len(list))
	for _, pod := range list {
		named[pod.Namespace+"/"+pod.Name] = pod
	}
	c.handle.Activate(c.logger, named)
}

// EventsToRegister implements framework.EnqueueExtensions. Pods that wait for
// their group are let go by tick; the rest that the plugin rejects, gangs
// without a place, are tried again when room may have come.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		{Event: fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete}, QueueingHintFn: p.makesRoom},
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeAllocatable | fwk.UpdateNodeTaint | fwk.UpdateNodeLabel}, QueueingHintFn: p.makesRoom},
		{Event: fwk.ClusterEvent{Resource: fwk.UnscheduledPod, ActionType: fwk.Add}, QueueingHintFn: p.sameGroup},
	}, nil
}

func (p *Plugin) sameGroup(_ klog.Logger, pod *v1.Pod, _, newObj any) (fwk.QueueingHint, error) {
	added, ok := newObj.(*v1.Pod)
	if !ok {
		return fwk.Queue, nil
	}
	a, gang := groupOf(pod)
	if b, _ := groupOf(added); gang != nil && a == b {
		return fwk.Queue, nil
	}
	return fwk.QueueSkip, nil
}

// PreFilter implements framework.PreFilterPlugin: it names the node that the
// plan has for the pod.
func (p *Plugin) PreFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, infos []fwk.NodeInfo) (result *fwk.PreFilterResult, status *fwk.Status) {
	if probing(state) || !p.minds(pod.Namespace) {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	mode := p.args.ModeOf(pod.Namespace)
	defer func() {
		if r := recover(); r != nil {
			p.logger.Error(fmt.Errorf("%v", r), "The plugin panicked", "pod", klog.KObj(pod), "stack", string(debug.Stack()))
			p.record.fallback(pod, plan.Reason{Code: plan.PolicyPanicked, Words: fmt.Sprint(r)})
			result, status = nil, fwk.NewStatus(fwk.Skip)
		}
	}()
	if state.IsPodGroupSchedulingCycle() {
		return p.inPodGroup(ctx, state, pod, infos)
	}
	e := p.waiting.see(pod, time.Now())
	if status := p.outOfTurn(e); status != nil {
		return nil, status
	}
	if mode == config.Assist {
		return nil, fwk.NewStatus(fwk.Skip) // the others of its gang follow once it has a node
	}
	d, why := p.assign(ctx, e, infos)
	d.Mode, d.Group = string(mode), e.view.Group
	state.Write(decisionKey, d)
	if d.Planned != "" {
		p.follow(e.pod)
		return &fwk.PreFilterResult{NodeNames: sets.New(d.Planned)}, nil
	}
	d.give(why)
	switch {
	case why.Code != plan.NoRoom || !p.holdsGang(e):
	case p.preempts(ctx, e, why, infos):
		p.follow(e.pod) // room is made for each of them
	default:
		p.waiting.tried(e.view.Group, time.Now())
		p.endTurn(e.view.Group)
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, why.Words)
	}
	p.record.fallback(pod, why)
	return nil, fwk.NewStatus(fwk.Skip)
}

// PreFilterExtensions implements framework.PreFilterPlugin.
func (p *Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// assign finds the pod's node: that of its plan if the node is still as it was,
// else that of a new plan. Without one, the reason says why.
func (p *Plugin) assign(ctx context.Context, e *entry, infos []fwk.NodeInfo) (*Decision, plan.Reason) {
	s := p.brain.Now()
	id := e.view.Task.ID
	p.waiting.takesTurn(e.pod.UID)
	if !s.Known(e.view.Task.Workload) {
		return &Decision{explain.Decision{Version: s.Version}}, unknown(s, e.view.Task.Workload)
	}
	x := p.waiting.issuedTo(e.pod.UID)
	if n := e.pod.Status.NominatedNodeName; n != "" && (x == nil || x.Node[id] != n) {
		return &Decision{explain.Decision{Version: s.Version}}, plan.Reason{Code: plan.NodeRefused, Words: "room was made for the pod on " + n}
	}
	why, refused := "first", ""
	for range 3 {
		if x == nil || x.version != s.Version || time.Since(x.at) > mostAge {
			x = p.planWith(ctx, s, e, infos, why)
		}
		d := x.decision(id)
		if r, ok := x.Fallback[id]; ok {
			return d, r
		}
		node, ok := x.Node[id]
		if !ok {
			return d, plan.Reason{Code: plan.NoRoom, Words: x.Held[id]}
		}
		if refused = p.refuses(ctx, e, x, node); refused == "" {
			d.Planned = node
			return d, plan.Reason{}
		}
		x, why = nil, "stale"
	}
	return &Decision{explain.Decision{Version: s.Version}}, plan.Reason{Code: plan.NodeRefused, Words: refused}
}

// unknown is why nothing is decided for a workload that is not known.
func unknown(s *brain.State, workload string) plan.Reason {
	if s.Bad != "" {
		return plan.Reason{Code: plan.BadFiles, Words: "no model or policy is in use: " + s.Bad}
	}
	return plan.Reason{
		Code:  plan.WorkloadUnknown,
		Words: fmt.Sprintf("the model knows no workload %q; measure it, or name another with the label cotenant.dev/workload", workload),
	}
}

// decision is what the plan says of a pod but for its node.
func (x *issued) decision(id cluster.TaskID) *Decision {
	return &Decision{explain.Decision{Policy: x.policy, Version: x.version, Plan: x.number, Pods: len(x.Node), Performance: explain.Finite(x.performance(id))}}
}

// performance is what the plan's model believes of a pod; NaN where it is silent.
func (x *issued) performance(id cluster.TaskID) float64 {
	if v, ok := x.Performance[id]; ok {
		return v
	}
	return math.NaN()
}

// mostAge is how long a plan stands, whatever happens.
const mostAge = 30 * time.Second

// planWith makes a plan for the pod and all that is to be decided with it.
func (p *Plugin) planWith(ctx context.Context, s *brain.State, e *entry, infos []fwk.NodeInfo, why string) *issued {
	queued, most := p.args.JobsPolicy != nil, mostPlanned
	if !queued || e.view.Gang == nil {
		most = p.most()
	}
	batch := p.waiting.batch(e.pod.UID, most, queued, p.plansFor(s))
	if len(batch) == 0 || slices.ContainsFunc(batch, func(o *entry) bool { return o.view.Group == e.view.Group && p.alone(o) }) {
		batch = []*entry{e}
	}
	x := p.plan(ctx, s, batch, infos, why)
	if queued {
		p.activate(p.waiting.called(batch, x, e.view.Group))
	}
	return x
}

// most is how many pods to plan for. The first plan after a rest is a short
// one, so that pods are bound while the plan for the others is made.
func (c *core) most() int {
	c.planning.Lock()
	defer c.planning.Unlock()
	if time.Since(c.planned) > rest {
		return firstPlanned
	}
	return mostPlanned
}

const rest = 5 * time.Second

// plansFor says which pods a plan is made for together with others.
func (p *Plugin) plansFor(s interface{ Known(string) bool }) func(*entry) bool {
	return func(e *entry) bool {
		return !p.alone(e) && p.args.ModeOf(e.pod.Namespace) == config.Enforce && s.Known(e.view.Task.Workload) &&
			e.pod.Status.NominatedNodeName == "" && (e.pod.Spec.SchedulingGroup == nil || p.args.JobsPolicy != nil)
	}
}

// refuses says in words why the pod's planned node does not take it any more;
// "" where it does.
func (p *Plugin) refuses(ctx context.Context, e *entry, x *issued, node string) string {
	info, err := p.handle.SnapshotSharedLister().NodeInfos().Get(node)
	if err != nil || info.Node() == nil {
		return "node " + node + " is gone"
	}
	known := p.brain.Now().Known
	if why := x.Stale(node, tasksOn(info, known)); why != "" {
		return why
	}
	simple := e.plain && x.nodes[node] == info.Node() &&
		len(p.handle.NominatedPodsForNode(node)) == 0 && len(info.GetPodsWithRequiredAntiAffinity()) == 0
	if simple && fits(e.view.Task.Requests, info) {
		return ""
	}
	if status := p.admits(ctx, e.pod, info); !status.IsSuccess() {
		return fmt.Sprintf("node %s: %s", node, status.Message())
	}
	return ""
}

// SignPod implements framework.SignPlugin. Pods that a plan places are not for
// OpportunisticBatching: its hint of a node would stand above the plan. All
// others stay in it: an assisted pod's score depends on its workload and on what
// is on a node alone.
func (p *Plugin) SignPod(_ context.Context, pod *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	workload := pods.Workload(pod)
	_, gang := groupOf(pod)
	if p.args.ModeOf(pod.Namespace) == config.Enforce && (p.brain.Now().Known(workload) || gang != nil) {
		return nil, fwk.NewStatus(fwk.Unschedulable, "placed by a plan")
	}
	return []fwk.SignFragment{{Key: Name + ".Workload()", Value: workload}}, nil
}

// Reserve implements framework.ReservePlugin. In the cycle of a PodGroup it
// runs once for each candidate: what it notes is undone by Unreserve.
func (p *Plugin) Reserve(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	if p.shadow != nil && p.shadow.minds(pod.Namespace) {
		return p.shadow.Reserve(ctx, state, pod, node)
	}
	if d := decisionOf(state); d != nil {
		d.Node = node
	}
	if state.IsPodGroupSchedulingCycle() || !p.minds(pod.Namespace) {
		return nil
	}
	if p.args.ModeOf(pod.Namespace) == config.Assist {
		p.assisted(state, pod, node)
	}
	p.follow(pod)
	p.waiting.reserve(pod, node)
	return nil
}

// PostBind implements framework.PostBindPlugin.
func (p *Plugin) PostBind(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) {
	if p.shadow != nil && p.shadow.minds(pod.Namespace) {
		p.shadow.PostBind(ctx, state, pod, node)
		return
	}
	mode, planned := p.args.ModeOf(pod.Namespace), ""
	if d := decisionOf(state); d != nil {
		planned = d.Planned
	}
	decided(string(mode), planned, node)
}
