package plugin

import (
	"context"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/cotenant/cotenant/kubernetes/plugin/plan"
	"github.com/cotenant/cotenant/place/jobs"
)

// preempts reports whether pods of lower priority are to make way for a gang
// that the plan has no room for: the policy does not want it to wait, and all of
// it would have nodes if they did. Its pods then go by the scheduler's own way,
// which preempts for one at a time and would kill for a gang that stays in part.
func (p *Plugin) preempts(ctx context.Context, e *entry, why plan.Reason, infos []fwk.NodeInfo) bool {
	never := e.pod.Spec.PreemptionPolicy
	if p.framework == nil || why.Words == jobs.Waits.String() || never != nil && *never == v1.PreemptNever {
		return false
	}
	members, missing := p.waiting.without(e)
	nominated := p.nominated() // the filters count these where they are to go
	t := p.without(corev1helpers.PodPriority(e.pod), infos)
	if len(t.gone) == 0 && !slices.ContainsFunc(members, func(m *entry) bool { return nominated[m.pod.UID] }) {
		return false
	}
	for _, m := range members {
		if missing > 0 && (nominated[m.pod.UID] || t.place(ctx, m)) {
			missing--
		}
	}
	return missing <= 0
}

// nominated are the pods for which room is made. What their status says lags
// behind.
func (c *core) nominated() map[types.UID]bool {
	out := map[types.UID]bool{}
	nodes, err := c.handle.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return out
	}
	for _, node := range nodes {
		for _, pod := range c.handle.NominatedPodsForNode(node.Node().Name) {
			out[pod.GetPod().UID] = true
		}
	}
	return out
}

// without lists the pods of the entry's gang that have no node, and how many of
// them go together.
func (w *waiting) without(e *entry) (members []*entry, missing int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	g := w.groups[e.view.Group]
	if g == nil {
		return nil, math.MaxInt
	}
	for uid, m := range g.pending {
		if g.reserved[uid] == "" {
			members = append(members, m)
		}
	}
	return members, max(1, g.minimum()-g.placed())
}

// trial is a cluster on which pods are placed one after the other, as the
// scheduler's filters admit them, and which is thrown away.
type trial struct {
	*core
	nodes []fwk.NodeInfo
	// gone and come are the pods that are taken away and placed.
	gone, come []moved
	kinds      map[uint64]*trialKind
}

// moved is a pod and the node of which it is taken or to which it goes.
type moved struct {
	pod  fwk.PodInfo
	node fwk.NodeInfo
}

// trialKind is what the filters remember of a kind of pods.
type trialKind struct {
	pod   *v1.Pod
	state fwk.CycleState
	only  *fwk.PreFilterResult
	none  bool // no node is admitted
	next  int  // the nodes before take no more of them
}

// without is a trial of the nodes without the pods of lower priority.
func (c *core) without(priority int32, infos []fwk.NodeInfo) *trial {
	t := &trial{core: c, kinds: map[uint64]*trialKind{}}
	for _, info := range infos {
		if info.Node() == nil {
			continue
		}
		node := info
		for _, pod := range info.GetPods() {
			if corev1helpers.PodPriority(pod.GetPod()) >= priority {
				continue
			}
			if node == info {
				node = info.Snapshot()
			}
			if node.RemovePod(c.logger, pod.GetPod()) == nil {
				t.gone = append(t.gone, moved{pod, node})
			}
		}
		t.nodes = append(t.nodes, node)
	}
	return t
}

// place places a pod, and reports whether there is a node for it.
func (t *trial) place(ctx context.Context, e *entry) bool {
	k := t.kind(ctx, e)
	if k.none {
		return false
	}
	if !e.plain {
		k.next = 0 // a pod that was placed may have opened a node
	}
	for ; k.next < len(t.nodes); k.next++ {
		node := t.nodes[k.next]
		if !k.only.AllNodes() && !k.only.NodeNames.Has(node.Node().Name) || !t.framework.RunFilterPluginsWithNominatedPods(ctx, k.state, k.pod, node).IsSuccess() {
			continue
		}
		placed := e.pod.DeepCopy()
		placed.Spec.NodeName = node.Node().Name
		info, err := framework.NewPodInfo(placed)
		if err != nil {
			return false
		}
		node = node.Snapshot()
		node.AddPodInfo(info)
		t.nodes[k.next] = node
		t.come = append(t.come, moved{info, node})
		for _, other := range t.kinds {
			t.framework.RunPreFilterExtensionAddPod(ctx, other.state, other.pod, info, node)
		}
		return true
	}
	return false
}

// kind is what the filters know of the pod's kind, as the nodes are by now.
func (t *trial) kind(ctx context.Context, e *entry) *trialKind {
	if k, ok := t.kinds[e.kind()]; ok {
		return k
	}
	k := &trialKind{pod: e.pod, state: probeState()}
	only, status, _ := t.framework.RunPreFilterPlugins(ctx, k.state, e.pod)
	k.only, k.none = only, !status.IsSuccess()
	for _, m := range t.gone {
		t.framework.RunPreFilterExtensionRemovePod(ctx, k.state, e.pod, m.pod, m.node)
	}
	for _, m := range t.come {
		t.framework.RunPreFilterExtensionAddPod(ctx, k.state, e.pod, m.pod, m.node)
	}
	t.kinds[e.kind()] = k
	return k
}
