package cluster_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
)

// A brief chain shows what an ordinary one does, in another order.
func TestBriefChainShowsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := cluster.NewSnapshot(cluster.Spec{Nodes: cluster.Nodes("", 3, 0, 0)})
		if err != nil {
			t.Fatal(err)
		}
		brief := cluster.NewBriefChain(s)
		var list []cluster.TaskID // in the order of brief
		next := 0
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			var gone []int
			for i := range list {
				if rapid.Bool().Draw(t, "ends") {
					gone = append(gone, i)
				}
			}
			var added []cluster.Running
			for range rapid.IntRange(0, 4).Draw(t, "added") {
				id := cluster.TaskID(fmt.Sprint(next))
				next++
				added = append(added, cluster.Running{Task: cluster.Task{ID: id, Workload: "w"}, Node: "node-1"})
			}
			b, err := brief.Next(gone, added)
			if err != nil {
				t.Fatal(err)
			}
			var want, got []cluster.TaskID
			for i, id := range list {
				if !slices.Contains(gone, i) {
					want = append(want, id)
				}
			}
			for _, r := range added {
				want = append(want, r.ID)
			}
			list = list[:0]
			for _, r := range b.Running() {
				list, got = append(list, r.ID), append(got, r.ID)
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Fatalf("running %v, want %v", got, want)
			}
		}
	})
}
