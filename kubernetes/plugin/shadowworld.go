package plugin

import (
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cotenant/cotenant/cluster"
)

// shadowWorld is where the plans of the mode shadow have the pods, and which pods
// are yet to be planned for or told of.
type shadowWorld struct {
	mu sync.Mutex
	// at are the nodes that plans had, as long as the pods are there.
	at map[types.UID]string
	// plans are those of pods that have no node yet.
	plans map[types.UID]*issued
	// missed came while a plan was made that is not for them; planned are those that
	// it is made for.
	missed  []*entry
	planned map[types.UID]bool
	// late have a node, and a plan to come.
	late map[types.UID]*late
}

// late is a pod that is bound before its plan is done.
type late struct {
	pod      *v1.Pod
	decision *Decision
}

// miss notes a pod that the next plan is to be for; ok is false where it has a
// plan by now or one is being made for it, and where too many are noted.
func (w *shadowWorld) miss(e *entry) (ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.planned[e.pod.UID] || w.plans[e.pod.UID] != nil || len(w.missed) >= mostPlanned {
		return false
	}
	w.missed = append(w.missed, e)
	return true
}

// lacks reports whether pods were missed for which no plan is being made.
func (w *shadowWorld) lacks() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.missed) > 0
}

// begin adds the pods that were missed to a batch that will be planned for.
func (w *shadowWorld) begin(batch []*entry) []*entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.planned = map[types.UID]bool{}
	for _, e := range batch {
		w.planned[e.pod.UID] = true
	}
	var before []*entry
	for _, e := range w.missed {
		if !w.planned[e.pod.UID] && w.plans[e.pod.UID] == nil {
			w.planned[e.pod.UID] = true
			before = append(before, e)
		}
	}
	w.missed = nil
	return slices.Concat(before, batch) // they came first
}

// isPlanned reports whether a plan is being made for the pod: it is then nowhere.
func (w *shadowWorld) isPlanned(id cluster.TaskID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.planned[types.UID(id)]
}

// where is the node that a plan had for the pod; "" where none did.
func (w *shadowWorld) where(id cluster.TaskID) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at[types.UID(id)]
}

// take hands out the plan of a pod that has its node. Where that is yet to come,
// it says so, and end hands the pod back.
func (w *shadowWorld) take(l *late) (x *issued, soon bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	uid := l.pod.UID
	if x := w.plans[uid]; x != nil {
		delete(w.plans, uid)
		return x, false
	}
	if !w.planned[uid] && !slices.ContainsFunc(w.missed, func(e *entry) bool { return e.pod.UID == uid }) {
		return nil, false
	}
	if w.late == nil {
		w.late = map[types.UID]*late{}
	}
	w.late[uid] = l
	return nil, true
}

// end takes in a plan, and returns those of its pods that have nodes already.
// What is neither in the cluster nor in the batch is forgotten.
func (w *shadowWorld) end(batch []*entry, spec cluster.Spec, x *issued) (bound []*late) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, plans := map[types.UID]string{}, map[types.UID]*issued{}
	for _, r := range spec.Running {
		uid := types.UID(r.ID)
		if node, ok := w.at[uid]; ok {
			at[uid] = node
		}
	}
	for uid, p := range w.plans {
		if x.number-p.number < keepPlans {
			plans[uid] = p
			at[uid] = w.at[uid]
		}
	}
	for _, e := range batch {
		uid := e.pod.UID
		if node := x.Node[cluster.TaskID(uid)]; node != "" {
			at[uid] = node
		}
		if l := w.late[uid]; l != nil {
			bound = append(bound, l)
			delete(w.late, uid)
			continue
		}
		plans[uid] = x
	}
	w.at, w.plans, w.planned = at, plans, nil
	return bound
}

// keepPlans is for how many plans more one is kept for a pod that has no node.
const keepPlans = 1000
