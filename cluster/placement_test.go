package cluster_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/cluster/clustertest"
)

// drawn lets rapid shrink the cluster.
type drawn struct{ *rapid.T }

func (d drawn) IntN(n int) int { return rapid.IntRange(0, n-1).Draw(d.T, "n") }

type trial struct {
	spec    cluster.Spec
	pending []cluster.Task
	p       *cluster.Placement
	plain   *naive
	put     [][2]int // pending task, node
}

func newTrial(t *rapid.T) *trial {
	spec, groups := clustertest.Random(drawn{t})
	s, err := cluster.NewSnapshot(spec)
	if err != nil {
		t.Fatal(err)
	}
	tr := &trial{spec: spec, plain: newNaive(spec)}
	for _, g := range groups {
		tr.pending = append(tr.pending, g.Tasks...)
	}
	tr.p = cluster.NewPlacement(s, tr.pending)
	return tr
}

// step puts a pending task somewhere, fitting or not, or takes one back.
func (tr *trial) step(t *rapid.T) {
	if len(tr.put) > 0 && rapid.IntRange(0, 2).Draw(t, "take") == 2 {
		i := rapid.IntRange(0, len(tr.put)-1).Draw(t, "which")
		tr.p.Take(tr.p.Kind(tr.put[i][0]), tr.put[i][1])
		tr.put = slices.Delete(tr.put, i, i+1)
		at := len(tr.spec.Running) + i
		tr.plain.placed = slices.Delete(tr.plain.placed, at, at+1)
		return
	}
	if len(tr.put) == len(tr.pending) || len(tr.spec.Nodes) == 0 {
		return
	}
	var left []int
	for i := range tr.pending {
		if !slices.ContainsFunc(tr.put, func(x [2]int) bool { return x[0] == i }) {
			left = append(left, i)
		}
	}
	i := rapid.SampledFrom(left).Draw(t, "task")
	n := rapid.IntRange(0, len(tr.spec.Nodes)-1).Draw(t, "node")
	tr.p.Put(tr.p.Kind(i), n)
	tr.put = append(tr.put, [2]int{i, n})
	tr.plain.placed = append(tr.plain.placed, spot{tr.pending[i], n})
}

// TestPropertyPlacementCounts holds a placement that was kept up to date step by
// step against one counted from scratch.
func TestPropertyPlacementCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := newTrial(t)
		for range rapid.IntRange(0, 10).Draw(t, "steps") {
			tr.step(t)
		}
		for n := range tr.spec.Nodes {
			tasks := tr.plain.on(n)
			want := cluster.Colocation{}
			for _, task := range tasks {
				want = want.With(task.Workload)
			}
			if got := tr.p.Colocation(n); got.Key() != want.Key() {
				t.Fatalf("node %d: %s, want %s", n, got.Key(), want.Key())
			}
			for w, name := range tr.p.Workloads() {
				if got := tr.p.Counts(n)[w]; got != want[name] {
					t.Fatalf("node %d: %d of %s, want %d", n, got, name, want[name])
				}
			}
			for d, name := range tr.p.Dimensions() {
				if got, want := tr.p.Free(n)[d], tr.plain.free(n, name); got != want {
					t.Fatalf("node %d: %d of %s free, want %d", n, got, name, want)
				}
			}
			slots, limited := tr.p.FreeSlots(n)
			if want := tr.spec.Nodes[n].Slots; limited != (want > 0) || limited && slots != want-len(tasks) {
				t.Fatalf("node %d: %d free slots (limited: %t), want %d-%d", n, slots, limited, want, len(tasks))
			}
		}
	})
}

// TestPropertyCheck holds Check, Skew and Explain against each rule written
// out plainly.
func TestPropertyCheck(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := newTrial(t)
		for range rapid.IntRange(0, 8).Draw(t, "steps") {
			tr.step(t)
		}
		for i, task := range tr.pending {
			for n := range tr.spec.Nodes {
				got, want := tr.p.Check(tr.p.Kind(i), n), tr.plain.check(task, n)
				if got != want {
					t.Fatalf("task %s on node %d: %d, want %d", task.ID, n, got, want)
				}
				if words := tr.p.Explain(tr.p.Kind(i), n); (words == "") != (got == cluster.Fits) {
					t.Fatalf("task %s on node %d: reason %d, in words %q", task.ID, n, got, words)
				}
			}
		}
		for w, name := range tr.p.Workloads() {
			if got, want := tr.p.Skew(w), tr.plain.skew(name); got != want {
				t.Fatalf("skew of %s: %d, want %d", name, got, want)
			}
		}
	})
}

// dump is all that can be asked of a placement.
func dump(tr *trial, p *cluster.Placement) string {
	s := fmt.Sprint(p.Assign())
	for n := range tr.spec.Nodes {
		slots, _ := p.FreeSlots(n)
		s += fmt.Sprint("\n", p.Counts(n), p.Free(n), slots)
		for k := range p.Kinds() {
			s += fmt.Sprint(" ", p.PutOn(k, n), p.Check(k, n))
		}
	}
	for w := range p.Workloads() {
		s += fmt.Sprint(" ", p.Skew(w))
	}
	return s
}

// TestPropertyClone changes a placement and its clone in turn: neither feels
// what happens to the other.
func TestPropertyClone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := newTrial(t)
		for range rapid.IntRange(0, 5).Draw(t, "before") {
			tr.step(t)
		}
		clone := tr.p.Clone()
		was := dump(tr, clone)
		if now := dump(tr, tr.p); now != was {
			t.Fatalf("the clone differs:\n%s\n%s", was, now)
		}
		for range rapid.IntRange(0, 5).Draw(t, "after") {
			tr.step(t)
		}
		if now := dump(tr, clone); now != was {
			t.Fatalf("the clone changed with the original:\n%s\n%s", was, now)
		}
		was = dump(tr, tr.p)
		if len(tr.pending) > 0 && len(tr.spec.Nodes) > 0 {
			clone.Put(clone.Kind(0), 0)
		}
		if now := dump(tr, tr.p); now != was {
			t.Fatalf("the original changed with its clone:\n%s\n%s", was, now)
		}
	})
}

// TestPropertyAssign checks that what was put is what is assigned, by kind,
// in ascending order of nodes.
func TestPropertyAssign(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := newTrial(t)
		for range rapid.IntRange(0, 10).Draw(t, "steps") {
			tr.step(t)
		}
		at := tr.p.Assign()
		counts := map[[2]int]int{}
		last := map[int]int{}
		for i, n := range at {
			k := tr.p.Kind(i)
			if was, ok := last[k]; ok && (was < 0 && n >= 0 || n >= 0 && n < was) {
				t.Fatalf("kind %d goes from node %d to %d", k, was, n)
			}
			last[k] = n
			if n >= 0 {
				counts[[2]int{k, n}]++
			}
		}
		for k := range tr.p.Kinds() {
			for n := range tr.spec.Nodes {
				if got := counts[[2]int{k, n}]; got != tr.p.PutOn(k, n) {
					t.Fatalf("%d of kind %d on node %d, put %d", got, k, n, tr.p.PutOn(k, n))
				}
			}
		}
	})
}

func TestTakeWithoutPutPanics(t *testing.T) {
	s, err := cluster.NewSnapshot(cluster.Spec{Nodes: cluster.Nodes("", 1, 0, 2), Running: []cluster.Running{{Task: cluster.Task{ID: "1", Workload: "a"}, Node: "node-0"}}})
	if err != nil {
		t.Fatal(err)
	}
	p := cluster.NewPlacement(s, []cluster.Task{{ID: "2", Workload: "a"}})
	defer func() {
		if recover() == nil {
			t.Error("took a running task")
		}
	}()
	p.Take(0, 0)
}

// TestCordonedNodeOutsideTheSelector: it is no domain that a spread waits for.
func TestCordonedNodeOutsideTheSelector(t *testing.T) {
	spec := cluster.Spec{
		Nodes: []cluster.Node{
			{Name: "in", Labels: map[string]string{cluster.ZoneKey: "1", "disk": "ssd"}},
			{Name: "out", Labels: map[string]string{cluster.ZoneKey: "2"}, Unschedulable: true},
		},
		Constraints: cluster.Constraints{
			Spread:       []cluster.Spread{{Workload: "a", Key: cluster.ZoneKey}},
			NodeSelector: map[string]map[string]string{"a": {"disk": "ssd"}},
		},
	}
	s, err := cluster.NewSnapshot(spec)
	if err != nil {
		t.Fatal(err)
	}
	p := cluster.NewPlacement(s, []cluster.Task{{ID: "1", Workload: "a"}})
	for range 3 {
		if why := p.Explain(0, 0); why != "" {
			t.Fatal(why)
		}
		p.Put(0, 0)
	}
}
