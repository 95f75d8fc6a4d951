package cluster_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
)

// What Next makes is what NewSnapshot makes of the same tasks, and the
// snapshot it came from stays as it was.
func TestNextAgreesWithNewSnapshot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := cluster.Nodes("", 3, 2, 8)
		serial := 0
		task := func(t *rapid.T) cluster.Running {
			serial++
			r := cluster.Running{Task: cluster.Task{
				ID:       cluster.TaskID(fmt.Sprint("t", serial)),
				Workload: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "workload"),
			}, Node: rapid.SampledFrom(nodes).Draw(t, "node").Name}
			if name := rapid.SampledFrom([]string{"", cluster.CPU, cluster.Memory}).Draw(t, "resource"); name != "" {
				r.Requests = cluster.Resources{name: rapid.Int64Range(0, 1).Draw(t, "amount")}
			}
			return r
		}
		s, err := cluster.NewSnapshot(cluster.Spec{Nodes: nodes, Workloads: []cluster.Workload{{Name: "a"}}})
		if err != nil {
			t.Fatal(err)
		}
		var running []cluster.Running
		type past struct {
			view *cluster.Snapshot
			text string
		}
		var before []past
		chain, chained := cluster.NewChain(s), rapid.Bool().Draw(t, "chained")
		for range 8 {
			var gone []int
			var kept []cluster.Running
			for i, r := range running {
				if rapid.Bool().Draw(t, "ends") {
					gone = append(gone, i)
				} else {
					kept = append(kept, r)
				}
			}
			var added []cluster.Running
			for range rapid.IntRange(0, 3).Draw(t, "added") {
				added = append(added, task(t))
			}
			before = append(before, past{s, fmt.Sprint(s.Running(), s.Workloads())})
			step := s.Next
			if chained {
				step = chain.Next
			}
			next, err := step(gone, added)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range before {
				if after := fmt.Sprint(b.view.Running(), b.view.Workloads()); after != b.text {
					t.Fatalf("Next changed an earlier snapshot from %s to %s", b.text, after)
				}
			}
			running = slices.Concat(kept, added)
			plain, err := cluster.NewSnapshot(cluster.Spec{Nodes: nodes, Workloads: next.Workloads(), Running: running})
			if err != nil {
				t.Fatal(err)
			}
			if len(running) > 0 && !reflect.DeepEqual(next.Running(), plain.Running()) {
				t.Fatalf("runs %v, want %v", next.Running(), plain.Running())
			}
			// A Placement reads everything that a Snapshot holds.
			pending := []cluster.Task{{ID: "p", Workload: "b", Requests: cluster.Resources{cluster.CPU: 1}}}
			a, b := cluster.NewPlacement(next, pending), cluster.NewPlacement(plain, pending)
			if !reflect.DeepEqual(a.Workloads(), b.Workloads()) {
				t.Fatalf("workloads %v, want %v", a.Workloads(), b.Workloads())
			}
			for n := range nodes {
				if !reflect.DeepEqual(a.Counts(n), b.Counts(n)) || a.Explain(a.Kind(0), n) != b.Explain(b.Kind(0), n) {
					t.Fatalf("node %d: %v %q, want %v %q", n, a.Counts(n), a.Explain(a.Kind(0), n), b.Counts(n), b.Explain(b.Kind(0), n))
				}
			}
			s = next
		}
	})
}

func TestNextRefuses(t *testing.T) {
	s, err := cluster.NewSnapshot(cluster.Spec{
		Nodes:   cluster.Nodes("", 1, 0, 1),
		Running: []cluster.Running{{Task: cluster.Task{ID: "t", Workload: "w"}, Node: "node-0"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for wanted, try := range map[string]struct {
		gone  []int
		added []cluster.Running
	}{
		"running task 1 of 1 cannot end":                  {gone: []int{1}},
		"running task 0 of 1 cannot end":                  {gone: []int{0, 0}},
		`running task "u": node "x" is not in the cluste`: {added: []cluster.Running{{Task: cluster.Task{ID: "u", Workload: "w"}, Node: "x"}}},
		`running task "u": workload is empty`:             {added: []cluster.Running{{Task: cluster.Task{ID: "u"}, Node: "node-0"}}},
	} {
		if _, err := s.Next(try.gone, try.added); err == nil || !strings.Contains(err.Error(), wanted) {
			t.Errorf("%v, want %q", err, wanted)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	spec := cluster.Spec{Nodes: cluster.Nodes("", 16, 1, 2)}
	for i := range 32 {
		spec.Running = append(spec.Running, cluster.Running{
			Task: cluster.Task{ID: cluster.TaskID(fmt.Sprint(i)), Workload: "w"}, Node: fmt.Sprint("node-", i/2), On: []int{0},
		})
	}
	s, err := cluster.NewSnapshot(spec)
	if err != nil {
		b.Fatal(err)
	}
	added := []cluster.Running{{Task: cluster.Task{ID: "new", Workload: "w"}, Node: "node-3", On: []int{0}}}
	b.Run("one ends and one begins", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Next([]int{7}, added); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("in a chain, in turn", func(b *testing.B) {
		c := cluster.NewChain(s)
		for b.Loop() {
			if _, err := c.Next([]int{31}, nil); err != nil {
				b.Fatal(err)
			}
			if _, err := c.Next(nil, added); err != nil {
				b.Fatal(err)
			}
		}
	})
}
