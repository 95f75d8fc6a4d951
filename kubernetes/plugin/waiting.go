package plugin

import (
	"cmp"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/kubernetes/plugin/plan"
	"github.com/cotenant/cotenant/kubernetes/plugin/pods"
)

// entry is a pod that waits for a node, as it was last seen. All but the last
// three fields stay as they are: a changed pod gets a new entry.
type entry struct {
	pod   *v1.Pod
	view  pods.Pod
	kind  func() uint64 // with its labels; both are made out when first asked for
	shape func() uint64 // without
	plain bool
	// since is when it was first seen; seq in which order.
	since time.Time
	seq   int

	// The rest is under the lock of waiting.

	// released pods may be scheduled; the others wait for their group.
	released bool
	// turn says that the scheduler will try it: it is planned for.
	turn bool
	// issued is the plan that it is in; nil where there is none.
	issued *issued
}

// issued is a plan that was made, and with what.
type issued struct {
	*plan.Plan
	at      time.Time
	version string
	policy  string
	number  int
	// change is how much had changed when it was made.
	change int
	nodes  map[string]*v1.Node // as the filters saw them
}

// waiting are the pods that wait for a node, by group, and the gangs.
type waiting struct {
	mu      sync.Mutex
	entries map[types.UID]*entry
	groups  map[string]*group
	// open are the groups with pods that were not let go.
	open map[string]bool
	seq  int
	// change counts what may alter what was decided of a gang that waits: pods that
	// came, ended or were deleted.
	change int
	// left is when the first and the last of the pods went whose places the gangs that
	// wait were not told of yet; zero where there are none.
	left [2]time.Time
	// looked is when it was looked for a place last for PodGroups that wait.
	looked time.Time
	// always says that every pod is planned for at once: nothing tells when its turn
	// comes.
	always bool
	// tells is what a gang's object says; nil where objects are not read.
	tells func(namespace string, gang *pods.Gang) formats.GangObject
}

// group is what is known of the pods of one decision.
type group struct {
	name    string
	gang    *pods.Gang
	pending map[types.UID]*entry
	// reserved have a node in the scheduler's cache, and are not bound as far as is
	// known.
	reserved map[types.UID]string
	// bound run, as the API server says; done have succeeded.
	bound map[types.UID]types.NamespacedName
	done  map[types.UID]bool
	// permitted says that the pods that were reserved were let through.
	permitted bool
	// told is what the gang's object says, and need how many go together where
	// neither it nor the pods do.
	told formats.GangObject
	need int
	// partial is since when the gang runs in part; zero where it does not. asked
	// and evicted say what was done about it.
	partial time.Time
	// tried is how much had changed when the gang found no place last, at triedAt.
	tried   int
	triedAt time.Time
	asked   bool
	evicted bool
}

func newWaiting() *waiting {
	return &waiting{entries: map[types.UID]*entry{}, groups: map[string]*group{}, open: map[string]bool{}}
}

// see takes in a pod that waits.
func (w *waiting) see(pod *v1.Pod, now time.Time) *entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seeLocked(pod, now)
}

func (w *waiting) seeLocked(pod *v1.Pod, now time.Time) *entry {
	old, ok := w.entries[pod.UID]
	if ok && old.pod.ResourceVersion == pod.ResourceVersion {
		return old
	}
	e := &entry{pod: pod, view: pods.Read(pod), plain: pods.Plain(pod)}
	e.kind = sync.OnceValue(func() uint64 { return pods.Kind(pod, true) })
	e.shape = sync.OnceValue(func() uint64 { return pods.Kind(pod, false) })
	if ok {
		e.since, e.seq, e.released, e.turn = old.since, old.seq, old.released, old.turn
		if old.issued != nil && e.kind() == old.kind() {
			e.issued = old.issued
		}
		if old.view.Group != e.view.Group {
			w.leaveLocked(old.view.Group, pod.UID)
		}
	} else {
		w.seq++
		w.change++
		e.since, e.seq, e.turn = now, w.seq, w.always
	}
	w.entries[pod.UID] = e
	if !e.released {
		w.open[e.view.Group] = true
	}
	w.groupLocked(e.view.Group, e.view.Gang).pending[pod.UID] = e
	return e
}

// takesTurn notes that the pod's turn is here.
func (w *waiting) takesTurn(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e := w.entries[uid]; e != nil {
		e.turn = false
	}
}

// issue gives the pods of a batch their plan.
func (w *waiting) issue(batch []*entry, x *issued) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range batch {
		b.issued = x
		if e := w.entries[b.pod.UID]; e != nil {
			e.issued = x
		}
	}
}

// issuedTo is the plan that a pod is in; nil where there is none.
func (w *waiting) issuedTo(uid types.UID) *issued {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e := w.entries[uid]; e != nil {
		return e.issued
	}
	return nil
}

// reserve notes that the scheduler's cache has a node for the pod.
func (w *waiting) reserve(pod *v1.Pod, node string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.entries[pod.UID]
	if e == nil {
		return
	}
	e.turn = false
	w.groupLocked(e.view.Group, e.view.Gang).reserved[pod.UID] = node
}

func (w *waiting) groupLocked(name string, gang *pods.Gang) *group {
	g, ok := w.groups[name]
	if !ok {
		g = &group{
			name: name, pending: map[types.UID]*entry{}, reserved: map[types.UID]string{},
			bound: map[types.UID]types.NamespacedName{}, done: map[types.UID]bool{},
		}
		w.groups[name] = g
	}
	if gang != nil && (g.gang == nil || gang.Minimum > g.gang.Minimum) {
		g.gang = gang
	}
	w.learnLocked(g)
	return g
}

// leaveLocked takes a pod out of a group, and forgets the group with its last.
// A gang that lost a pod is let through only when it is whole again.
func (w *waiting) leaveLocked(name string, uid types.UID) {
	g := w.groups[name]
	if g == nil {
		return
	}
	delete(g.pending, uid)
	g.permitted = g.permitted && g.placed() >= g.minimum()
	if len(g.pending)+len(g.reserved)+len(g.bound) == 0 {
		delete(w.groups, name)
	}
}

// ran takes in that a pod is bound.
func (w *waiting) ran(pod *v1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e, ok := w.entries[pod.UID]; ok {
		delete(w.entries, pod.UID)
		if g := w.groups[e.view.Group]; g != nil {
			delete(g.pending, pod.UID)
		}
	}
	name, gang := groupOf(pod)
	g := w.groupLocked(name, gang)
	delete(g.reserved, pod.UID)
	delete(g.bound, pod.UID)
	switch {
	case pod.Status.Phase == v1.PodSucceeded:
		g.done[pod.UID] = true
		w.leftLocked()
	case pod.Status.Phase == v1.PodFailed || pod.DeletionTimestamp != nil:
		w.leftLocked()
	default:
		g.bound[pod.UID] = types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	}
	w.leaveLocked(name, pod.UID)
}

// gone takes in that a pod is no more.
func (w *waiting) gone(pod *v1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leftLocked()
	name, _ := groupOf(pod)
	if e, ok := w.entries[pod.UID]; ok {
		delete(w.entries, pod.UID)
		name = e.view.Group
	}
	if g := w.groups[name]; g != nil {
		delete(g.reserved, pod.UID)
		delete(g.bound, pod.UID)
		w.leaveLocked(name, pod.UID)
	}
}

func groupOf(pod *v1.Pod) (string, *pods.Gang) {
	view := pods.Read(pod)
	return view.Group, view.Gang
}

// enough reports whether as many pods of the gang are there, waiting or with a
// node, as go together.
func (g *group) enough() bool { return g.there() >= g.minimum() }

// there is how many pods are there, waiting or with a node.
func (g *group) there() int { return len(g.pending) + len(g.bound) + len(g.done) }

// placed is how many have a node.
func (g *group) placed() int { return len(g.reserved) + len(g.bound) + len(g.done) }

// holdsGang reports whether the plugin itself keeps the group together.
func (g *group) holdsGang() bool { return g.gang != nil && !g.gang.Native }

// due lets go the groups that were waited for long enough, or of which all pods
// are there, and lists their pods. A gang goes when its minimum is there; one
// whose number nobody tells when none of its pods has come for as long as quiet,
// and is listed among those that were guessed.
func (w *waiting) due(now time.Time, window, quiet time.Duration, want func(*v1.Pod) (int, bool)) (released []*v1.Pod, guesses []guess) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []*entry
	for name := range w.open {
		g := w.groups[name]
		if g == nil {
			delete(w.open, name)
			continue
		}
		var first, last time.Time
		var one *v1.Pod
		for _, e := range g.pending {
			if e.released {
				continue
			}
			if first.IsZero() || e.since.Before(first) {
				first = e.since
			}
			if e.since.After(last) {
				last = e.since
			}
			one = e.pod
		}
		if first.IsZero() {
			delete(w.open, name)
			continue
		}
		w.learnLocked(g)
		if !ripe(now, first, last, window) && (g.holdsGang() || !g.complete(one, want)) {
			continue
		}
		if g.holdsGang() {
			if g.unnumbered() && now.Sub(last) < quiet || !g.enough() {
				continue
			}
			if g.unnumbered() {
				g.need = len(g.pending)
				guesses = append(guesses, guess{one, g.name, g.need})
			}
		}
		for _, e := range g.pending {
			if !e.released {
				e.released, e.turn = true, !g.holdsGang() // a gang's turn comes later
				out = append(out, e)
			}
		}
	}
	slices.SortFunc(out, func(a, b *entry) int { return cmp.Compare(a.seq, b.seq) })
	released = make([]*v1.Pod, len(out))
	for i, e := range out {
		released[i] = e.pod
	}
	return released, guesses
}

// complete reports whether as many pods are there as the controller of one of
// them wants.
func (g *group) complete(pod *v1.Pod, want func(*v1.Pod) (int, bool)) bool {
	n, ok := want(pod)
	return ok && g.there() >= n
}

// mostWindows bounds, in group windows, how long a stream of pods of one group
// can hold up the first of them.
const mostWindows = 4

func ripe(now, first, last time.Time, window time.Duration) bool {
	return now.Sub(last) >= window || now.Sub(first) >= mostWindows*window
}

// batch lists the pods that are planned for together: those whose turn comes,
// in the order of their groups' priority and arrival, and with queued all gangs
// that wait: what is decided of one depends on the others. admit says which; of
// more than most, the first come, with gangs whole.
func (w *waiting) batch(first types.UID, most int, queued bool, admit func(*entry) bool) []*entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []*entry
	for uid, e := range w.entries {
		g := w.groups[e.view.Group]
		turn := e.turn || queued && e.view.Gang != nil && e.released
		if uid == first || turn && admit(e) && (len(g.reserved) == 0 || !g.holdsGang()) {
			out = append(out, e)
		}
	}
	own := w.entries[first]
	if own == nil {
		return nil // deleted while its turn came
	}
	if g := w.groups[own.view.Group]; own.view.Gang != nil {
		for uid, e := range g.pending { // the whole gang, whoever's turn it is
			if uid != first && !slices.Contains(out, e) && g.reserved[uid] == "" {
				out = append(out, e)
			}
		}
	}
	slices.SortFunc(out, func(a, b *entry) int {
		return cmp.Or(-cmp.Compare(a.view.Priority, b.view.Priority), cmp.Compare(a.seq, b.seq))
	})
	return cut(out, own, most)
}

// changes is how much has changed so far.
func (w *waiting) changes() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.change
}

// called lists the pods of other gangs that a plan places: those that wait for
// their backoff are to be tried now.
func (w *waiting) called(batch []*entry, x *issued, own string) []*v1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []*v1.Pod
	for _, e := range batch {
		if e.view.Gang != nil && e.view.Group != own && x.Node[e.view.Task.ID] != "" {
			out = append(out, e.pod)
		}
	}
	return out
}

// used takes away the plan of pods: it is tried once.
func (w *waiting) used(list []*entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range list {
		if e := w.entries[e.pod.UID]; e != nil {
			e.issued = nil
		}
	}
}

// cut keeps the first of a batch, and the pods of own's gang or own alone.
func cut(batch []*entry, own *entry, most int) []*entry {
	if len(batch) <= most {
		return batch
	}
	whole := map[string]bool{own.view.Group: own.view.Gang != nil}
	var out []*entry
	for i, e := range batch {
		if i < most && e.view.Gang != nil {
			whole[e.view.Group] = true
		}
		if i < most || e == own || whole[e.view.Group] {
			out = append(out, e)
		}
	}
	return out
}

// mostPlanned bounds a plan, firstPlanned the first after a rest, but for gangs.
const (
	mostPlanned  = 4096
	firstPlanned = 128
)
