package sim

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
)

// The heap gives what a sorted list would.
func TestHeapIsAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 12
		h, plain := newHeap(n), map[int32]time.Duration{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			number := rapid.Int32Range(0, n-1).Draw(t, "number")
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				h.drop(number)
				delete(plain, number)
			case 1:
				if len(plain) > 0 {
					delete(plain, h.pop())
				}
			default:
				at := time.Duration(rapid.IntRange(0, 9).Draw(t, "at"))
				h.set(number, at)
				plain[number] = at
			}
			if len(h.order) != len(plain) {
				t.Fatalf("%d due, want %d", len(h.order), len(plain))
			}
			if len(plain) == 0 {
				if h.first() != never {
					t.Fatalf("an empty heap is due at %s", h.first())
				}
				continue
			}
			var numbers []int32
			for i := range plain {
				numbers = append(numbers, i)
			}
			first := slices.MinFunc(numbers, func(a, b int32) int { return cmp.Or(cmp.Compare(plain[a], plain[b]), cmp.Compare(a, b)) })
			if h.order[0] != first || h.first() != plain[first] {
				t.Fatalf("first is %d at %s, want %d at %s", h.order[0], h.first(), first, plain[first])
			}
		}
	})
}

// The queue is its jobs sorted by rank, and the gangs stand beside them.
func TestQueueIsSorted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		in := map[int32]*job{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			rank := rapid.Int32Range(0, 20).Draw(t, "rank")
			if j := in[rank]; j != nil {
				q.remove(j)
				q.remove(j) // nothing to take out
				delete(in, rank)
			} else {
				in[rank] = &job{rank: rank, spec: &Job{Job: cluster.Job{Name: fmt.Sprint(rank)}}}
				q.add(in[rank])
			}
			if len(q.jobs) != len(in) || len(q.groups) != len(in) {
				t.Fatalf("%d jobs and %d gangs, want %d", len(q.jobs), len(q.groups), len(in))
			}
			for i, j := range q.jobs {
				if in[j.rank] != j || q.groups[i].Name != j.spec.Name || i > 0 && q.jobs[i-1].rank >= j.rank {
					t.Fatalf("the queue is out of order at %d", i)
				}
			}
		}
	})
}
