package storm

import (
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// GangLabel names the gang of a pod, for the Ledger.
const GangLabel = "storm.cotenant.dev/gang"

// Ledger follows the pods of gangs and notes what must not happen. Handler
// feeds it from an informer, so that it outlives restarts of the API server.
// It is safe for concurrent use.
type Ledger struct {
	// Limit is how long a gang may be in part: some of its pods bound, others not.
	Limit time.Duration
	// Now is the clock.
	Now func() time.Time

	mu    sync.Mutex
	size  map[string]int                  // pods of a gang
	gangs map[string]map[string]types.UID // gang to pod name to the pod that has the name
	node  map[types.UID]string            // where a pod was bound
	phase map[types.UID]corev1.PodPhase
	part  map[string]time.Time // since when a gang is in part
	wrong []string
	told  map[string]bool // gangs whose being in part was noted
	// Binds counts pods that were bound.
	binds int
}

// NewLedger begins with no gang.
func NewLedger(limit time.Duration) *Ledger {
	return &Ledger{
		Limit: limit, Now: time.Now,
		size: map[string]int{}, gangs: map[string]map[string]types.UID{},
		node: map[types.UID]string{}, phase: map[types.UID]corev1.PodPhase{}, part: map[string]time.Time{}, told: map[string]bool{},
	}
}

// Expect announces a gang of so many pods; Forget says that it is being ended
// on purpose, and may be in part from now on.
func (l *Ledger) Expect(gang string, size int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.size[gang], l.gangs[gang] = size, map[string]types.UID{}
}

// Forget ends the watch over a gang.
func (l *Ledger) Forget(gang string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.size, gang)
	delete(l.part, gang)
}

// Handler feeds the ledger from an informer of pods.
func (l *Ledger) Handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { l.See(o.(*corev1.Pod)) },
		UpdateFunc: func(_, o any) { l.See(o.(*corev1.Pod)) },
		DeleteFunc: func(o any) {
			if unknown, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = unknown.Obj
			}
			l.Gone(o.(*corev1.Pod))
		},
	}
}

// See notes a pod as it is now.
func (l *Ledger) See(p *corev1.Pod) {
	gang := p.Labels[GangLabel]
	l.mu.Lock()
	defer l.mu.Unlock()
	switch at := p.Spec.NodeName; {
	case at == "":
	case l.node[p.UID] == "":
		l.node[p.UID] = at
		l.binds++
	case l.node[p.UID] != at:
		l.wrong = append(l.wrong, fmt.Sprintf("pod %s was bound to %s and then to %s", p.Name, l.node[p.UID], at))
	}
	l.phase[p.UID] = p.Status.Phase
	if l.gangs[gang] != nil {
		l.gangs[gang][p.Name] = p.UID
	}
	l.weigh(gang)
}

// Gone notes that a pod was deleted.
func (l *Ledger) Gone(p *corev1.Pod) {
	gang := p.Labels[GangLabel]
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gangs[gang][p.Name] == p.UID {
		delete(l.gangs[gang], p.Name)
	}
	l.weigh(gang)
}

// weigh notes since when a gang is in part.
func (l *Ledger) weigh(gang string) {
	size, watched := l.size[gang]
	if !watched {
		return
	}
	bound := l.bound(gang)
	if bound == 0 || bound == size {
		delete(l.part, gang)
	} else if _, already := l.part[gang]; !already {
		l.part[gang] = l.Now()
	}
}

func (l *Ledger) bound(gang string) int {
	n := 0
	for _, uid := range l.gangs[gang] {
		if l.node[uid] != "" {
			n++
		}
	}
	return n
}

// Whole tells whether all pods of a gang are bound.
func (l *Ledger) Whole(gang string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size[gang] > 0 && l.bound(gang) == l.size[gang]
}

// All tells whether all pods of a gang are there and in a phase.
func (l *Ledger) All(gang string, phase corev1.PodPhase) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, uid := range l.gangs[gang] {
		if l.phase[uid] != phase {
			return false
		}
	}
	return l.size[gang] > 0 && len(l.gangs[gang]) == l.size[gang]
}

// Excuse takes time in which nothing could be done, such as an outage of the
// API server, off what gangs in part are blamed for.
func (l *Ledger) Excuse(outage time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for gang, since := range l.part {
		l.part[gang] = since.Add(outage)
	}
}

// Wrong lists what must not have happened so far, each thing once.
func (l *Ledger) Wrong() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for gang, since := range l.part {
		if in := l.Now().Sub(since); in > l.Limit && !l.told[gang] {
			l.told[gang] = true
			l.wrong = append(l.wrong, fmt.Sprintf("gang %s has been in part for %.0f s: %d of %d pods are bound", gang, in.Seconds(), l.bound(gang), l.size[gang]))
		}
	}
	return append([]string(nil), l.wrong...)
}

// Binds is how many pods were bound so far.
func (l *Ledger) Binds() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.binds
}
