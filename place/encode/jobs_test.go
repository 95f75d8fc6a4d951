package encode

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/internal/num"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/jobs"
	"github.com/cotenant/cotenant/place/placetest"
)

// known is placetest.Model with a list of workloads.
type known struct{ placetest.Model }

func (known) Workloads(string) []string { return names }

var names = []string{"w0", "w1", "w2", "w3"}

// draw is a cluster with tasks on it, and a queue.
func draw(t *rapid.T) (history.Scope, place.Request) {
	scope := rapid.SampledFrom([]history.Scope{history.ScopeDevice, history.ScopeNode}).Draw(t, "scope")
	now := time.Duration(rapid.IntRange(0, 10_000).Draw(t, "hours")) * time.Hour
	var spec cluster.Spec
	n := 0
	for i := range rapid.IntRange(1, 5).Draw(t, "nodes") {
		node := cluster.Node{Name: fmt.Sprintf("n%d", i), Class: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "class")}
		for d := range rapid.IntRange(1, 3).Draw(t, "devices") {
			node.Devices = append(node.Devices, cluster.Device{Name: fmt.Sprint(d), Slots: rapid.IntRange(1, 3).Draw(t, "slots")})
			for range rapid.IntRange(0, node.Devices[d].Slots).Draw(t, "tasks") {
				n++
				spec.Running = append(spec.Running, cluster.Running{
					Task: cluster.Task{ID: cluster.TaskID(fmt.Sprintf("r%d", n)), Workload: rapid.SampledFrom(names).Draw(t, "workload"), Role: cluster.Worker, Devices: 1},
					Node: node.Name, On: []int{d}, Group: fmt.Sprintf("r%d", n/max(1, rapid.IntRange(1, 2).Draw(t, "gang"))),
					Started: time.Duration(rapid.Float64Range(0, 1).Draw(t, "started") * float64(now)),
				})
			}
		}
		spec.Nodes = append(spec.Nodes, node)
	}
	view, err := cluster.NewSnapshot(spec)
	if err != nil {
		t.Fatal(err)
	}
	req := place.Request{View: view, Now: now}
	for i := range rapid.IntRange(1, 6).Draw(t, "queue") {
		g := cluster.Group{Name: fmt.Sprintf("q%d", i), Gang: true, Arrival: time.Duration(rapid.Float64Range(0, 1).Draw(t, "arrival") * float64(now))}
		w := rapid.SampledFrom(names).Draw(t, "workload")
		for k := range rapid.IntRange(1, 3).Draw(t, "workers") {
			g.Tasks = append(g.Tasks, cluster.Task{ID: cluster.TaskID(fmt.Sprintf("q%d/%d", i, k)), Workload: w, Role: cluster.Worker, Devices: 1})
		}
		req.Pending = append(req.Pending, g)
	}
	return scope, req
}

func board(scope history.Scope, req place.Request) (*jobs.Board, *Jobs) {
	b := jobs.NewBoard(jobs.NewSpeeds(known{placetest.Model{Names: []string{"a", "b"}, Silence: 5}}, jobs.Options{Scope: scope}))
	e := NewJobs(b, DefaultThreshold(b.Speeds().Scope()))
	b.Reset(req)
	e.Begin()
	return b, e
}

// options of a gang: waiting, and for each candidate of its first task the
// others wherever they fit.
func options(b *jobs.Board, g int) []Option {
	list := []Option{{}}
	tasks := b.Tasks(g)
	first, _ := b.Candidates(int(tasks[0]))
	for _, c := range slices.Clone(first) {
		mark := b.Mark()
		o := Option{Sites: []int32{c.Site}, Alike: c.Alike}
		b.Put(int(tasks[0]), int(c.Site))
		for _, t := range tasks[1:] {
			if found, _ := b.Candidates(int(t)); len(found) > 0 {
				o.Sites = append(o.Sites, found[len(found)-1].Site)
				b.Put(int(t), int(found[len(found)-1].Site))
			}
		}
		b.Undo(mark)
		if len(o.Sites) == len(tasks) {
			list = append(list, o)
		}
	}
	return list
}

func TestThresholdFallsWithTheQueue(t *testing.T) {
	h := Threshold{Free: 0.6, Queued: 0.2, Fall: 2}
	for queue, want := range map[float64]float64{0: 0.6, math.Ln2 / 2: 0.4, 100: 0.2} {
		if got := h.At(queue); math.Abs(got-want) > 1e-12 {
			t.Errorf("%g jobs for each site: threshold %g, want %g", queue, got, want)
		}
	}
	if f := Fixed(0.3); f.At(0) != 0.3 || f.At(7) != 0.3 {
		t.Errorf("%+v is not fixed", f)
	}
}

func TestPropertyFeaturesAreOfUnitSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scope, req := draw(t)
		b, e := board(scope, req)
		for i := range b.Pending() {
			g := b.Gang(i)
			list := options(b, g)
			candidates, context := e.Encode(g, list)
			for k := range list {
				row := candidates.Row(k)
				for f, v := range row {
					wide := 4.0
					switch f {
					case Gain, Hurt, Prior, Before, After:
						wide = 8 // gains of gangs of three tasks beside as many
					case AgeGain, AgeHurt:
						wide = 12 // these times the mean of log hours
					}
					if v := float64(v); math.IsNaN(v) || math.Abs(v) > wide {
						t.Fatalf("feature %d of way %d is %g", f, k, v)
					}
					if k == 0 && (f == Wait) != (v == 1) || k == 0 && f != Wait && v != 0 || k > 0 && f == Wait && v != 0 {
						t.Fatalf("way %d has %g as feature %d; only waiting is Wait, and nothing else", k, v, f)
					}
				}
				if k > 0 {
					want := e.threshold.At(float64(b.Pending()) / float64(e.hi-e.lo))
					if row[Apart] == 1 && b.Holds(g) {
						want += e.threshold.Apart
					}
					if d := float64(row[Gain]-row[Prior]) - want; math.Abs(d) > 1e-5 {
						t.Fatalf("gain %g less the prior %g is not the threshold %g", row[Gain], row[Prior], want)
					}
					if d := row[Gain] - row[Own] - row[Hurt]; math.Abs(float64(d)) > 1e-5 {
						t.Fatalf("gain %g is not own %g and hurt %g", row[Gain], row[Own], row[Hurt])
					}
				}
			}
			for f, v := range context {
				wide := 4.0
				if f == Pace || f == Best {
					wide = 8 // a node of several devices runs as many jobs
				}
				if v := float64(v); math.IsNaN(v) || math.Abs(v) > wide {
					t.Fatalf("feature %d of the context is %g", f, v)
				}
			}
			// Placing changes what is counted for the next.
			if n := len(list) - 1; n > 0 {
				for j, task := range b.Tasks(g) {
					b.Put(int(task), int(list[n].Sites[j]))
				}
			}
		}
	})
}

// What is counted step by step is what a fresh look would count.
func TestPropertyEncodingForgetsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scope, req := draw(t)
		b, e := board(scope, req)
		for i := range b.Pending() {
			g := b.Gang(i)
			list := options(b, g)
			candidates, context := e.Encode(g, list)
			rows, told := slices.Clone(candidates.Data), slices.Clone(context)
			fresh := NewJobs(b, DefaultThreshold(b.Speeds().Scope()))
			fresh.Begin()
			again, context := fresh.Encode(g, list)
			if !close(rows, again.Data) || !close(told, context) {
				t.Fatalf("gang %d: %v and %v, then afresh %v and %v", i, rows, told, again.Data, context)
			}
			if n := len(list) - 1; n > 0 {
				for j, task := range b.Tasks(g) {
					b.Put(int(task), int(list[n].Sites[j]))
				}
			}
		}
	})
}

func close(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Abs(float64(x-y)) < 1e-5 })
}

// The order of nodes means nothing: the same ways have the same features.
func TestPropertyOrderOfNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scope, req := draw(t)
		turned := req
		nodes := slices.Clone(req.View.Nodes())
		slices.Reverse(nodes)
		var err error
		if turned.View, err = cluster.NewSnapshot(cluster.Spec{Nodes: nodes, Running: req.View.Running()}); err != nil {
			t.Fatal(err)
		}
		b, e := board(scope, req)
		c, f := board(scope, turned)
		for i := range b.Pending() {
			g, h := b.Gang(i), c.Gang(i)
			list := options(b, g)
			var there []Option
			for _, o := range list {
				q := Option{Alike: o.Alike}
				for _, s := range o.Sites {
					node, device := b.Site(int(s))
					for x := range c.Sites() {
						if n, d := c.Site(x); n == len(nodes)-1-node && d == device {
							q.Sites = append(q.Sites, int32(x))
						}
					}
				}
				there = append(there, q)
			}
			x, context := e.Encode(g, list)
			y, other := f.Encode(h, there)
			if !close(x.Data, y.Data) || !close(context, other) {
				t.Fatalf("gang %d: %v and %v, with the nodes turned %v and %v", i, x.Data, context, y.Data, other)
			}
		}
	})
}

// What neighbours lose counts by their ages in Prior, and in nothing else.
func TestAgesOfNeighbours(t *testing.T) {
	encode := func(ages float64) num.Matrix {
		nodes := cluster.Nodes("a", 1, 2, 0)
		for d := range nodes[0].Devices {
			nodes[0].Devices[d].Slots = 2
		}
		now := 100 * time.Hour
		var running []cluster.Running
		for d, started := range []time.Duration{0, now} { // an old and a new one
			running = append(running, cluster.Running{
				Task: cluster.Task{ID: cluster.TaskID(fmt.Sprint(d)), Workload: "w0", Role: cluster.Worker, Devices: 1}, Node: nodes[0].Name, On: []int{d}, Group: fmt.Sprint(d), Started: started,
			})
		}
		view, err := cluster.NewSnapshot(cluster.Spec{Nodes: nodes, Running: running})
		if err != nil {
			t.Fatal(err)
		}
		b := jobs.NewBoard(jobs.NewSpeeds(known{placetest.Model{Names: []string{"a"}}}, jobs.Options{Scope: history.ScopeDevice}))
		e := NewJobs(b, Threshold{Free: 0.5, Queued: 0.5, Ages: ages})
		b.Reset(place.Request{View: view, Now: now, Pending: []cluster.Group{placetest.Gang("q", 1, "w1")}})
		e.Begin()
		candidates, _ := e.Encode(b.Gang(0), []Option{{}, {Sites: []int32{0}}, {Sites: []int32{1}}})
		return num.Matrix{Rows: candidates.Rows, Cols: candidates.Cols, Data: slices.Clone(candidates.Data)}
	}
	plain, aged := encode(0), encode(0.5)
	for f := range Features {
		if f != Prior && (aged.Row(1)[f] != plain.Row(1)[f] || aged.Row(2)[f] != plain.Row(2)[f]) {
			t.Errorf("feature %d depends on the power of ages", f)
		}
	}
	if plain.Row(1)[Prior] != plain.Row(2)[Prior] || aged.Row(2)[Prior] != plain.Row(2)[Prior] {
		t.Errorf("prior without ages %g, %g; beside a new one %g", plain.Row(1)[Prior], plain.Row(2)[Prior], aged.Row(2)[Prior])
	}
	change := plain.Row(1)[Gain] - plain.Row(1)[Own]
	if less := aged.Row(1)[Prior] - plain.Row(1)[Prior]; change == 0 || less == 0 || less/change > 0 || less/change < -1 {
		t.Errorf("beside an old one whose progress changes by %g the prior does by %g", change, less)
	}
}
