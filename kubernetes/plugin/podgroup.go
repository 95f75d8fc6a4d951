package plugin

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/explain"
	"github.com/cotenant/cotenant/kubernetes/plugin/brain"
	"github.com/cotenant/cotenant/kubernetes/plugin/config"
	"github.com/cotenant/cotenant/kubernetes/plugin/plan"
	"github.com/cotenant/cotenant/kubernetes/plugin/pods"
	"github.com/cotenant/cotenant/place/jobs"
)

// planKey holds the plan of a PodGroup in its cycle.
const planKey fwk.StateKey = "cotenant.dev/plan"

// ownPlacement names the placement that is the plan's nodes.
const ownPlacement = "cotenant"

// groupPlan is a plan for the pods of a PodGroup, and on which nodes it was made.
type groupPlan struct {
	*issued                // nil where there is none
	from    *fwk.Placement // "" of the whole cluster
	// alone says that each pod is planned for at its own turn.
	alone bool
	// why there is no plan.
	why plan.Reason
}

// waits reports whether a pod that has no place in the plan is to wait: the
// policy wants it so, or nothing can be gained from the scheduler's trying, since
// no pod runs that could be preempted for it.
func (p *Plugin) waits(g *groupPlan, pod *v1.Pod, infos []fwk.NodeInfo) bool {
	why := g.Held[cluster.TaskID(pod.UID)]
	if p.args.JobsPolicy == nil || why == "" {
		return false
	}
	if why == jobs.Waits.String() {
		return true
	}
	own := corev1helpers.PodPriority(pod)
	for _, info := range infos {
		for _, other := range info.GetPods() {
			if corev1helpers.PodPriority(other.GetPod()) < own {
				return false
			}
		}
	}
	return true
}

// Clone implements framework.StateData.
func (g *groupPlan) Clone() fwk.StateData { return g }

// GeneratePlacements implements framework.PlacementGeneratePlugin: the nodes of
// our plan come first, then what the plugin in the tree generates. Where that
// offers domains of a topology, a plan is made in each, and the best is offered.
func (p *Plugin) GeneratePlacements(ctx context.Context, state fwk.PodGroupCycleState, group fwk.PodGroupInfo, parent *fwk.Placement) (*fwk.GeneratePlacementsResult, *fwk.Status) {
	result, status := p.topology.GeneratePlacements(ctx, state, group, parent)
	if !status.IsSuccess() || group.GetCompositePodGroup() != nil || p.args.ModeOf(group.GetNamespace()) != config.Enforce {
		return result, status
	}
	best := p.bestPlan(ctx, group.GetUnscheduledPods(), result.Placements)
	state.Write(planKey, best)
	if best.issued == nil {
		return result, status
	}
	own := &fwk.Placement{Name: ownPlacement}
	named := sets.New[string]()
	for _, node := range best.Node {
		named.Insert(node)
	}
	for _, info := range best.from.Nodes {
		if named.Has(info.Node().Name) {
			own.Nodes = append(own.Nodes, info)
		}
	}
	switch {
	case len(own.Nodes) > 0:
	case p.waits(best, group.GetUnscheduledPods()[0], best.from.Nodes):
		own.Nodes = best.from.Nodes // PreFilter says so of each pod
		return &fwk.GeneratePlacementsResult{Placements: []*fwk.Placement{own}}, nil
	default:
		return result, status
	}
	return &fwk.GeneratePlacementsResult{Placements: append([]*fwk.Placement{own}, result.Placements...)}, nil
}

// mostDomains bounds the plans for one group.
const mostDomains = 32

// bestPlan is the plan for a PodGroup's pods in the placement that is best for
// them, or why there is none.
func (p *Plugin) bestPlan(ctx context.Context, list []*v1.Pod, placements []*fwk.Placement) *groupPlan {
	s := p.brain.Now()
	var batch []*entry
	for _, pod := range list {
		if !s.Known(pods.Workload(pod)) {
			why := unknown(s, pods.Workload(pod))
			p.record.fallback(pod, why)
			return &groupPlan{why: why}
		}
		batch = append(batch, p.waiting.see(pod, time.Now()))
	}
	best := &groupPlan{}
	if len(batch) == 0 {
		return best
	}
	if p.args.JobsPolicy != nil && len(placements) == 1 {
		return &groupPlan{issued: p.queuedPlan(ctx, s, batch, placements[0].Nodes), from: placements[0]}
	}
	if slices.ContainsFunc(batch, p.alone) {
		return &groupPlan{alone: true}
	}
	worth := 0.0
	for _, from := range placements[:min(len(placements), mostDomains)] {
		x := p.plan(ctx, s, batch, from.Nodes, "first")
		if why, failed := x.Fallback[batch[0].view.Task.ID]; failed {
			p.record.fallback(batch[0].pod, why)
			best.why = why
			if why.Code == plan.PolicyLate {
				break
			}
			continue
		}
		sum := 0.0
		for id := range x.Node {
			sum += x.Performance[id]
		}
		if len(x.Node) == 0 {
			best.why = plan.Reason{Code: plan.NoRoom, Words: x.Held[batch[0].view.Task.ID]}
		} else if best.issued == nil || len(x.Node) > len(best.Node) || len(x.Node) == len(best.Node) && sum > worth {
			best, worth = &groupPlan{issued: x, from: from}, sum
		}
	}
	if best.issued == nil && best.why.Code == plan.NoRoom {
		p.record.fallback(batch[0].pod, best.why)
	}
	return best
}

// heldFor is how long a gang that the policy lets wait is not decided on again
// where nothing has changed: the scheduler tries a PodGroup again and again.
const heldFor = 250 * time.Millisecond

// queuedPlan is the plan that a PodGroup's pods are in, with all other gangs
// that wait, or a new one. A plan with nodes for them is tried once.
func (p *Plugin) queuedPlan(ctx context.Context, s *brain.State, own []*entry, infos []fwk.NodeInfo) *issued {
	for _, e := range own {
		p.waiting.takesTurn(e.pod.UID)
	}
	x := p.waiting.issuedTo(own[0].pod.UID)
	if x == nil || x.version != s.Version || !p.stands(x, own) {
		x = p.planWith(ctx, s, own[0], infos, "first")
		if why, failed := x.Fallback[own[0].view.Task.ID]; failed {
			p.record.fallback(own[0].pod, why)
		}
	}
	if x.Node[own[0].view.Task.ID] != "" {
		p.waiting.used(own)
	}
	return x
}

// stands reports whether a plan still says what is to become of a gang.
func (p *Plugin) stands(x *issued, own []*entry) bool {
	if x.Node[own[0].view.Task.ID] == "" {
		return time.Since(x.at) < heldFor && x.change == p.waiting.changes()
	}
	for _, e := range own {
		node := x.Node[e.view.Task.ID]
		info, err := p.handle.SnapshotSharedLister().NodeInfos().Get(node)
		if err != nil || x.Stale(node, tasksOn(info, p.brain.Now().Known)) != "" {
			return false
		}
	}
	return time.Since(x.at) < mostAge
}

// inPodGroup is PreFilter in the cycle of a PodGroup: it names the planned node
// while the plan's own placement is tried, and only notes it while others are.
// Without placements (TopologyAwareWorkloadScheduling is off) the plan is made
// here, at the first pod's turn.
func (p *Plugin) inPodGroup(ctx context.Context, state fwk.CycleState, pod *v1.Pod, infos []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	skip := fwk.NewStatus(fwk.Skip)
	cycle := state.GetPodGroupSchedulingCycle()
	if cycle == nil || p.args.ModeOf(pod.Namespace) != config.Enforce {
		return nil, skip
	}
	now := p.tried()
	data, err := cycle.Read(planKey)
	if err != nil {
		if now != nil {
			return nil, skip // placements of a composite PodGroup
		}
		best := p.bestPlan(ctx, p.unscheduled(pod), []*fwk.Placement{{Nodes: infos}})
		cycle.Write(planKey, best)
		data = best
	}
	g, ok := data.(*groupPlan)
	if !ok {
		return nil, skip
	}
	others := g.issued == nil || now != nil && now.Name != ownPlacement
	if g.alone {
		e := p.waiting.see(pod, time.Now())
		g, others = &groupPlan{issued: p.plan(ctx, p.brain.Now(), []*entry{e}, infos, "first")}, false
	}
	id := cluster.TaskID(pod.UID)
	d, node, why := &Decision{explain.Decision{Version: p.brain.Now().Version}}, "", g.why
	if g.issued != nil {
		d, node, why = g.decision(id), g.Node[id], g.Fallback[id]
		d.Why = g.Held[id]
	}
	d.Mode, d.Planned = string(config.Enforce), node
	d.Group, _ = groupOf(pod)
	if why.Code != "" {
		d.give(why)
	}
	state.Write(decisionKey, d)
	if others {
		return nil, skip
	}
	switch {
	case node != "":
	case p.waits(g, pod, infos):
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, d.Why)
	default: // perhaps room can be made for it
		return nil, skip
	}
	return &fwk.PreFilterResult{NodeNames: sets.New(node)}, nil
}

// tried is the placement that the scheduler tries now; nil where there is none.
func (p *Plugin) tried() *fwk.Placement {
	if s, ok := p.handle.SnapshotSharedLister().(interface{ GetPlacement() *fwk.Placement }); ok {
		return s.GetPlacement()
	}
	return nil
}

// unscheduled lists the pods of the pod's PodGroup that wait.
func (p *Plugin) unscheduled(pod *v1.Pod) []*v1.Pod {
	if pod.Spec.SchedulingGroup == nil || pod.Spec.SchedulingGroup.PodGroupName == nil {
		return nil
	}
	state, err := p.handle.PodGroupManager().PodGroupStates().Get(pod.Namespace, *pod.Spec.SchedulingGroup.PodGroupName)
	if err != nil {
		return []*v1.Pod{pod}
	}
	out := []*v1.Pod{pod}
	for _, other := range state.UnscheduledPods() {
		if other.UID != pod.UID {
			out = append(out, other)
		}
	}
	return out
}

// ScorePlacement implements framework.PlacementScorePlugin: what the model
// expects of the pods where a placement puts them, neutral where it is silent.
func (p *Plugin) ScorePlacement(_ context.Context, _ fwk.PlacementCycleState, group fwk.PodGroupInfo, placed *fwk.PodGroupAssignments) (int64, *fwk.Status) {
	if !p.minds(group.GetNamespace()) {
		return *p.args.Neutral, nil
	}
	s := p.brain.Now()
	on, class := map[string]cluster.Colocation{}, map[string]string{}
	for _, info := range placed.Nodes {
		on[info.Node().Name], class[info.Node().Name] = colocation(info, s), s.Class(pods.Class(info.Node()))
	}
	gain, touched := 0.0, map[string]bool{}
	for _, a := range placed.ProposedAssignments {
		node, w := a.GetNodeName(), pods.Workload(a.GetPod())
		if on[node] == nil || !s.Known(w) {
			return *p.args.Neutral, nil
		}
		if !touched[node] {
			touched[node] = true
			gain -= p.scores.sum(s, class[node], on[node])
		}
		on[node] = on[node].With(w)
	}
	for node := range touched {
		gain += p.scores.sum(s, class[node], on[node])
	}
	score, odd := scoreOf(gain/float64(max(1, len(placed.ProposedAssignments))), *p.args.Neutral)
	if odd {
		oddScores.Inc()
	}
	return score, nil
}

// PlacementScoreExtensions implements framework.PlacementScorePlugin.
func (p *Plugin) PlacementScoreExtensions() fwk.PlacementScoreExtensions { return p }

// NormalizePlacementScore implements framework.PlacementScoreExtensions. Where the
// plan's own placement is feasible it is what the policy wants: it is as far above
// the others as scores go, or other plugins' would decide between it and the domain
// that it is in. Without it they are scored by what the model expects.
func (p *Plugin) NormalizePlacementScore(_ context.Context, _ fwk.PodGroupCycleState, _ fwk.PodGroupInfo, scores []fwk.PlacementScore) *fwk.Status {
	own := slices.IndexFunc(scores, func(s fwk.PlacementScore) bool { return s.Placement.Name == ownPlacement })
	if own < 0 {
		return nil
	}
	for i := range scores {
		scores[i].Score = fwk.MinScore
	}
	scores[own].Score = fwk.MaxScore
	return nil
}
