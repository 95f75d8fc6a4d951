package plugin

import (
	"context"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/explain"
	"github.com/cotenant/cotenant/kubernetes/plugin/brain"
	"github.com/cotenant/cotenant/kubernetes/plugin/config"
	"github.com/cotenant/cotenant/kubernetes/plugin/plan"
)

// Shadow is the plugin in the mode shadow: it plans beside the scheduler, and
// tells where it would have put a pod. It plans on the cluster as its own plans
// would have filled it, so that all of them together are what the policy is worth.
type Shadow struct {
	*core
	busy  atomic.Bool
	world shadowWorld
	sight sight
	// rest fires when no pod's turn has come for a while after a plan.
	rest *time.Timer
}

func newShadow(c *core) (*Shadow, error) {
	c.modes, c.waiting.always = []config.Mode{config.Shadow}, true
	s := &Shadow{core: c}
	s.rest = time.AfterFunc(time.Hour, s.catchUp)
	s.rest.Stop()
	return s, c.watch()
}

var (
	_ fwk.ReservePlugin  = &Shadow{}
	_ fwk.PostBindPlugin = &Shadow{}
)

// Reserve implements framework.ReservePlugin. The scheduler has decided: it
// only takes what is needed for a plan, which is made beside it.
func (s *Shadow) Reserve(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	if !s.minds(pod.Namespace) || state.IsPodGroupSchedulingCycle() {
		return nil // in the cycle of a PodGroup it comes again, once that is decided
	}
	e := s.waiting.see(waits(pod), time.Now())
	now := s.brain.Now()
	d := &Decision{explain.Decision{Mode: string(config.Shadow), Version: now.Version, Node: node, Group: e.view.Group}}
	state.Write(decisionKey, d)
	infos, err := s.handle.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return nil
	}
	known := now.Known(e.view.Task.Workload)
	if !known {
		d.give(unknown(now, e.view.Task.Workload))
	}
	wants := known && s.waiting.issuedTo(e.pod.UID) == nil
	if !wants || !s.busy.CompareAndSwap(false, true) {
		s.look(ctx, e, wants, node, infos)
		return nil
	}
	batch := s.waiting.batch(e.pod.UID, mostPlanned, false, func(e *entry) bool {
		return now.Known(e.view.Task.Workload)
	})
	// The snapshot is the scheduler's own and changes: what a plan stands on is
	// read here, and the policies go on beside.
	batch, _, _ = s.begin(batch)
	groups := s.groups(batch, s.admission().of(ctx, infos))
	spec := s.spec(now, infos)
	go func() {
		defer s.free()
		s.planBeside(now, batch, groups, spec)
	}()
	return nil
}

// spec is the cluster as the plans would have filled it.
func (s *Shadow) spec(now *brain.State, infos []fwk.NodeInfo) cluster.Spec {
	view := s.view(now)
	view.Where, view.Leave = s.world.where, s.world.isPlanned
	return view.Spec(infos)
}

// waits is the pod as it was before the scheduler gave it a node.
func waits(pod *v1.Pod) *v1.Pod {
	if pod.Spec.NodeName == "" {
		return pod
	}
	copied := pod.DeepCopy()
	copied.Spec.NodeName = ""
	return copied
}

// Unreserve implements framework.ReservePlugin.
func (s *Shadow) Unreserve(context.Context, fwk.CycleState, *v1.Pod, string) {}

// PostBind implements framework.PostBindPlugin: it tells what the plan, if there
// was one in time, had for the pod.
func (s *Shadow) PostBind(_ context.Context, state fwk.CycleState, pod *v1.Pod, _ string) {
	d := decisionOf(state)
	if d == nil {
		return
	}
	x, soon := s.world.take(&late{pod: pod, decision: d})
	if soon {
		return // told when the plan is done
	}
	s.tell(pod, d, x)
}

// tell says what the plan has for a pod that has its node; x is nil where there
// is no plan. Why nothing could be said of a pod is told as in the other modes, so
// that a cluster of which the model knows little does not look like one without
// a plugin.
func (s *Shadow) tell(pod *v1.Pod, d *Decision, x *issued) {
	if x != nil {
		id := cluster.TaskID(pod.UID)
		d.Policy, d.Plan, d.Pods, d.Planned, d.Performance = x.policy, x.number, len(x.Node), x.Node[id], explain.Finite(x.performance(id))
		d.give(x.Fallback[id])
	}
	if d.Fallback != "" {
		s.record.fallback(pod, plan.Reason{Code: plan.Code(d.Fallback), Words: d.Why})
	}
	decided(string(config.Shadow), d.Planned, d.Node)
	if d.Planned != "" {
		s.record.event(pod, v1.EventTypeNormal, explain.ShadowEvent, "%s", d.ShadowNote())
	}
}

// planBeside makes and issues a plan from what Reserve read.
func (s *Shadow) planBeside(now *brain.State, batch []*entry, groups []plan.Group, spec cluster.Spec) {
	s.planning.Lock()
	defer s.planning.Unlock()
	start := time.Now()
	s.plans++
	made := s.ask(now, batch, start.Add(s.budget(len(batch))), func() plan.Problem { return plan.Problem{Spec: spec, Groups: groups} })
	s.issue(batch, spec, &issued{Plan: made, at: start, version: now.Version, policy: s.args.Policy.Name, number: s.plans})
	planSeconds.Observe(time.Since(start).Seconds())
	planPods.Observe(float64(len(batch)))
	plansMade.WithLabelValues("first").Inc()
}

// issue gives the pods of a batch their plan, and tells of those that have their
// nodes already.
func (s *Shadow) issue(batch []*entry, spec cluster.Spec, x *issued) {
	s.waiting.issue(batch, x)
	for _, l := range s.world.end(batch, spec, x) {
		s.tell(l.pod, l.decision, x)
	}
}
