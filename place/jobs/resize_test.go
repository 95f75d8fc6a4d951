package jobs

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/placetest"
)

// curve is how fast jobs of any workload are by their number of workers: each
// more brings less.
var curve = []float64{0, 10, 18, 24, 28, 30, 31}

func curves(names ...string) *history.AloneRates {
	var samples []history.Sample
	for _, name := range names {
		for n := 1; n < len(curve); n++ {
			samples = append(samples, history.Sample{
				Class: "a", Workload: name, Colocation: cluster.Colocation{name: 1}, Workers: n, Span: cluster.SpanNode,
				Metric: history.Rate, Value: curve[n], Alone: curve[n],
			}, history.Sample{
				Class: "a", Workload: name, Colocation: cluster.Colocation{name: 1}, Workers: n, Span: cluster.SpanApart,
				Metric: history.Rate, Value: 0.8 * curve[n], Alone: 0.8 * curve[n],
			})
		}
	}
	return history.NewAloneRates(samples)
}

// scales is a gang with bounds.
func scales(name string, workers, least, most int) cluster.Group {
	g := placetest.Gang(name, workers, "w")
	g.MinWorkers, g.MaxWorkers = least, most
	return g
}

// after is the cluster after a decision.
func after(t interface{ Fatal(...any) }, view *cluster.Snapshot, pending []cluster.Group, d place.Decision) (*cluster.Snapshot, []cluster.Group) {
	sizes, tasks := map[string]*cluster.Sizes{}, map[cluster.TaskID]cluster.Running{}
	for _, r := range view.Running() {
		sizes[r.Group] = r.Sizes
	}
	for _, g := range pending {
		sizes[g.Name] = g.Sizes()
		for _, x := range g.Tasks {
			tasks[x.ID] = cluster.Running{Task: x, Group: g.Name, Sizes: sizes[g.Name]}
		}
	}
	target := map[string]int{}
	for _, z := range d.Resize {
		target[z.Group] = z.Workers
	}
	gone := map[cluster.TaskID]bool{}
	for name, n := range target {
		for i := n; i < 64; i++ {
			gone[sizes[name].WorkerID(name, i)] = true
		}
		for _, r := range view.Running() {
			if r.Group == name {
				for i := range n {
					x := r
					x.ID, x.Node, x.On = sizes[name].WorkerID(name, i), "", nil
					if _, pends := tasks[x.ID]; !pends {
						tasks[x.ID] = x
					}
				}
			}
		}
		for _, g := range pending {
			if g.Name == name {
				for i := len(g.Tasks); i < n; i++ {
					x := g.Tasks[0]
					x.ID = sizes[name].WorkerID(name, i)
					tasks[x.ID] = cluster.Running{Task: x, Group: name, Sizes: sizes[name]}
				}
			}
		}
	}
	var running []cluster.Running
	for _, r := range view.Running() {
		if !gone[r.ID] {
			running = append(running, r)
		}
	}
	started := map[string]bool{}
	for _, x := range d.Bind {
		r, ok := tasks[x.Task]
		if !ok || gone[x.Task] {
			t.Fatal("binds", x.Task, "which nobody asked for:", d)
		}
		r.Node, r.On = x.Node, x.Devices
		started[r.Group] = true
		running = append(running, r)
	}
	var left []cluster.Group
	for _, g := range pending {
		if !started[g.Name] {
			left = append(left, g)
		}
	}
	next, err := cluster.NewSnapshot(cluster.Spec{Nodes: view.Nodes(), Running: running})
	if err != nil {
		t.Fatal(err)
	}
	return next, left
}

// sizesOf counts who runs, as name:workers.
func sizesOf(view *cluster.Snapshot) string {
	n := map[string]int{}
	var names []string
	for _, r := range view.Running() {
		if n[r.Group] == 0 {
			names = append(names, r.Group)
		}
		n[r.Group]++
	}
	slices.Sort(names)
	var parts []string
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("%s:%d", name, n[name]))
	}
	return strings.Join(parts, " ")
}

// By hand, with rates 10, 18, 24, 28, 30 for 1 to 5 workers, a resize at 60 s
// and a horizon of an hour.
func TestScalingStory(t *testing.T) {
	nodes := cluster.Nodes("a", 1, 4, 0)
	empty, err := cluster.NewSnapshot(cluster.Spec{Nodes: nodes})
	if err != nil {
		t.Fatal(err)
	}
	place4 := func(groups ...cluster.Group) *cluster.Snapshot {
		d := place.Decision{}
		at := 0
		for _, g := range groups {
			for _, x := range g.Tasks {
				d.Bind = append(d.Bind, place.Binding{Task: x.ID, Node: nodes[0].Name, Devices: []int{at}})
				at++
			}
		}
		s, _ := after(t, empty, groups, d)
		return s
	}
	grown := func(s *cluster.Snapshot, n int) *cluster.Snapshot { // to n workers on devices from the first
		d := place.Decision{Resize: []place.Resize{{Group: "a", Workers: n}}}
		for i := len(s.Running()); i < n; i++ {
			d.Bind = append(d.Bind, place.Binding{Task: cluster.TaskID(fmt.Sprintf("a/worker-%d", i)), Node: nodes[0].Name, Devices: []int{i}})
		}
		next, _ := after(t, s, nil, d)
		return next
	}
	for _, c := range []struct {
		name    string
		view    *cluster.Snapshot
		pending []cluster.Group
		horizon float64
		want    string
		why     map[cluster.TaskID]string
	}{{
		// 2 to 4 workers: 28/18 - 1 = 0.556 more progress, 2000 s less the 60 s that
		// it stands still. The second step is told: 28/18 - 24/18, and nothing more to
		// pay.
		name: "idle devices", view: place4(scales("a", 2, 1, 8)), want: "a:4",
		why: map[cluster.TaskID]string{"a/worker-2": "grows from 2 to 3 workers, on device 2 of a-0", "a/worker-3": "worth 800 s of progress"},
	}, {
		name: "at its most", view: place4(scales("a", 2, 1, 3)), want: "a:3",
	}, {
		// Within 100 s the 0.556 are worth 56 s, less than the 60 s that they cost.
		name: "not worth it", view: place4(scales("a", 2, 1, 8)), horizon: 100, want: "a:2",
	}, {
		// b gains 3600 s; a loses 4/18 of 3600 s and 60 s of its 28/18.
		name: "give way", view: grown(place4(scales("a", 2, 1, 8)), 4), pending: []cluster.Group{placetest.Gang("b", 1, "w")},
		want: "a:3 b:1", why: map[cluster.TaskID]string{"a/worker-3": "a shrinks to 3 workers, so that b can start: that is worth 2707 s of progress"},
	}, {
		// One worker of a: 3 and 1 make 24/28 + 10/18 = 1.413; two: 18/28 + 1 = 1.643.
		name: "as much as gains most", view: place4(scales("a", 4, 1, 4)), pending: []cluster.Group{scales("b", 2, 1, 2)}, want: "a:2 b:2",
	}, {
		name: "not below its least", view: place4(scales("a", 4, 3, 4)), pending: []cluster.Group{scales("b", 2, 1, 2)}, want: "a:3 b:1",
	}, {
		name: "start small", view: place4(placetest.Gang("a", 2, "w")), pending: []cluster.Group{scales("b", 4, 1, 4)}, want: "a:2 b:2",
	}, {
		name: "nobody scales", view: place4(placetest.Gang("a", 3, "w")), pending: []cluster.Group{placetest.Gang("b", 2, "w")}, want: "a:3",
	}, {
		// The free device is b's, who waits for another.
		name: "not what others wait for", view: place4(scales("a", 2, 2, 8), placetest.Gang("c", 1, "w")), pending: []cluster.Group{placetest.Gang("b", 2, "w")}, want: "a:2 c:1",
	}} {
		t.Run(c.name, func(t *testing.T) {
			speeds := NewSpeeds(nil, Options{Scope: history.ScopeDevice, Alone: curves("w")})
			values := map[string]float64{"horizon": 3600}
			if c.horizon > 0 {
				values["horizon"] = c.horizon
			}
			p, err := New("greedy", Settings{Speeds: speeds, Scale: time.Minute, Values: values, Explain: true})
			if err != nil {
				t.Fatal(err)
			}
			d, err := p.Place(place.Request{View: c.view, Pending: c.pending})
			if err != nil {
				t.Fatal(err)
			}
			next, _ := after(t, c.view, c.pending, d)
			if got := sizesOf(next); got != c.want {
				t.Errorf("%s, want %s: %+v", got, c.want, d)
			}
			for id, words := range c.why {
				if !strings.Contains(d.Why[id].Words, words) {
					t.Errorf("%s: %q lacks %q", id, d.Why[id].Words, words)
				}
			}
		})
	}
}

func TestScaleOfRates(t *testing.T) {
	r := curves("w")
	for _, c := range []struct {
		own, workers int
		want         float64
		ok           bool
	}{
		{2, 4, 28. / 18, true},
		{4, 1, 10. / 28, true},
		{3, 3, 1, true},
		{2, 7, 0, false}, // nobody measured 7
		{12, 6, 0.5, true},
	} {
		if got, ok := r.Scale("w", c.own, c.workers, []string{"a"}); math.Abs(got-c.want) > 1e-12 || ok != c.ok {
			t.Errorf("%d to %d: %g %t, want %g %t", c.own, c.workers, got, ok, c.want, c.ok)
		}
	}
	if _, ok := r.Scale("x", 1, 2, []string{"a"}); ok {
		t.Error("a scale of what nobody measured")
	}
}

// Whatever is scaled stays within its bounds and is placed whole; the sum of
// progress is never less than without scaling, as long as nothing is paid for
// that; on a queue that does not change, scaling comes to rest; and Undo leaves
// what was there.
func TestPropertyScaling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := placetest.Workloads(3)
		var nodes []cluster.Node
		for n := range rapid.IntRange(1, 2).Draw(t, "nodes") {
			node := cluster.Nodes("a", 1, rapid.IntRange(1, 4).Draw(t, "devices"), 0)[0]
			node.Name = fmt.Sprint("n", n)
			for d := range node.Devices {
				node.Devices[d].Slots = rapid.IntRange(1, 2).Draw(t, "slots")
			}
			nodes = append(nodes, node)
		}
		draw := func(name string) cluster.Group {
			g := placetest.Gang(name, rapid.IntRange(1, 3).Draw(t, "workers"), rapid.SampledFrom(names).Draw(t, "workload"))
			if rapid.IntRange(0, 3).Draw(t, "scales") > 0 {
				g.MinWorkers = rapid.IntRange(1, len(g.Tasks)).Draw(t, "least")
				g.MaxWorkers = len(g.Tasks) + rapid.IntRange(0, 3).Draw(t, "more")
			}
			return g
		}
		speeds := NewSpeeds(placetest.Known{Model: placetest.Model{Names: []string{"a"}}, List: names}, Options{Scope: history.ScopeDevice, Alone: curves(names...)})
		view, err := cluster.NewSnapshot(cluster.Spec{Nodes: nodes})
		if err != nil {
			t.Fatal(err)
		}
		name := rapid.SampledFrom([]string{"greedy", "greedy-wait", "matching"}).Draw(t, "policy")
		cost := rapid.Float64Range(1, 4000).Draw(t, "cost")
		policy := func(s Settings) place.Policy {
			s.Speeds = speeds
			p, err := New(name, s)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		scaled := policy(Settings{Scale: time.Duration(cost * 1e9)})
		var pending []cluster.Group
		all := map[string]cluster.Group{}
		for i := range rapid.IntRange(1, 4).Draw(t, "arrivals") {
			for j := range rapid.IntRange(0, 2).Draw(t, "at once") {
				g := draw(fmt.Sprintf("j%d-%d", i, j))
				all[g.Name] = g
				pending = append(pending, g)
			}
			decide := func() (resized int) {
				req := place.Request{View: view, Pending: pending}
				d, err := scaled.Place(req)
				if err != nil {
					t.Fatal(err)
				}
				next, left := after(t, view, pending, d)
				checkGangs(t, next, all)
				base, err := policy(Settings{}).Place(req)
				if err != nil {
					t.Fatal(err)
				}
				then, _ := after(t, view, pending, base)
				if was, now := total(speeds, then), total(speeds, next); now < was-1e-9 {
					t.Fatalf("progress is %g, without scaling %g: %+v", now, was, d)
				}
				view, pending = next, left
				return len(d.Resize)
			}
			decide()
			rest := false
			for range 8 {
				rest = rest || decide() == 0
			}
			if !rest {
				t.Fatal("it never comes to rest")
			}
		}
	})
}

func total(s *Speeds, view *cluster.Snapshot) float64 {
	b := NewBoard(s)
	b.Reset(place.Request{View: view})
	return b.Total()
}

// checkGangs sees to it that devices hold no more than they take and gangs are whole,
// within their bounds.
func checkGangs(t *rapid.T, view *cluster.Snapshot, all map[string]cluster.Group) {
	used, workers := map[string]int{}, map[string]map[cluster.TaskID]bool{}
	for _, r := range view.Running() {
		n, _ := view.NodeIndex(r.Node)
		at := fmt.Sprint(r.Node, r.On)
		if used[at]++; len(r.On) != 1 || used[at] > view.Nodes()[n].Devices[r.On[0]].Slots {
			t.Fatalf("%s on %v, with %d", r.ID, r.On, used[at])
		}
		if workers[r.Group] == nil {
			workers[r.Group] = map[cluster.TaskID]bool{}
		}
		workers[r.Group][r.ID] = true
	}
	for name, ids := range workers {
		g := all[name]
		z := g.Sizes()
		if z == nil {
			if len(ids) != len(g.Tasks) {
				t.Fatalf("%s has %d of %d workers", name, len(ids), len(g.Tasks))
			}
			continue
		}
		if len(ids) < z.MinWorkers || len(ids) > z.MaxWorkers {
			t.Fatalf("%s has %d workers; it takes %d to %d", name, len(ids), z.MinWorkers, z.MaxWorkers)
		}
		for i := range len(ids) {
			if !ids[z.WorkerID(name, i)] {
				t.Fatalf("%s lacks worker %d of %d", name, i, len(ids))
			}
		}
	}
}
