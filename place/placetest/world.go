package placetest

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/place"
)

// Known is Model with a list of workloads.
type Known struct {
	Model
	List []string
}

// Workloads implements interference.Model.
func (k Known) Workloads(string) []string { return k.List }

// Workloads names so many: w00, w01 and on.
func Workloads(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("w%02d", i)
	}
	return names
}

// Rates answers how fast jobs run alone from a formula: class b is slower,
// spreading costs, and w03 cannot run on b. It is a jobs.Alone.
type Rates struct{}

// Progress implements jobs.Alone.
func (Rates) Progress(class, workload string, workers int, span cluster.Span, classes []string) (float64, bool) {
	if !slices.Contains(classes, class) || class == "b" && workload == "w03" {
		return 0, false
	}
	p := 1.0
	if class == "b" {
		p = 0.37 + 0.1*float64(workload[2]-'0')
	}
	if span == cluster.SpanApart && workers > 1 {
		p *= 0.8
	}
	return p, true
}

// Clash is a jobs.Misfits: w01 and w02 do not fit together.
type Clash struct{}

// Has implements jobs.Misfits.
func (Clash) Has(_, key string) bool { return key == "w01+w02" }

// Gang is a job of so many workers, each on a device.
func Gang(name string, workers int, workload string) cluster.Group {
	g := cluster.Group{Name: name, Gang: true}
	for i := range workers {
		g.Tasks = append(g.Tasks, cluster.Task{
			ID: cluster.TaskID(fmt.Sprintf("%s/%d", name, i)), Workload: workload, Role: cluster.Worker, Devices: 1,
		})
	}
	return g
}

// World is a cluster of the classes a and b that runs for some steps: each
// request follows from the last, with queue and running tasks that come and go.
type World struct {
	Scope history.Scope
	View  *cluster.Snapshot
	Queue []cluster.Group
	Kind  Kind

	names int
}

// Kind says what worlds are drawn.
type Kind struct {
	// Most nodes.
	Most int
	// Single draws jobs of one task, on devices that they share, and nothing that
	// limits or constrains them.
	Single bool
	// Loose has one group in ten be no gang.
	Loose bool
}

// DrawWorld draws an empty one.
func DrawWorld(t *rapid.T, k Kind) *World {
	w := &World{Scope: rapid.SampledFrom([]history.Scope{history.ScopeDevice, history.ScopeNode}).Draw(t, "scope"), Kind: k}
	if k.Single {
		w.Scope = history.ScopeDevice
	}
	limited := !k.Single && rapid.Bool().Draw(t, "limited")
	var nodes []cluster.Node
	for i := range rapid.IntRange(1, k.Most).Draw(t, "nodes") {
		n := cluster.Node{Name: fmt.Sprintf("n%d", i), Class: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "class")}
		for d := range rapid.IntRange(0, 3).Draw(t, "devices") {
			n.Devices = append(n.Devices, cluster.Device{Name: fmt.Sprint(d), Slots: rapid.IntRange(0, 3).Draw(t, "slots")})
		}
		if limited {
			n.Capacity = cluster.Resources{cluster.CPU: int64(rapid.IntRange(1, 8).Draw(t, "cpu"))}
			n.Slots = rapid.IntRange(0, 5).Draw(t, "tasks")
		}
		n.Unschedulable = rapid.IntRange(0, 9).Draw(t, "closed") == 0
		nodes = append(nodes, n)
	}
	spec := cluster.Spec{Nodes: nodes}
	if !k.Single && rapid.IntRange(0, 4).Draw(t, "constrained") == 0 {
		spec.Constraints.MaxPerNode = map[string]int{"w00": 1}
		spec.Constraints.AntiAffinity = []cluster.AntiAffinity{{A: "w01", B: "w03"}}
	}
	var err error
	if w.View, err = cluster.NewSnapshot(spec); err != nil {
		t.Fatal(err)
	}
	return w
}

// Arrive has up to four jobs of up to three workers and two parameter servers
// join the queue.
func (w *World) Arrive(t *rapid.T) {
	for range rapid.IntRange(0, 4).Draw(t, "arrivals") {
		name := fmt.Sprintf("j%d", w.names)
		w.names++
		workload := rapid.SampledFrom(Workloads(4)).Draw(t, "workload")
		g := Gang(name, 1, workload)
		if !w.Kind.Single {
			g = Gang(name, rapid.IntRange(1, 3).Draw(t, "workers"), workload)
			if rapid.Bool().Draw(t, "requests") {
				g.Tasks[0].Requests = cluster.Resources{cluster.CPU: 1}
			}
			for i := range rapid.IntRange(0, 2).Draw(t, "servers") {
				g.Tasks = append(g.Tasks, cluster.Task{
					ID: cluster.TaskID(fmt.Sprintf("%s/ps%d", name, i)), Workload: workload + "/ps", Role: cluster.ParameterServer,
					Requests: cluster.Resources{cluster.CPU: 1},
				})
			}
		}
		g.Gang = !w.Kind.Loose || rapid.IntRange(0, 9).Draw(t, "gang") > 0
		g.Arrival = w.now()
		w.Queue = append(w.Queue, g)
	}
}

func (w *World) now() time.Duration { return time.Duration(w.names) * 20 * time.Minute }

// Request asks about the whole queue, now.
func (w *World) Request() place.Request {
	return place.Request{View: w.View, Pending: slices.Clone(w.Queue), Now: w.now()}
}

// Apply runs what was bound, moves what was moved and ends some of what ran.
func (w *World) Apply(t *rapid.T, d place.Decision) {
	bound := map[cluster.TaskID]place.Binding{}
	for _, b := range d.Bind {
		bound[b.Task] = b
	}
	moved := map[cluster.TaskID]place.Move{}
	for _, m := range d.Move {
		moved[m.Task] = m
	}
	var added []cluster.Running
	var queue []cluster.Group
	for _, g := range w.Queue {
		movable := rapid.IntRange(0, 4).Draw(t, "movable") > 0
		var left []cluster.Task
		for _, task := range g.Tasks {
			b, ok := bound[task.ID]
			if !ok {
				left = append(left, task)
				continue
			}
			added = append(added, cluster.Running{Task: task, Node: b.Node, On: b.Devices, Group: g.Name, Movable: movable, Started: w.now()})
		}
		if len(left) > 0 {
			g.Tasks = left
			queue = append(queue, g)
		}
	}
	w.Queue = queue
	ended := map[string]bool{}
	var gone []int
	for i, r := range w.View.Running() {
		if _, ok := ended[r.Group]; !ok {
			ended[r.Group] = rapid.IntRange(0, 3).Draw(t, "ends") == 0
		}
		m, moves := moved[r.ID]
		if ended[r.Group] || moves {
			gone = append(gone, i)
		}
		if moves && !ended[r.Group] {
			r.Node, r.On = m.To, m.Devices
			added = append(added, r)
		}
	}
	view, err := w.View.Next(gone, added)
	if err != nil {
		t.Fatal(err)
	}
	w.View = view
}
