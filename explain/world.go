package explain

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
)

// World is the cluster as it is, and what a model believes of it.
type World struct {
	spec    cluster.Spec
	model   interference.Model
	class   []string // of each node, as the model calls it
	index   map[string]int
	at      map[cluster.TaskID]int // index in spec.Running
	pending map[cluster.TaskID]cluster.Task
	known   map[string]bool // class and workload
	seen    map[string][]interference.Estimate
}

// NewWorld is the world of a cluster that history/formats read, with at most
// slots tasks on a node; 0 is as many as the node admits. Workloads that the
// model does not know take room, and interfere with nobody as far as is known.
func NewWorld(c formats.Cluster, model interference.Model, slots int) *World {
	w := &World{
		spec: c.Spec, pending: map[cluster.TaskID]cluster.Task{}, model: model, index: map[string]int{}, at: map[cluster.TaskID]int{},
		known: map[string]bool{}, seen: map[string][]interference.Estimate{},
	}
	w.spec.Nodes = slices.Clone(c.Nodes)
	for _, g := range c.Pending {
		for _, t := range g.Tasks {
			w.pending[t.ID] = t
		}
	}
	classes := model.Classes()
	for _, c := range classes {
		for _, name := range model.Workloads(c) {
			w.known[c+"\n"+name] = true
		}
	}
	for i := range w.spec.Nodes {
		n := &w.spec.Nodes[i]
		class := n.Class
		if len(classes) == 1 && !slices.Contains(classes, class) {
			class = "" // the only class there is
		}
		w.class = append(w.class, place.ModelClass(model, class))
		w.index[n.Name] = i
	}
	w.reserve(c.Running)
	for i := range w.spec.Nodes {
		if n := &w.spec.Nodes[i]; slots > 0 && (n.Slots == 0 || n.Slots > slots) {
			n.Slots = slots
		}
	}
	for i, r := range w.spec.Running {
		w.at[r.ID] = i
	}
	return w
}

// reserve takes the tasks of unknown workloads out, with the room that they hold.
func (w *World) reserve(running []cluster.Running) {
	w.spec.Running = nil
	for _, r := range running {
		i, ok := w.index[r.Node]
		if !ok || w.knows(i, r.Workload) {
			w.spec.Running = append(w.spec.Running, r)
			continue
		}
		n := &w.spec.Nodes[i]
		n.Capacity = maps.Clone(n.Capacity)
		for name, amount := range r.Requests {
			n.Capacity[name] = max(0, n.Capacity[name]-amount)
		}
		switch {
		case n.Slots > 1:
			n.Slots--
		case n.Slots == 1:
			n.Unschedulable = true // no slot is left, and 0 would mean no limit
		}
	}
}

// colocations are the tasks of known workloads on each node, by index.
func (w *World) colocations() []cluster.Colocation {
	on := make([]cluster.Colocation, len(w.spec.Nodes))
	for i := range on {
		on[i] = cluster.Colocation{}
	}
	for _, r := range w.spec.Running {
		if i, ok := w.index[r.Node]; ok && w.knows(i, r.Workload) {
			on[i][r.Workload]++
		}
	}
	return on
}

func (w *World) knows(node int, workload string) bool { return w.known[w.class[node]+"\n"+workload] }

// performance of a task of the workload in a co-location on a node; NaN where
// the model is silent.
func (w *World) performance(node int, on cluster.Colocation, workload string) float64 {
	if on[workload] == 0 {
		return math.NaN()
	}
	key := w.class[node] + "\n" + on.Key()
	row, ok := w.seen[key]
	if !ok {
		row = w.model.Predict(w.class[node], history.Rate, []cluster.Colocation{on})[0]
		w.seen[key] = row
	}
	i := slices.Index(on.Workloads(), workload)
	if i < 0 || i >= len(row) || !row[i].Known {
		return math.NaN()
	}
	return row[i].Value
}

// worth is the sum of the performances of all tasks of a co-location; NaN where
// the model is silent about one.
func (w *World) worth(node int, on cluster.Colocation) float64 {
	sum := 0.0
	for _, name := range on.Workloads() {
		sum += float64(on[name]) * w.performance(node, on, name)
	}
	return sum
}

// Alternative is what another node would be worth to a pod, and to those on it.
type Alternative struct {
	Node string `json:"node"`
	// Here says that it is the pod's own node.
	Here bool `json:"here,omitempty"`
	// Fits says that the node has room and no rule forbids it; Why is why not, or
	// why the worth is not known.
	Fits bool   `json:"fits"`
	Why  string `json:"why,omitempty"`
	// Performance is the pod's there; Gain what all known tasks together gain or
	// lose, in tasks at full speed, if the pod were there and not here, or for one
	// that waits, if it came there. Null where the model is silent.
	Performance *float64 `json:"performance"`
	Gain        *float64 `json:"gain"`
	// Neighbours are the known tasks there.
	Neighbours cluster.Colocation `json:"neighbours"`
}

// Alternatives adds to a pod's account what each node would be worth, on the
// nodes as they are now: those that fit first, by what all gain.
func (w *World) Alternatives(a *Account) error {
	if a.pod == nil || a.State == Ended {
		return nil
	}
	id := cluster.TaskID(a.pod.ID())
	task, found := w.pending[id]
	here := -1
	rest := w.spec
	rest.Running = nil
	for _, r := range w.spec.Running {
		if r.ID == id {
			task, found = r.Task, true
			here = w.index[r.Node]
			continue
		}
		rest.Running = append(rest.Running, r)
	}
	if !found {
		a.say("%s %s: what other nodes would be worth to it is not known", w.unknown(), a.Workload)
		return nil
	}
	view, err := cluster.NewSnapshot(rest)
	if err != nil {
		return fmt.Errorf("the cluster cannot be made out: %w", err)
	}
	p := cluster.NewPlacement(view, []cluster.Task{task})
	without := (&World{spec: rest, model: w.model, class: w.class, index: w.index, known: w.known, seen: w.seen}).colocations()
	stays := 0.0
	if here >= 0 {
		stays = w.change(here, without[here], task.Workload)
		w.sayHere(a, here, without[here], task.Workload)
	}
	for i := range w.spec.Nodes {
		alt := Alternative{Node: w.spec.Nodes[i].Name, Here: i == here, Neighbours: without[i]}
		alt.Why = p.Explain(p.Kind(0), i)
		alt.Fits = alt.Why == "" || alt.Here
		switch {
		case !w.knows(i, task.Workload):
			if alt.Why == "" {
				alt.Why = fmt.Sprintf("%s %s on class %q", w.unknown(), task.Workload, w.class[i])
			}
		default:
			alt.Performance = Finite(w.performance(i, without[i].With(task.Workload), task.Workload))
			gain := w.change(i, without[i], task.Workload) - stays
			if alt.Here {
				gain = 0
			}
			alt.Gain = Finite(gain)
			if alt.Gain == nil && alt.Why == "" {
				alt.Why = fmt.Sprintf("%s %s", w.Silent(), without[i].With(task.Workload).Key())
			}
		}
		a.Alternatives = append(a.Alternatives, alt)
	}
	slices.SortStableFunc(a.Alternatives, func(x, y Alternative) int {
		switch {
		case x.Fits != y.Fits:
			return boolFirst(x.Fits)
		case (x.Gain != nil) != (y.Gain != nil):
			return boolFirst(x.Gain != nil)
		case x.Gain != nil && *x.Gain != *y.Gain:
			return boolFirst(*x.Gain > *y.Gain)
		}
		return 0
	})
	a.judge()
	return nil
}

// sayHere says what the pod gains on its node, and what its neighbours lose by it.
func (w *World) sayHere(a *Account, here int, without cluster.Colocation, workload string) {
	with := without.With(workload)
	gain, own := w.change(here, without, workload), w.performance(here, with, workload)
	node := w.spec.Nodes[here].Name
	switch {
	case !w.knows(here, workload):
		return
	case math.IsNaN(own) || math.IsNaN(gain):
		a.say("what it is worth on %s is not known: %s %s", node, w.Silent(), with.Key())
	case without.Tasks() == 0:
		a.say("on %s, without known neighbours, its performance is %.3g (1 is alone)", node, own)
	default:
		a.say("on %s, beside %s as it is now, its performance is %.3g (1 is alone), and it changes that of its neighbours by %+.3g in all", node, without.Key(), own, gain-own)
	}
}

// unknown begins what is said of a workload that is not known, Silent of a
// co-location: a table holds what was measured, and nothing else.
func (w *World) unknown() string {
	if w.model.Kind() == interference.KindTable {
		return "nobody measured"
	}
	return "the model does not know"
}

// Silent is who is silent about a co-location, in words.
func (w *World) Silent() string {
	if w.model.Kind() == interference.KindTable {
		return "nobody measured"
	}
	return "the model is silent about"
}

func boolFirst(first bool) int {
	if first {
		return -1
	}
	return 1
}

// change is what all tasks on a node gain when one of the workload comes.
func (w *World) change(node int, on cluster.Colocation, workload string) float64 {
	if !w.knows(node, workload) {
		return math.NaN()
	}
	return w.worth(node, on.With(workload)) - w.worth(node, on)
}

// Finite is a number with four decimals; nil where it is none.
func Finite(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	x = math.Round(x*1e4) / 1e4
	return &x
}

// judge puts into words how the pod's node compares.
func (a *Account) judge() {
	fit, better := 0, 0
	var best *Alternative
	for i := range a.Alternatives {
		alt := &a.Alternatives[i]
		if !alt.Fits || alt.Here {
			continue
		}
		fit++
		if alt.Gain != nil {
			if best == nil {
				best = alt
			}
			if *alt.Gain > 0 {
				better++
			}
		}
	}
	others, what := len(a.Alternatives), "node"
	if a.State == Placed {
		others, what = others-1, "other node"
	}
	text := fmt.Sprintf("as the nodes are now, %d of %s have room for it", fit, count(others, what))
	switch {
	case best == nil:
	case a.State == Waiting:
		text += fmt.Sprintf("; best is %s: performance %s, all tasks together %+.3g", best.Node, number(best.Performance), *best.Gain)
	case better > 0:
		text += fmt.Sprintf(", and on %d of them all tasks together would do better; best is %s: %+.3g", better, best.Node, *best.Gain)
	default:
		text += ", and on none would all tasks together do better"
	}
	a.say("%s", text)
}

func number(x *float64) string {
	if x == nil {
		return "unknown"
	}
	return fmt.Sprintf("%.3g", *x)
}
