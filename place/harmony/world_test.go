package harmony

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/jobs"
	"github.com/cotenant/cotenant/place/placetest"
)

// rates is a jobs.Alone that answers from a formula: class b is slower,
// spreading costs, and w03 cannot run on b.
type rates struct{}

func (rates) Progress(class, workload string, workers int, span cluster.Span, classes []string) (float64, bool) {
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

// clash is a jobs.Misfits: w01 and w02 do not fit together.
type clash struct{}

func (clash) Has(_, key string) bool { return key == "w01+w02" }

func newSpeeds(scope history.Scope) *jobs.Speeds {
	m := known{placetest.Model{Names: []string{"a", "b"}, Silence: 5}, workloadNames(4)}
	return jobs.NewSpeeds(m, jobs.Options{Scope: scope, Alone: rates{}, Misfits: clash{}, Pessimism: .5})
}

// world draws a cluster that runs for some steps: each request follows from
// the last, with queue and running tasks that come and go.
type world struct {
	scope  history.Scope
	view   *cluster.Snapshot
	queue  []cluster.Group
	names  int
	single bool // single-task jobs only
}

func drawWorld(t *rapid.T, single bool, most int) *world {
	w := &world{scope: rapid.SampledFrom([]history.Scope{history.ScopeDevice, history.ScopeNode}).Draw(t, "scope"), single: single}
	if single {
		w.scope = history.ScopeDevice
	}
	limited := !single && rapid.Bool().Draw(t, "limited")
	var nodes []cluster.Node
	for i := range rapid.IntRange(1, most).Draw(t, "nodes") {
		n := cluster.Node{Name: fmt.Sprintf("n%d", i), Class: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "class")}
		for d := range rapid.IntRange(1, 3).Draw(t, "devices") {
			n.Devices = append(n.Devices, cluster.Device{Name: fmt.Sprint(d), Slots: rapid.IntRange(1, 3).Draw(t, "slots")})
		}
		if limited {
			n.Capacity = cluster.Resources{cluster.CPU: int64(rapid.IntRange(1, 8).Draw(t, "cpu"))}
			n.Slots = rapid.IntRange(0, 5).Draw(t, "tasks")
		}
		n.Unschedulable = rapid.IntRange(0, 9).Draw(t, "closed") == 0
		nodes = append(nodes, n)
	}
	spec := cluster.Spec{Nodes: nodes}
	if !single && rapid.IntRange(0, 4).Draw(t, "constrained") == 0 {
		spec.Constraints.MaxPerNode = map[string]int{"w00": 1}
	}
	var err error
	if w.view, err = cluster.NewSnapshot(spec); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) arrive(t *rapid.T) {
	for range rapid.IntRange(0, 4).Draw(t, "arrivals") {
		name := fmt.Sprintf("j%d", w.names)
		w.names++
		workload := rapid.SampledFrom(workloadNames(4)).Draw(t, "workload")
		g := gangOf(name, 1, workload)
		if !w.single {
			g = gangOf(name, rapid.IntRange(1, 3).Draw(t, "workers"), workload)
			for i := range rapid.IntRange(0, 2).Draw(t, "servers") {
				g.Tasks = append(g.Tasks, cluster.Task{
					ID: cluster.TaskID(fmt.Sprintf("%s/ps%d", name, i)), Workload: workload + "/ps", Role: cluster.ParameterServer,
					Requests: cluster.Resources{cluster.CPU: 1},
				})
			}
		}
		g.Arrival = w.now()
		w.queue = append(w.queue, g)
	}
}

func (w *world) now() time.Duration { return time.Duration(w.names) * 20 * time.Minute }

func (w *world) request() place.Request {
	return place.Request{View: w.view, Pending: slices.Clone(w.queue), Now: w.now()}
}

// apply runs what was bound, moves what was moved and ends some of what ran.
func (w *world) apply(t *rapid.T, d place.Decision) {
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
	for _, g := range w.queue {
		if _, ok := bound[g.Tasks[0].ID]; !ok {
			queue = append(queue, g)
			continue
		}
		movable := rapid.IntRange(0, 4).Draw(t, "movable") > 0
		for _, task := range g.Tasks {
			b := bound[task.ID]
			added = append(added, cluster.Running{Task: task, Node: b.Node, On: b.Devices, Group: g.Name, Movable: movable, Started: w.now()})
		}
	}
	w.queue = queue
	ended := map[string]bool{}
	var gone []int
	for i, r := range w.view.Running() {
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
	view, err := w.view.Next(gone, added)
	if err != nil {
		t.Fatal(err)
	}
	w.view = view
}

// after is who runs where once a decision is carried out.
func after(t *rapid.T, req place.Request, d place.Decision) []cluster.Running {
	running := slices.Clone(req.View.Running())
	for _, m := range d.Move {
		i := slices.IndexFunc(running, func(r cluster.Running) bool { return r.ID == m.Task })
		if i < 0 || !running[i].Movable {
			t.Fatalf("task %s is moved and does not run or must not be", m.Task)
		}
		running[i].Node, running[i].On = m.To, m.Devices
	}
	for _, g := range req.Pending {
		for _, task := range g.Tasks {
			if i := slices.IndexFunc(d.Bind, func(b place.Binding) bool { return b.Task == task.ID }); i >= 0 {
				running = append(running, cluster.Running{Task: task, Group: g.Name, Node: d.Bind[i].Node, On: d.Bind[i].Devices, Started: req.Now})
			}
		}
	}
	return running
}
