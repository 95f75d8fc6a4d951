package jobs

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/placetest"
)

func newSpeeds(scope history.Scope, silence uint64) *Speeds {
	m := placetest.Known{Model: placetest.Model{Names: []string{"a", "b"}, Silence: silence}, List: placetest.Workloads(4)}
	return NewSpeeds(m, Options{Scope: scope, Alone: placetest.Rates{}, Misfits: placetest.Clash{}, Pessimism: .5})
}

func drawWorld(t *rapid.T) *placetest.World {
	return placetest.DrawWorld(t, placetest.Kind{Most: 4, Loose: true})
}

// checkDecision holds a decision against what every policy must keep.
func checkDecision(t *rapid.T, s *Speeds, req place.Request, d place.Decision) {
	seen := map[cluster.TaskID]bool{}
	bound := map[cluster.TaskID]place.Binding{}
	for _, b := range d.Bind {
		if seen[b.Task] {
			t.Fatalf("task %s is decided twice", b.Task)
		}
		seen[b.Task], bound[b.Task] = true, b
	}
	for _, h := range d.Hold {
		if seen[h.Task] || h.Why == "" {
			t.Fatalf("task %s is decided twice or held without a reason (%q)", h.Task, h.Why)
		}
		seen[h.Task] = true
	}
	running := slices.Clone(req.View.Running())
	for _, m := range d.Move {
		for i := range running {
			if running[i].ID == m.Task {
				if !running[i].Movable {
					t.Fatalf("task %s is moved and must not be", m.Task)
				}
				running[i].Node, running[i].On = m.To, m.Devices
			}
		}
	}
	for _, g := range req.Pending {
		n := 0
		for _, task := range g.Tasks {
			if !seen[task.ID] {
				t.Fatalf("task %s is neither bound nor held", task.ID)
			}
			if b, ok := bound[task.ID]; ok {
				n++
				running = append(running, cluster.Running{Task: task, Node: b.Node, On: b.Devices})
			}
		}
		if g.Gang && n != 0 && n != len(g.Tasks) {
			t.Fatalf("gang %s: %d of %d tasks are bound", g.Name, n, len(g.Tasks))
		}
	}
	checkRoom(t, s, req, running)
}

func checkRoom(t *rapid.T, s *Speeds, req place.Request, running []cluster.Running) {
	for _, n := range req.View.Nodes() {
		tasks, cpu := 0, int64(0)
		used := make([]cluster.Colocation, len(n.Devices))
		for _, r := range running {
			if r.Node != n.Name {
				continue
			}
			tasks++
			cpu += r.Requests[cluster.CPU]
			if len(r.On) != r.Devices {
				t.Fatalf("task %s has devices %v and needs %d", r.ID, r.On, r.Devices)
			}
			for _, d := range r.On {
				used[d] = used[d].With(r.Workload)
			}
		}
		if n.Slots > 0 && tasks > n.Slots || n.Capacity != nil && cpu > n.Capacity[cluster.CPU] {
			t.Fatalf("node %s is over capacity: %d tasks of %d, cpu %d of %d", n.Name, tasks, n.Slots, cpu, n.Capacity[cluster.CPU])
		}
		for d, c := range used {
			if c.Tasks() > max(1, n.Devices[d].Slots) {
				t.Fatalf("device %d of %s is over capacity: %s", d, n.Name, c.Key())
			}
			if s.Scope() == history.ScopeDevice && c["w01"] > 0 && c["w02"] > 0 {
				t.Fatalf("device %d of %s: %s does not fit together", d, n.Name, c.Key())
			}
		}
	}
}

func TestPropertyDecisions(t *testing.T) {
	for _, name := range Names() {
		if name == "linear" { // is greedy
			continue
		}
		for _, migrate := range []time.Duration{0, 30 * time.Second} {
			if e, _ := find(name); migrate > 0 && !e.moves {
				continue
			}
			t.Run(fmt.Sprintf("%s/migrate=%s", name, migrate), func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) { checkPolicy(t, name, migrate) })
			})
		}
	}
}

func checkPolicy(t *rapid.T, name string, migrate time.Duration) {
	w := drawWorld(t)
	speeds := newSpeeds(w.Scope, 5)
	if rapid.Bool().Draw(t, "forgetful") {
		speeds.limit = 0
	}
	s := Settings{Speeds: speeds, Explain: rapid.Bool().Draw(t, "explain"), Migrate: migrate}
	p, err := New(name, s)
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		w.Arrive(t)
		req := w.Request()
		d, err := p.Place(req)
		if err != nil {
			t.Fatal(err)
		}
		checkDecision(t, speeds, req, d)
		s.Speeds = newSpeeds(w.Scope, 5)
		fresh, _ := New(name, s)
		if again, _ := fresh.Place(req); !reflect.DeepEqual(d, again) {
			t.Fatalf("a policy that has seen the past decides\n%+v\na fresh one\n%+v", d, again)
		}
		w.Apply(t, d)
	}
}

// naive is the sum of progress, from the definitions.
func naive(b *Board) float64 {
	s := b.speeds
	site := make([]cluster.Colocation, len(b.sites))
	gangs := map[int32][]int32{}
	for i := range b.sites {
		for _, t := range b.sites[i].tenants {
			site[i] = site[i].With(s.workloads[b.tasks[t].workload])
			gangs[b.tasks[t].gang] = append(gangs[b.tasks[t].gang], t)
		}
	}
	sum := 0.0
	for g, tasks := range gangs {
		worst, alone, nodes := math.Inf(1), math.Inf(1), map[int32]bool{}
		for _, t := range tasks {
			nodes[b.sites[b.tasks[t].site].node] = true
		}
		// Every worker exchanges one unit with each parameter server; counted once
		// at each end that crosses nodes.
		carried := map[int32]float64{}
		workers, servers := 0.0, 0.0
		for _, t := range tasks {
			if b.tasks[t].ps {
				servers++
			} else {
				workers++
			}
			for _, o := range tasks {
				if b.tasks[t].ps != b.tasks[o].ps && b.sites[b.tasks[t].site].node != b.sites[b.tasks[o].site].node {
					carried[b.sites[b.tasks[t].site].node]++
				}
			}
		}
		remote := 0.0 // what the busiest node carries, over that of tasks dealt out
		if workers > 0 && servers > 0 {
			for _, units := range carried {
				remote = max(remote, units/max(workers, servers))
			}
		} else if workers > 0 && len(nodes) > 1 {
			remote = 1
		}
		for _, t := range tasks {
			x := &b.tasks[t]
			w, c := s.workloads[x.workload], site[x.site]
			performance := 1.0
			others := slices.ContainsFunc(b.sites[x.site].tenants, func(o int32) bool { return b.tasks[o].gang != g })
			if device := b.sites[x.site].device >= 0; c.Tasks() > 1 && (device || others && s.Scope() == history.ScopeNode) {
				e := s.model.Predict(b.ClassName(int(x.site)), history.Rate, []cluster.Colocation{c})[0][slices.Index(c.Workloads(), w)]
				switch {
				case !e.Known:
					performance = 1 / float64(c.Tasks())
				case e.Measured:
					performance = e.Value
				default:
					performance = max(0, e.Value-.5*e.Std)
				}
			}
			worst = min(worst, performance)
			if !x.ps {
				progress := func(span cluster.Span) float64 {
					p, known := placetest.Rates{}.Progress(b.ClassName(int(x.site)), w, int(b.gangs[g].workers), span, b.usable)
					if !known { // then it is known nowhere in the cluster
						return 1
					}
					return p
				}
				local, apart, share := progress(cluster.SpanNode), progress(cluster.SpanApart), remote
				if apart > local {
					share = min(share, 1)
				}
				p := 1 / ((1-share)/local + share/apart)
				alone = min(alone, p)
			}
		}
		if math.IsInf(alone, 1) {
			alone = 1
		}
		sum += alone * worst
	}
	return sum
}

func TestPropertyGainAndUndo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		b := NewBoard(newSpeeds(w.Scope, 5))
		for range 3 {
			w.Arrive(t)
			b.Reset(w.Request())
			before := b.text()
			total := b.Total()
			if n := naive(b); math.Abs(n-total) > 1e-9 {
				t.Fatalf("total %g, by definition %g", total, n)
			}
			for i := range b.Pending() {
				for _, x := range b.Tasks(b.Gang(i)) {
					list, why := b.Candidates(int(x))
					if (len(list) > 0) != (why == Fits) {
						t.Fatalf("%d candidates, refusal %v", len(list), why)
					}
					covered := int32(0)
					for _, c := range list {
						covered += c.Alike
					}
					lo, hi := b.Range(int(x))
					for s := lo; s < hi; s++ {
						if b.Fit(int(x), s) == Fits {
							covered--
						}
					}
					if covered != 0 {
						t.Fatalf("candidates stand for %d sites too many", covered)
					}
					if len(list) == 0 {
						continue
					}
					s := int(list[rapid.IntRange(0, len(list)-1).Draw(t, "site")].Site)
					gain := b.Gain(int(x), s)
					b.Put(int(x), s)
					now := naive(b)
					if math.Abs(now-total-gain) > 1e-9 {
						t.Fatalf("gain %g, by definition %g", gain, now-total)
					}
					total = now
				}
			}
			b.Undo(0)
			if after := b.text(); after != before {
				t.Fatalf("undone:\n%s\nbefore:\n%s", after, before)
			}
			p, _ := New("spread", Settings{Speeds: newSpeeds(w.Scope, 5)})
			d, _ := p.Place(w.Request())
			w.Apply(t, d)
		}
	})
}

// text is all that Undo must restore.
func (b *Board) text() string {
	out := fmt.Sprintf("%+v\n%+v\n", b.devices, b.state)
	for _, s := range b.sites {
		out += fmt.Sprint(s.config, s.tenants, ";")
	}
	for _, g := range b.gangs {
		out += fmt.Sprint(math.Float64bits(g.progress), ";")
	}
	for _, t := range b.tasks {
		out += fmt.Sprint(t.site, t.on, ";")
	}
	return out + fmt.Sprint(b.slotsFree)
}
