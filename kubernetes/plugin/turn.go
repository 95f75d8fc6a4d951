package plugin

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
)

// turn is whose gang's pods the scheduler is given. The gangs that the plugin
// holds together are placed one at a time: two that each had some of the
// other's nodes would wait for ever. The pods of the others stay out of the
// scheduler's queue, where each would be tried in vain.
type turn struct {
	of    string // the gang; "" is nobody's
	since time.Time
	// called is when those of its pods without a node were called last.
	called time.Time
}

// waitsForTurn is the same for all, so that it is not told anew each time.
const waitsForTurn = "waits for its turn: gangs are placed one at a time"

// mostIdle is how long a gang may have its turn while none of its pods has a
// node or is in the scheduler's queue, mostQueued while none has a node,
// callAgain how often its other pods are called while some have one, and
// triedAgain how long one that found no place rests where nothing has changed.
const (
	mostIdle   = time.Second
	callAgain  = time.Second
	mostQueued = 30 * time.Second
	triedAgain = 5 * time.Second
)

// foundNone is what a pod is told whose gang found no place a moment ago.
const foundNone = "its gang found no nodes for all of its pods, and is tried again when something has changed"

// takeTurn says why it is not a gang's turn, "" where it is. Nobody's turn is
// anybody's, but for a gang that rests: of its pods each that fits alone would
// call the others again, for ever.
func (p *Plugin) takeTurn(name string) (why string) {
	p.turnMu.Lock()
	defer p.turnMu.Unlock()
	switch now := time.Now(); {
	case p.turn.of == name:
	case p.turn.of != "":
		return waitsForTurn
	case p.waiting.rests(name, now):
		return foundNone
	default:
		p.turn = turn{name, now, now}
	}
	return ""
}

// rests reports whether a gang found no place lately, and nothing has changed.
func (w *waiting) rests(name string, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	g := w.groups[name]
	return g != nil && g.rests(w.change, now)
}

func (g *group) rests(change int, now time.Time) bool {
	return g.tried == change && now.Sub(g.triedAt) < triedAgain
}

// endTurn gives the next gang its turn. No lock may be held.
func (p *Plugin) endTurn(name string) {
	p.turnMu.Lock()
	var list []*v1.Pod
	if p.turn.of == name {
		list = p.nextLocked(time.Now())
	}
	p.turnMu.Unlock()
	p.activate(list)
}

// passTurn ends a turn in which nothing happens, and gives one where it is
// nobody's. No lock may be held.
func (p *Plugin) passTurn(now time.Time) {
	p.turnMu.Lock()
	var list []*v1.Pod
	switch of := p.turn.of; {
	case of == "":
		list = p.nextLocked(now)
	case now.Sub(p.turn.since) >= mostIdle && p.waiting.idle(of) || now.Sub(p.turn.since) >= mostQueued && !p.waiting.unfinished(of):
		p.waiting.tried(of, now)
		list = p.nextLocked(now)
	case now.Sub(p.turn.called) >= callAgain && p.waiting.unfinished(of):
		// Room that was made for one may go unnoticed: the scheduler's preemption
		// keeps its pod out of the queue until pods that have gone already go.
		p.turn.called = now
		list = p.waiting.withoutNode(of)
	}
	p.turnMu.Unlock()
	p.activate(list)
}

func (p *Plugin) nextLocked(now time.Time) []*v1.Pod {
	name, list := p.waiting.next(now)
	p.turn = turn{name, now, now}
	return list
}

// holdsGang reports whether the plugin itself keeps the pod's group together.
func (p *Plugin) holdsGang(e *entry) bool {
	p.waiting.mu.Lock()
	defer p.waiting.mu.Unlock()
	g := p.waiting.groups[e.view.Group]
	return g != nil && g.holdsGang()
}

// unfinished reports whether some pods of a gang have a node and it is not
// permitted.
func (w *waiting) unfinished(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	g := w.groups[name]
	return g != nil && len(g.reserved) > 0 && !g.permitted
}

// withoutNode lists the pods of a gang that have no node.
func (w *waiting) withoutNode(name string) (list []*v1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if g := w.groups[name]; g != nil {
		for uid, e := range g.pending {
			if e.released && g.reserved[uid] == "" {
				list = append(list, e.pod)
			}
		}
	}
	return list
}

// idle reports whether no pod of a gang has a node that it waits on, or is in
// the scheduler's queue.
func (w *waiting) idle(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	g := w.groups[name]
	if g == nil {
		return true
	}
	for _, e := range g.pending {
		if e.turn {
			return false
		}
	}
	return len(g.reserved) == 0 || g.permitted
}

// tried notes that a gang found no place, as things are.
func (w *waiting) tried(name string, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if g := w.groups[name]; g != nil {
		g.tried, g.triedAt = w.change, now
		for _, e := range g.pending {
			e.turn = false
		}
	}
}

// next is the gang whose turn comes, and its first pod, which is tried for all:
// a gang that runs in part before others, then by priority and arrival. Gangs
// that found no place are left out until something has changed.
func (w *waiting) next(now time.Time) (name string, list []*v1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var best *group
	var first *entry
	for _, g := range w.groups {
		if !g.holdsGang() || !g.enough() || g.rests(w.change, now) {
			continue
		}
		var own *entry
		for uid, e := range g.pending {
			if e.released && g.reserved[uid] == "" && (own == nil || e.seq < own.seq) {
				own = e
			}
		}
		if own != nil && (best == nil || before(g, own, best, first)) {
			best, first = g, own
		}
	}
	if best == nil {
		return "", nil
	}
	return best.name, []*v1.Pod{first.pod}
}

// follow lets the pods of a gang be tried, too, of which the first has a place: by
// its plan, or, where there is none, by the scheduler. Before that they must not
// be: each would be refused as it was, and call the others past their backoff.
// Those for which room is made are called when it is there. No lock may be held.
func (p *Plugin) follow(first *v1.Pod) {
	list := p.waiting.followers(first.UID)
	if len(list) > 0 {
		nominated := p.nominated()
		list = slices.DeleteFunc(list, func(pod *v1.Pod) bool { return nominated[pod.UID] })
	}
	p.activate(list)
}

func (w *waiting) followers(first types.UID) []*v1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.entries[first]
	if e == nil {
		return nil
	}
	g := w.groups[e.view.Group]
	if g == nil || !g.holdsGang() || len(g.reserved) > 0 {
		return nil
	}
	var list []*v1.Pod
	for _, e := range g.pending {
		if e.released && !e.turn && e.pod.UID != first {
			list = append(list, e.pod)
		}
	}
	return list
}

func before(a *group, first *entry, b *group, other *entry) bool {
	part := func(g *group) int { return min(1, len(g.bound)) }
	return cmp.Or(
		cmp.Compare(part(b), part(a)),
		cmp.Compare(other.view.Priority, first.view.Priority),
		cmp.Compare(first.seq, other.seq),
	) < 0
}

// outOfTurn is what a pod of a gang is told whose turn it is not; nil where the
// pod may go on. No lock may be held.
func (p *Plugin) outOfTurn(e *entry) *fwk.Status {
	if !p.holdsGang(e) {
		return nil
	}
	if why := p.takeTurn(e.view.Group); why != "" {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, why)
	}
	return nil
}
