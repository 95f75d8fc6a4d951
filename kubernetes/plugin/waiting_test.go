package plugin

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/kubernetes/plugin/pods"
)

// A batch that is cut keeps its order, the pod whose turn it is, and gangs
// whole.
func TestCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var batch []*entry
		for i := range rapid.IntRange(1, 30).Draw(t, "pods") {
			e := &entry{seq: i}
			e.view.Group = fmt.Sprint(rapid.IntRange(0, 4).Draw(t, "group"))
			if e.view.Group > "2" {
				e.view.Gang = &pods.Gang{}
			}
			batch = append(batch, e)
		}
		own := batch[rapid.IntRange(0, len(batch)-1).Draw(t, "own")]
		most := rapid.IntRange(1, 10).Draw(t, "most")
		out := cut(batch, own, most)
		in := map[*entry]bool{}
		for i, e := range out {
			in[e] = true
			if i > 0 && out[i-1].seq >= e.seq {
				t.Fatalf("%d comes after %d", e.seq, out[i-1].seq)
			}
		}
		if !in[own] {
			t.Fatal("the pod whose turn it is is not planned for")
		}
		single := 0
		for _, e := range batch {
			if !in[e] {
				continue
			}
			if e.view.Gang == nil {
				single++
				continue
			}
			for _, other := range batch {
				if other.view.Group == e.view.Group && !in[other] {
					t.Fatalf("gang %s is cut", e.view.Group)
				}
			}
		}
		if single > most+1 {
			t.Fatalf("%d pods of no gang, at most %d and the own", single, most)
		}
	})
}
