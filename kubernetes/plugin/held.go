package plugin

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/cotenant/cotenant/kubernetes/plugin/config"
)

// A PodGroup for which a plan has no place stays out of the scheduler's queue,
// where it would be tried again and again, until something has changed. Then one
// of those that wait is tried; its plan is for all, and calls the others that
// have a place in it.

// lookAgain is how long nothing may change before it is looked again: policies
// go by ages, too.
const lookAgain = 5 * time.Second

// lookers is how many PodGroups are tried then: the first may be incomplete.
const lookers = 3

// waitsForRoom is the same for all, so that it is not told anew each time.
const waitsForRoom = "waits for a place: nothing has changed since there was none"

// stillHeld is what a pod of a PodGroup is told of which nothing new can be said;
// nil where it may be tried.
func (p *Plugin) stillHeld(e *entry, mode config.Mode) *fwk.Status {
	if !p.plansPodGroups(e) || mode != config.Enforce || !p.waiting.stillHeld(e, time.Now()) {
		return nil
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, waitsForRoom)
}

// plansPodGroups reports whether a policy for jobs decides on the pod's PodGroup.
func (p *Plugin) plansPodGroups(e *entry) bool {
	return p.args.JobsPolicy != nil && e.view.Gang != nil && e.view.Gang.Native
}

func (w *waiting) stillHeld(e *entry, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := e.issued
	return x != nil && x.Held[e.view.Task.ID] != "" && x.change == w.change && now.Sub(x.at) < lookAgain
}

// leftLocked notes that there may be room that there was not.
func (w *waiting) leftLocked() {
	w.change++
	now := time.Now()
	if w.left[0].IsZero() {
		w.left[0] = now
	}
	w.left[1] = now
}

// room is a pod of each of the first PodGroups that wait, once pods have gone
// and, as it seems, their whole gangs, or when it is time to look again.
func (w *waiting) room(now time.Time, window time.Duration) []*v1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	gone := !w.left[0].IsZero() && ripe(now, w.left[0], w.left[1], window)
	if !gone && now.Sub(w.looked) < lookAgain {
		return nil
	}
	w.looked = now
	if gone {
		w.left = [2]time.Time{}
	}
	var first []*entry
	for _, g := range w.groups {
		if g.gang == nil || !g.gang.Native {
			continue
		}
		var own *entry
		for _, e := range g.pending {
			if own == nil || e.seq < own.seq {
				own = e
			}
		}
		if own != nil {
			first = append(first, own)
		}
	}
	slices.SortFunc(first, func(a, b *entry) int { return cmp.Compare(a.seq, b.seq) })
	var out []*v1.Pod
	for _, e := range first[:min(len(first), lookers)] {
		out = append(out, e.pod)
	}
	return out
}

// watchNodes notes what may alter where pods find a place.
func (c *core) watchNodes() error {
	changed := func() {
		c.waiting.mu.Lock()
		defer c.waiting.mu.Unlock()
		c.waiting.leftLocked()
	}
	_, err := c.handle.SharedInformerFactory().Core().V1().Nodes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed() },
		UpdateFunc: func(old, now any) {
			a, ok := old.(*v1.Node)
			b, same := now.(*v1.Node)
			if !ok || !same || !equality.Semantic.DeepEqual(a.Spec, b.Spec) || !equality.Semantic.DeepEqual(a.Status.Allocatable, b.Status.Allocatable) || !equality.Semantic.DeepEqual(a.Labels, b.Labels) {
				changed()
			}
		},
		DeleteFunc: func(any) { changed() },
	})
	return err
}

// makesRoom is what it means for a pod that waits that another has gone or a
// node has changed: PodGroups that a policy decides on are called when they have
// a place.
func (p *Plugin) makesRoom(_ klog.Logger, pod *v1.Pod, _, _ any) (fwk.QueueingHint, error) {
	if _, gang := groupOf(pod); gang != nil && gang.Native && p.args.JobsPolicy != nil && p.args.ModeOf(pod.Namespace) == config.Enforce {
		return fwk.QueueSkip, nil
	}
	return fwk.Queue, nil
}
