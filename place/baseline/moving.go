package baseline

import (
	"cmp"
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
)

// Moving lets a policy place what waits, and then moves running tasks that may
// be moved (cluster.Running.Movable), or swaps two of them, where that gains
// most: a greedy descent that stops when no exchange of two nodes is worth its
// moves. Not safe for concurrent use.
type Moving struct {
	Policy    place.Policy
	Model     interference.Model
	Pessimism float64
	// Most is how many tasks may move in one decision. 0 moves none.
	Most int
	// Least is what a move must gain, as a share of a task's performance alone. A
	// move that stops a task for a time c pays where the task, or those beside it,
	// stay for c/Least.
	Least float64

	memory place.Memory
}

// MovingParams are the settings of a Moving by name.
func MovingParams() []Param {
	return []Param{
		{"moves", "0", "most running tasks to move in a decision, where that is allowed"},
		{"gain", "0.05", "what a move must gain at least, as a share of a task's performance alone"},
	}
}

// TakeMoving takes the settings of MovingParams out of a policy's own.
func TakeMoving(params map[string]string) map[string]string {
	moving := map[string]string{}
	for _, p := range MovingParams() {
		if text, given := params[p.Key]; given {
			moving[p.Key] = text
			delete(params, p.Key)
		}
	}
	return moving
}

// NewMoving reads the settings of MovingParams. Without moves it is the policy
// itself.
func NewMoving(p place.Policy, o Options) (place.Policy, error) {
	s := settings{entry: entry{params: MovingParams()}, given: o.Params}
	most, err := s.whole("moves")
	if err != nil {
		return nil, err
	}
	least, err := s.number("gain", 0, 10)
	if err != nil || most == 0 {
		return p, err
	}
	return &Moving{Policy: p, Model: o.Model, Pessimism: o.Pessimism, Most: most, Least: least}, nil
}

// Place implements place.Policy.
func (m *Moving) Place(req place.Request) (place.Decision, error) {
	d, err := m.Policy.Place(req)
	if err != nil || m.Most == 0 {
		return d, err
	}
	moves, err := m.moves(req, d)
	d.Move = append(d.Move, moves...)
	return d, err
}

// moves finds what to move once the decision holds.
func (m *Moving) moves(req place.Request, d place.Decision) ([]place.Move, error) {
	running := req.View.Running()
	var gone []int
	var free []cluster.Task
	for i := range running {
		if r := &running[i]; r.Movable && len(r.On) == 0 {
			gone, free = append(gone, i), append(free, r.Task)
		}
	}
	if len(gone) == 0 {
		return nil, nil
	}
	pending := map[cluster.TaskID]cluster.Task{}
	for _, t := range req.Tasks() {
		pending[t.ID] = t
	}
	var fixed []cluster.Running // what was placed this moment
	for _, b := range d.Bind {
		fixed = append(fixed, cluster.Running{Task: pending[b.Task], Node: b.Node, On: b.Devices})
	}
	view, err := req.View.Next(gone, fixed)
	if err != nil {
		return nil, err
	}
	all := place.Request{View: view, Pending: []cluster.Group{{Name: "running", Tasks: free}}, Objective: req.Objective}
	b := NewBoard(m.memory.Trial(all, m.Model, m.Pessimism))
	s := &moving{exchanges: newExchanges(b), stop: req.Stopped, on: make([][][]int, len(view.Nodes())), to: make([]int, len(free))}
	for i, at := range gone {
		node, _ := view.NodeIndex(running[at].Node)
		k := b.trial.Kind(i)
		b.Put(k, node)
		s.hold(i, k, node)
		s.to[i] = node
	}
	s.descend(m.Most, m.Least*s.unit())
	var moves []place.Move
	for i, at := range gone {
		if to := view.Nodes()[s.to[i]].Name; to != running[at].Node {
			moves = append(moves, place.Move{Task: free[i].ID, To: to})
		}
	}
	return moves, nil
}

// moving is one decision of Moving.
type moving struct {
	*exchanges
	stop func() bool
	on   [][][]int // by node and kind: the tasks there, those that moved last
	to   []int     // by task: the node
}

// unit is what a task alone adds to the objective, in the mean over the kinds
// that run; 0 where it is none that adds up, such as the number of nodes, so
// that every gain counts.
func (s *moving) unit() float64 {
	v := s.trial.Values
	if o := v.Objective(); o.Mean == 0 && o.P99 == 0 {
		return 0
	}
	sum, n := 0.0, 0
	for _, state := range s.live {
		for _, it := range s.states[state].items {
			alone := v.Next(v.Empty(v.Class(s.states[state].config)), s.trial.Workload(int(it.kind)))
			if value := v.Value(alone); value.Known {
				sum += value.Sum
				n++
			}
		}
	}
	return sum / float64(max(1, n))
}

// descend makes the exchanges that gain most, as long as each is worth least a
// task that it moves, until most have moved.
func (s *moving) descend(most int, least float64) {
	s.focus()
	for moved := 0; moved < most && !s.stop(); {
		n := s.one(most-moved, least)
		if n == 0 {
			return
		}
		moved += n
	}
}

// one makes the best exchange of at most so many tasks and returns how many
// it moved.
func (s *moving) one(most int, least float64) int {
	var found []offer
	for i, a := range s.live {
		for _, b := range s.live[i:] {
			if a == b && len(s.nodes[a]) < 2 {
				continue
			}
			e := s.best(a, b, swaps)
			if e.gain <= tiny {
				continue
			}
			n := 1 // moved, or 2 swapped
			if s.tasks(a) == s.tasks(e.a) {
				n = 2
			}
			if worth := e.gain - least*float64(n); n <= most && worth > 0 {
				found = append(found, offer{a, b, e, n, worth})
			}
		}
	}
	slices.SortStableFunc(found, func(x, y offer) int { return cmp.Compare(y.worth, x.worth) })
	for _, f := range found {
		n, m := int(s.nodes[f.a][0]), int(s.nodes[f.b][0])
		if f.a == f.b {
			m = int(s.nodes[f.b][1])
		}
		if s.apply(n, m, f.e) {
			s.carry(f.a, f.e.a, n, m)
			s.carry(f.b, f.e.b, m, n)
			return f.moved
		}
	}
	return 0
}

// offer is an exchange of nodes in two states, how many tasks it moves, and the
// gain above what each of them must bring.
type offer struct {
	a, b  int32
	e     exchange
	moved int
	worth float64
}

// tasks is how many a node in the state has.
func (s *moving) tasks(state int32) (n int32) {
	for _, it := range s.states[state].items {
		n += it.count
	}
	return n
}

func (s *moving) hold(task, kind, node int) {
	if s.on[node] == nil {
		s.on[node] = make([][]int, s.trial.Kinds())
	}
	s.on[node][kind] = append(s.on[node][kind], task)
}

// carry takes what a node has less of in state after than in before to another:
// of a kind a task that has moved before, if there is one, since it stands still
// anyway.
func (s *moving) carry(before, after int32, from, to int) {
	for _, it := range s.states[before].items {
		kind := int(it.kind)
		for range it.count - s.states[after].count(it.kind) {
			tasks := s.on[from][kind]
			last := len(tasks) - 1
			task := tasks[last]
			s.on[from][kind] = tasks[:last]
			s.hold(task, kind, to)
			s.to[task] = to
		}
	}
}
