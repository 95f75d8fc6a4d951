package plugin

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func ranks(priority int32) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Spec.Priority = &priority }
}

// there are pods of a priority on n0, n1 and so on, by another scheduler.
func there(priorities ...int32) (list []*v1.Pod) {
	for i, priority := range priorities {
		list = append(list, pod(fmt.Sprint("there-", i), "blue", ranks(priority), func(p *v1.Pod) {
			p.Spec.NodeName, p.Spec.SchedulerName = fmt.Sprint("n", i), "another"
		}))
	}
	return list
}

// Pods of lower priority make way for a gang, where all of it has nodes then.
func TestGangPreempts(t *testing.T) {
	never := v1.PreemptNever
	polite := func(p *v1.Pod) { p.Spec.PreemptionPolicy = &never }
	apart := func(p *v1.Pod) {
		p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: v1.LabelHostname, WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "red"}},
		}}
	}
	for _, c := range []struct {
		name   string
		nodes  int
		there  []int32
		gang   int
		change func(*v1.Pod)
		left   int // of those that were there
	}{
		{"all nodes are taken", 2, []int32{1, 1}, 2, nil, 0},
		{"one node is free", 3, []int32{1, 1}, 3, nil, 0},
		{"as many as needed", 3, []int32{1, 1, 1}, 2, nil, 1},
		{"rules between pods", 2, []int32{1, 1}, 2, apart, 0},
		{"it would not be whole", 2, []int32{1, 1}, 3, nil, 2},
		{"equals are among them", 2, []int32{1, 100}, 2, nil, 2},
		{"who never preempts", 2, []int32{1, 1}, 2, polite, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := start(t, "mode: enforce, slotsPerNode: 2, groupWindow: 20ms, waitTimeout: 10s", nodes(c.nodes, "1")...)
			w.create(there(c.there...)...)
			w.settles(len(c.there))
			change := c.change
			if change == nil {
				change = func(*v1.Pod) {}
			}
			w.create(named("g", c.gang, gang("g", c.gang), ranks(100), change)...)
			want := 0
			if c.left < len(c.there) {
				want = c.gang
				for end := time.Now().Add(20 * time.Second); w.boundOf("g") < want && time.Now().Before(end); {
					time.Sleep(5 * time.Millisecond)
				}
			} else {
				w.stays(len(c.there), 2*time.Second)
			}
			at := w.where()
			if left := len(at) - c.gang; left != c.left || w.boundOf("g") != want {
				t.Errorf("of those that were there %d are left, want %d; %d of the gang are bound, want %d: %v\n%s", left, c.left, w.boundOf("g"), want, at, w.told())
			}
		})
	}
}
