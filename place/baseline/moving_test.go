package baseline_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/cluster/clustertest"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/baseline"
	"github.com/cotenant/cotenant/place/placetest"
)

// drawMovable is a request in which most of what runs may move.
func drawMovable(t *rapid.T) place.Request {
	spec, groups := clustertest.Random(drawn{t})
	for i := range spec.Running {
		spec.Running[i].Movable = rapid.IntRange(0, 3).Draw(t, "movable") > 0
	}
	objective := rapid.SampledFrom(objectives).Draw(t, "objective")
	if objective.Traffic > 0 {
		placetest.Connect(t, &spec, clustertest.Workloads...)
	}
	view, err := cluster.NewSnapshot(spec)
	if err != nil {
		t.Fatal(err)
	}
	return place.Request{View: view, Pending: groups, Objective: objective}
}

// after is the cluster once the decision holds, with moves or without.
func after(t *rapid.T, req place.Request, d place.Decision, moves bool) *cluster.Snapshot {
	pending := map[cluster.TaskID]cluster.Task{}
	for _, task := range req.Tasks() {
		pending[task.ID] = task
	}
	var added []cluster.Running
	for _, b := range d.Bind {
		added = append(added, cluster.Running{Task: pending[b.Task], Node: b.Node, On: b.Devices})
	}
	to := map[cluster.TaskID]string{}
	for _, m := range d.Move {
		to[m.Task] = m.To
	}
	var gone []int
	for i, r := range req.View.Running() {
		if node, ok := to[r.ID]; ok && moves {
			gone = append(gone, i)
			r.Node = node
			added = append(added, r)
		}
	}
	view, err := req.View.Next(gone, added)
	if err != nil {
		t.Fatal(err)
	}
	return view
}

func valueOf(view *cluster.Snapshot, o place.Objective, m placetest.Model) float64 {
	return place.NewTrial(place.Request{View: view, Objective: o}, m, 0).Value()
}

// TestPropertyMoves holds moves to what they promise: what was placed stays
// placed, only what may move does, no more than allowed, under all constraints,
// and each for at least the gain asked for.
func TestPropertyMoves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req := drawMovable(t)
		m := placetest.Model{Names: []string{"", "fast"}}
		inner, err := baseline.New("spread", baseline.Options{})
		if err != nil {
			t.Fatal(err)
		}
		without, err := inner.Place(req)
		if err != nil {
			t.Fatal(err)
		}
		most, least := rapid.IntRange(1, 6).Draw(t, "most"), rapid.SampledFrom([]float64{0, 0.05, 0.3}).Draw(t, "least")
		d, err := (&baseline.Moving{Policy: inner, Model: m, Most: most, Least: least}).Place(req)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(without.Bind, d.Bind) || !reflect.DeepEqual(without.Hold, d.Hold) {
			t.Fatalf("placed\n%v, without moves\n%v", d, without)
		}
		if len(d.Move) > most {
			t.Fatalf("%d moves, allowed are %d", len(d.Move), most)
		}
		movable := map[cluster.TaskID]cluster.Running{}
		for _, r := range req.View.Running() {
			if r.Movable {
				movable[r.ID] = r
			}
		}
		var tasks []cluster.Task
		for _, move := range d.Move {
			r, ok := movable[move.Task]
			if !ok || r.Node == move.To || len(r.On) > 0 {
				t.Fatalf("moves %v of %+v", move, r)
			}
			delete(movable, move.Task)
			tasks = append(tasks, r.Task)
		}
		before, behind := after(t, req, d, false), after(t, req, d, true)
		checkMoves(t, req, d, before, tasks)
		o := req.Objective.Or()
		rise := valueOf(behind, o, m) - valueOf(before, o, m)
		if o.Worst == 0 && rise < -1e-9 || o == place.MeanPerformance && len(d.Move) > 0 && rise <= 0 {
			t.Fatalf("%d moves change the objective by %v", len(d.Move), rise)
		}
	})
}

// checkMoves takes the moved tasks off and puts them where they go.
func checkMoves(t *rapid.T, req place.Request, d place.Decision, before *cluster.Snapshot, tasks []cluster.Task) {
	moved := map[cluster.TaskID]bool{}
	for _, move := range d.Move {
		moved[move.Task] = true
	}
	var gone []int
	for i, r := range before.Running() {
		if moved[r.ID] {
			gone = append(gone, i)
		}
	}
	without, err := before.Next(gone, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, was := cluster.NewPlacement(without, tasks), cluster.NewPlacement(before, tasks)
	for i, move := range d.Move {
		node, _ := req.View.NodeIndex(move.To)
		if r := p.Check(p.Kind(i), node); r != cluster.Fits && r != cluster.Skewed {
			t.Fatalf("%v: %s", move, p.Explain(p.Kind(i), node))
		}
		p.Put(p.Kind(i), node)
	}
	for w, name := range p.Workloads() {
		if p.Skew(w) > was.Skew(w) {
			t.Fatalf("the spread of %s rises from %d to %d", name, was.Skew(w), p.Skew(w))
		}
	}
}

// TestPropertyMovesLeaveNothingWorthIt compares with all moves and swaps there
// are, where any number is allowed and nodes are free of rules that span them.
func TestPropertyMovesLeaveNothingWorthIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := cluster.Nodes("", rapid.IntRange(2, 4).Draw(t, "nodes"), 0, 3)
		spec := cluster.Spec{Nodes: nodes}
		for n := range nodes {
			for i := range rapid.IntRange(0, 3).Draw(t, "tasks") {
				task := cluster.Task{ID: cluster.TaskID(nodes[n].Name + string(rune('a'+i))), Workload: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "workload")}
				spec.Running = append(spec.Running, cluster.Running{Task: task, Node: nodes[n].Name, Movable: true})
			}
		}
		view, err := cluster.NewSnapshot(spec)
		if err != nil {
			t.Fatal(err)
		}
		m := placetest.Model{Names: []string{"", "fast"}}
		req := place.Request{View: view, Objective: place.MeanPerformance}
		inner, _ := baseline.New("spread", baseline.Options{})
		d, err := (&baseline.Moving{Policy: inner, Model: m, Most: math.MaxInt, Least: 0}).Place(req)
		if err != nil {
			t.Fatal(err)
		}
		end := after(t, req, d, true)
		reached := valueOf(end, place.MeanPerformance, m)
		running := end.Running()
		for i := range running {
			for n := range nodes {
				if v, ok := changed(t, end, m, i, nodes[n].Name, -1); ok && v > reached+1e-9 {
					t.Fatalf("moving %s to %s gives %v, the moves %v", running[i].ID, nodes[n].Name, v, reached)
				}
			}
			for j := range i {
				if v, ok := changed(t, end, m, i, running[j].Node, j); ok && v > reached+1e-9 {
					t.Fatalf("swapping %s and %s gives %v, the moves %v", running[i].ID, running[j].ID, v, reached)
				}
			}
		}
	})
}

// changed is the objective with task i on a node, and task j, if any, in its
// place.
func changed(t *rapid.T, view *cluster.Snapshot, m placetest.Model, i int, node string, j int) (float64, bool) {
	gone, running := []int{i}, view.Running()
	added := []cluster.Running{running[i]}
	added[0].Node = node
	if j >= 0 {
		gone = []int{j, i}
		other := running[j]
		other.Node = running[i].Node
		added = append(added, other)
	}
	next, err := view.Next(gone, added)
	if err != nil {
		t.Fatal(err)
	}
	on := map[string]int{}
	for _, r := range next.Running() {
		on[r.Node]++
	}
	return valueOf(next, place.MeanPerformance, m), on[node] <= 3
}

func TestMovingReadsItsSettings(t *testing.T) {
	p, _ := baseline.New("spread", baseline.Options{})
	for _, c := range []struct {
		params map[string]string
		moves  bool
		says   string
	}{
		{nil, false, ""},
		{map[string]string{"gain": "0.1"}, false, ""},
		{map[string]string{"moves": "2", "gain": "0.1"}, true, ""},
		{map[string]string{"moves": "-1"}, false, "moves"},
		{map[string]string{"moves": "1", "gain": "NaN"}, false, "gain"},
	} {
		got, err := baseline.NewMoving(p, baseline.Options{Model: placetest.Model{}, Params: c.params})
		if _, moves := got.(*baseline.Moving); moves != c.moves || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %T, %v", c.params, got, err)
		}
	}
}
