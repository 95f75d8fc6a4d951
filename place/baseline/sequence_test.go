package baseline

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/placetest"
)

// lastFirst places the last kind first; of each, no more than limit in all.
type lastFirst struct {
	Chooser
	limit, put []int
	order      []int
}

func (l *lastFirst) Next(left []int) int {
	for k := len(left) - 1; k >= 0; k-- {
		if left[k] > 0 && l.put[k] < l.limit[k] {
			return k
		}
	}
	return -1
}

func (l *lastFirst) Choose(kind int) int {
	if l.put[kind] == l.limit[kind] {
		return -1
	}
	return l.Chooser.Choose(kind)
}

func (l *lastFirst) Put(kind, node int) {
	l.put[kind]++
	l.order = append(l.order, kind)
	l.Chooser.Put(kind, node)
}

// TestOrderer: the tasks of a group come in the chooser's order, those of a
// gang as listed, and none is forgotten where none fits.
func TestOrderer(t *testing.T) {
	view, err := cluster.NewSnapshot(cluster.Spec{Nodes: cluster.Nodes("", 3, 0, 8)})
	if err != nil {
		t.Fatal(err)
	}
	group := func(name string, gang bool) cluster.Group {
		g := cluster.Group{Name: name, Gang: gang}
		for i, w := range []string{"a", "b", "a", "c"} {
			g.Tasks = append(g.Tasks, cluster.Task{ID: cluster.TaskID(fmt.Sprint(name, i)), Workload: w})
		}
		return g
	}
	req := place.Request{View: view, Pending: []cluster.Group{group("x", false), group("gang", true), group("y", false)}}
	b := NewBoard(place.NewTrial(req, placetest.Model{}, 0))
	o := &lastFirst{Chooser: &greedyChooser{Board: b}, limit: []int{6, 2, 3}, put: make([]int, 3)}
	s := NewSequence(req, b.Trial().Placement, o, false)
	s.Place()
	if want := []int{2, 1, 0, 0, 0, 1, 0, 2, 2, 0, 0}; !slices.Equal(o.order, want) {
		t.Errorf("kinds were placed in the order %v, want %v", o.order, want)
	}
	if d := s.Decision(); len(d.Bind) != 11 || len(d.Hold) != 1 || d.Hold[0].Task != "y1" {
		t.Errorf("%d bound, held %v; want 11, and y1 held", len(d.Bind), d.Hold)
	}
}
