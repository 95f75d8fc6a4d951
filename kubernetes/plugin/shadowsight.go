package plugin

import (
	"context"
	"sync"
	"time"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/cotenant/cotenant/kubernetes/plugin/plan"
)

// A pod that gets its node while a plan is being made is planned for at the next
// pod's turn, with those that come then. The last of a burst has no next: where
// none comes within nextTurn, it is planned for by what was read at its own turn,
// since the scheduler's snapshot may be read at no other time.

// nextTurn is how long after a plan the next pod's turn is waited for.
const nextTurn = time.Second

// sight is what was read at the turns of the pods that were missed.
type sight struct {
	mu sync.Mutex
	// nodes are copies, as of the last of those turns. They stay from plan to plan,
	// so that only what has changed is copied.
	nodes []fwk.NodeInfo
	// admission is for these nodes; nil where no pod was missed since the last plan.
	admission *admission
	allowed   map[*entry]*plan.Allowed
}

// look takes in the turn of a pod that is not planned for at it; missed says that
// it needs a plan.
func (s *Shadow) look(ctx context.Context, e *entry, missed bool, node string, infos []fwk.NodeInfo) {
	s.sight.mu.Lock()
	missed = missed && s.world.miss(e)
	if missed || s.sight.admission != nil {
		s.sight.see(ctx, s.core, infos)
	}
	if missed {
		s.sight.allowed[e] = s.sight.admission.of(ctx, infos)(e)
	}
	if s.sight.admission != nil {
		s.sight.add(e, node)
	}
	s.sight.mu.Unlock()
	if missed && !s.busy.Load() { // the plan was done before it could see what it has missed
		s.later()
	}
}

// see brings the copies up to date, and asks anew for the pods before where the
// nodes are others, or in another order, than they were.
func (s *sight) see(ctx context.Context, c *core, infos []fwk.NodeInfo) {
	others := len(infos) != len(s.nodes)
	now := make([]fwk.NodeInfo, len(infos)) // a plan may still read the slice before
	for i, info := range infos {
		if i < len(s.nodes) && s.nodes[i].GetGeneration() == info.GetGeneration() {
			now[i] = s.nodes[i]
			continue
		}
		now[i] = info.Snapshot()
		others = others || s.nodes[i].Node().Name != info.Node().Name
	}
	s.nodes = now
	if s.admission == nil {
		s.allowed = map[*entry]*plan.Allowed{}
	}
	if others || s.admission == nil {
		s.admission = c.admission()
		of := s.admission.of(ctx, infos)
		for before := range s.allowed {
			s.allowed[before] = of(before)
		}
	}
}

// add puts a pod on its node, which the snapshot of its own turn has without it.
func (s *sight) add(e *entry, node string) {
	pod, err := framework.NewPodInfo(e.pod)
	if err != nil {
		return // its affinity makes no sense, and the scheduler would have refused it
	}
	for i, info := range s.nodes {
		if info.Node().Name == node {
			s.nodes[i] = info.Snapshot()
			s.nodes[i].AddPodInfo(pod)
		}
	}
}

// begin adds the pods that were missed to a batch that is planned for now, and
// hands out what was read of them.
func (s *Shadow) begin(batch []*entry) (all []*entry, nodes []fwk.NodeInfo, allowed map[*entry]*plan.Allowed) {
	s.sight.mu.Lock()
	defer s.sight.mu.Unlock()
	nodes, allowed = s.sight.nodes, s.sight.allowed
	s.sight.admission, s.sight.allowed = nil, nil
	return s.world.begin(batch), nodes, allowed
}

// free ends a plan.
func (s *Shadow) free() {
	s.busy.Store(false)
	s.later()
}

// later sees to it that pods which were missed are planned for, whether or not
// another pod's turn comes.
func (s *Shadow) later() {
	if s.world.lacks() {
		s.rest.Reset(nextTurn)
	}
}

// catchUp plans for the pods that were missed since the last plan.
func (s *Shadow) catchUp() {
	if !s.busy.CompareAndSwap(false, true) {
		return // the plan that is being made has them, or ends with another rest
	}
	defer s.free()
	batch, nodes, allowed := s.begin(nil)
	if len(batch) == 0 {
		return
	}
	now := s.brain.Now()
	groups := s.groups(batch, func(e *entry) *plan.Allowed { return allowed[e] })
	s.planBeside(now, batch, groups, s.spec(now, nodes))
}
