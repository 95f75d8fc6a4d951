package plugin

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// Permit implements framework.PermitPlugin: the pods of a gang wait for each
// other.
func (p *Plugin) Permit(_ context.Context, _ fwk.CycleState, pod *v1.Pod, _ string) (*fwk.Status, time.Duration) {
	name, complete, others := p.waiting.permit(pod)
	if name == "" {
		return nil, 0
	}
	if !complete {
		return fwk.NewStatus(fwk.Wait, "waits for the other pods of gang "+name), p.waiting.timeoutOf(pod, p.args.WaitTimeout.Duration)
	}
	for _, uid := range others {
		if w := p.handle.GetWaitingPod(uid); w != nil {
			w.Allow(Name)
		}
	}
	gangsEnded.WithLabelValues("permitted").Inc()
	p.endTurn(name)
	return nil, 0
}

// permit counts the pods of a gang that have a node. name is "" where the
// plugin holds no gang of the pod together.
func (w *waiting) permit(pod *v1.Pod) (name string, complete bool, others []types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.entries[pod.UID]
	if e == nil {
		return "", false, nil
	}
	g := w.groups[e.view.Group]
	if g == nil || !g.holdsGang() {
		return "", false, nil
	}
	if !g.permitted && g.placed() < g.minimum() {
		return g.name, false, nil
	}
	g.permitted = true
	for uid := range g.reserved {
		if uid != pod.UID {
			others = append(others, uid)
		}
	}
	return g.name, true, others
}

// PostFilter implements framework.PostFilterPlugin. It makes no room: it gives
// up the nodes that a gang holds when one of its pods has none, nor waits until
// pods of lower priority have left one.
func (p *Plugin) PostFilter(_ context.Context, _ fwk.CycleState, pod *v1.Pod, _ fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	if name, held := p.waiting.heldBy(pod); name != "" && !p.nominated()[pod.UID] {
		p.giveUp(name, held, "pod "+pod.Name+" of gang "+name+" has no node")
	}
	return nil, fwk.NewStatus(fwk.Unschedulable)
}

// heldBy lists the pods of the pod's gang that have a node and wait.
func (w *waiting) heldBy(pod *v1.Pod) (name string, held []types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.entries[pod.UID]
	if e == nil {
		return "", nil
	}
	g := w.groups[e.view.Group]
	if g == nil || !g.holdsGang() || g.permitted {
		return "", nil
	}
	for uid := range g.reserved {
		held = append(held, uid)
	}
	return g.name, held
}

func (p *Plugin) giveUp(name string, held []types.UID, why string) {
	for _, uid := range held {
		if w := p.handle.GetWaitingPod(uid); w != nil {
			w.Reject(Name, why)
		}
	}
	if len(held) > 0 {
		gangsEnded.WithLabelValues("rejected").Inc()
	}
	p.waiting.tried(name, time.Now())
	p.endTurn(name)
}

// Unreserve implements framework.ReservePlugin: one pod of a gang without its
// node takes the nodes of those that wait, too. It is idempotent.
func (p *Plugin) Unreserve(_ context.Context, state fwk.CycleState, pod *v1.Pod, _ string) {
	if state.IsPodGroupSchedulingCycle() {
		return
	}
	name, held := p.waiting.unreserve(pod)
	if name != "" {
		p.giveUp(name, held, "another pod of gang "+name+" lost its node")
	}
}

// unreserve returns the gang, and which of its pods wait, where it was not let
// through yet.
func (w *waiting) unreserve(pod *v1.Pod) (name string, held []types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	group, _ := groupOf(pod)
	if e := w.entries[pod.UID]; e != nil {
		group = e.view.Group
		e.issued = nil
	}
	g := w.groups[group]
	if g == nil {
		return "", nil
	}
	_, had := g.reserved[pod.UID]
	delete(g.reserved, pod.UID)
	letThrough := g.permitted
	g.permitted = g.permitted && g.placed() >= g.minimum()
	if !had || !g.holdsGang() || letThrough {
		return "", nil
	}
	for uid := range g.reserved {
		held = append(held, uid)
	}
	return g.name, held
}

// lookAfterGangs finds out of which gangs pods have finished, and evicts, if so
// configured, the pods of those that have run in part for too long.
func (p *Plugin) lookAfterGangs(ctx context.Context, now time.Time) {
	for _, g := range p.partialGangs(now) {
		go p.lookAfter(ctx, g)
	}
}

// partialGangs lists the gangs to look after now; none where another replica
// leads, which looks after them.
func (p *Plugin) partialGangs(now time.Time) []partialGang {
	list := p.waiting.partial(now, p.args.WaitTimeout.Duration)
	if len(list) == 0 || leads(p.leases) {
		return list
	}
	for _, g := range list {
		p.waiting.tryAgain(g.name)
	}
	return nil
}

// lookAfter asks the API server first: the scheduler's informer does not tell a
// pod that has finished from one that was deleted. A gang of which a pod has
// succeeded is on its way out: its pods finish one by one.
func (p *Plugin) lookAfter(ctx context.Context, g partialGang) {
	list, err := p.handle.ClientSet().CoreV1().Pods(g.namespace).List(ctx, metav1.ListOptions{
		FieldSelector: "status.phase=" + string(v1.PodSucceeded), ResourceVersion: "0",
	})
	if err != nil {
		p.logger.Error(err, "Finding out which pods of a gang have finished", "gang", g.name)
		p.waiting.tryAgain(g.name)
		return
	}
	if p.waiting.finished(g.name, list.Items) || !g.late {
		return
	}
	p.logger.Info("Gang runs in part", "gang", g.name, "bound", len(g.pods), "minimum", g.minimum, "evict", p.args.EvictPartialGangs)
	if p.args.EvictPartialGangs {
		gangsEnded.WithLabelValues("evicted").Inc()
		p.evict(ctx, g)
	}
}

type partialGang struct {
	name, namespace string
	minimum         int
	pods            map[types.UID]types.NamespacedName
	late            bool // it has been in part for too long
}

// askAfter is how long a gang in part of which a pod waits goes unasked about.
const askAfter = time.Second

// partial lists gangs, each once for each time that it came to be in part: soon
// where one of its pods waits, perhaps for the place of one that has finished,
// and where it has been so for as long as most, or as its object says. Native
// gangs are listed, too: the scheduler begins them whole, and looks no further.
func (w *waiting) partial(now time.Time, most time.Duration) []partialGang {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []partialGang
	for _, g := range w.groups {
		w.learnLocked(g)
		if g.gang == nil || len(g.bound) == 0 || len(g.done) > 0 || len(g.bound) >= g.minimum() {
			g.partial, g.asked, g.evicted = time.Time{}, false, false
			continue
		}
		if g.partial.IsZero() {
			g.partial = now
		}
		since := now.Sub(g.partial)
		late := since >= g.timeout(most) && !g.evicted
		soon := since >= askAfter && !g.asked && len(g.pending) > 0 && !g.enough()
		if !late && !soon {
			continue
		}
		g.asked, g.evicted = true, g.evicted || late
		copied := make(map[types.UID]types.NamespacedName, len(g.bound))
		for uid, name := range g.bound {
			copied[uid] = name
		}
		one := partialGang{name: g.name, minimum: g.minimum(), pods: copied, late: late}
		for _, name := range g.bound {
			one.namespace = name.Namespace // a gang has one
			break
		}
		out = append(out, one)
	}
	return out
}

// finished takes in which pods have succeeded, and reports whether some are of
// the gang.
func (w *waiting) finished(name string, list []v1.Pod) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	g := w.groups[name]
	if g == nil {
		return true // all of it is gone
	}
	for i := range list {
		of, _ := groupOf(&list[i])
		if of == name && list[i].Status.Phase == v1.PodSucceeded {
			delete(g.bound, list[i].UID)
			g.done[list[i].UID] = true
		}
	}
	if len(g.done) > 0 {
		w.open[name] = true // who waits may go now
	}
	return len(g.done) > 0
}

func (p *Plugin) evict(ctx context.Context, g partialGang) {
	for uid, name := range g.pods {
		err := p.handle.ClientSet().PolicyV1().Evictions(name.Namespace).Evict(ctx, &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name},
			DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}},
		})
		if err != nil {
			p.logger.Error(err, "Evicting a pod of a gang that runs in part", "gang", g.name, "pod", klog.KRef(name.Namespace, name.Name))
			p.waiting.tryAgain(g.name)
		}
	}
}

// tryAgain lets a gang be listed by partial once more.
func (w *waiting) tryAgain(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if g := w.groups[name]; g != nil {
		g.asked, g.evicted, g.partial = false, false, time.Time{}
	}
}
