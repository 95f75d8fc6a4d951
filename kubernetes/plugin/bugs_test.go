package plugin

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/place"
)

const enforceArgs = "mode: enforce, slotsPerNode: 2, groupWindow: 20ms"

// A failed bind gives the node's room back, and the pod is tried again.
func TestFailedBindForgetsThePod(t *testing.T) {
	w := start(t, enforceArgs, nodes(1, "1")...)
	var failed atomic.Bool
	w.refusing(func(pod, _ string) error {
		if failed.CompareAndSwap(false, true) {
			return errors.New("oh")
		}
		return nil
	})
	w.create(pod("red-0", "red"))
	w.settles(1)
	if !failed.Load() || w.bound["red-0"] != 1 {
		t.Errorf("failed: %v; bound: %v", failed.Load(), w.bound)
	}
}

func TestPodDeletedWhileBinding(t *testing.T) {
	w := start(t, enforceArgs, nodes(1, "1")...)
	gone := make(chan bool)
	w.refusing(func(pod, _ string) error {
		if pod != "red-0" {
			return nil
		}
		defer close(gone)
		if err := w.client.Tracker().Delete(v1.SchemeGroupVersion.WithResource("pods"), "default", pod); err != nil {
			return err
		}
		return apierrors.NewNotFound(v1.Resource("pods"), pod)
	})
	w.create(pod("red-0", "red"))
	<-gone
	w.create(pod("blue-0", "blue")) // only fits if nothing of red-0 is left
	if at := w.settles(1); at["blue-0"] == "" {
		t.Error(at)
	}
}

// A node that comes back under its name is another one.
func TestNodeComesBackUnderItsName(t *testing.T) {
	w := start(t, enforceArgs, node("n0", "4"))
	w.create(pod("red-0", "red"))
	w.settles(1)
	w.remove("red-0")
	if err := w.client.CoreV1().Nodes().Delete(w.ctx, "n0", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.create(pod("red-1", "red"), pod("blue-1", "blue"))
	w.stays(0, 200*time.Millisecond)
	again := node("n0", "1")
	again.UID = "another"
	if _, err := w.client.CoreV1().Nodes().Create(w.ctx, again, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.settles(1) // it has room for one by now
	w.stays(1, 300*time.Millisecond)
}

func TestZeroOfAResourceThatNoNodeHas(t *testing.T) {
	w := start(t, enforceArgs, nodes(2, "8")...)
	w.create(list(2, "red", func(p *v1.Pod) {
		p.Spec.Containers[0].Resources.Requests["example.org/unicorn"] = resource.MustParse("0")
	})...)
	at := w.settles(2)
	if at["red-0"] == at["red-1"] {
		t.Errorf("two reds on one node: the plan was not followed: %v\n%s", at, w.told())
	}
}

func TestContainersWithoutRequests(t *testing.T) {
	for _, mode := range []string{"assist", "enforce"} {
		t.Run(mode, func(t *testing.T) {
			w := start(t, "mode: "+mode+", slotsPerNode: 2, groupWindow: 20ms", nodes(2, "8")...)
			none := func(p *v1.Pod) { p.Spec.Containers[0].Resources = v1.ResourceRequirements{} }
			w.create(pod("red-0", "red", none))
			w.settles(1)
			w.create(pod("red-1", "red", none))
			if at := w.settles(2); at["red-0"] == at["red-1"] {
				t.Errorf("two reds on one node: %v\n%s", at, w.told())
			}
		})
	}
}

func TestScoresAreScores(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gain := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), -1e300})).Draw(t, "gain")
		neutral := rapid.Int64Range(0, 100).Draw(t, "neutral")
		score, odd := scoreOf(gain, neutral)
		if score < 0 || score > 100 || odd != (math.IsNaN(gain) || math.IsInf(gain, 0)) || odd && score != neutral {
			t.Fatalf("gain %g: score %d, odd %v", gain, score, odd)
		}
	})
}

// While a plan is made, another scheduler fills all of its nodes but the first
// pod's: the plan is redone for the others.
func TestClusterChangesUnderThePlan(t *testing.T) {
	// The window is long enough for all to come on a machine that is busy.
	w := start(t, "mode: enforce, slotsPerNode: 2, groupWindow: 300ms", nodes(6, "8")...)
	greedy, err := w.plugin.(*Plugin).brain.Now().Services()
	if err != nil {
		t.Fatal(err)
	}
	var calls atomic.Int32
	w.policyOf(func(r place.Request) (place.Decision, error) {
		d, err := greedy.Place(r)
		if calls.Add(1) > 1 {
			return d, err
		}
		filled := map[string]bool{d.Bind[0].Node: true}
		for _, b := range d.Bind {
			for i := range 2 {
				if filled[b.Node] {
					continue
				}
				s := pod(fmt.Sprintf("stranger-%s-%d", b.Node, i), "red", func(p *v1.Pod) {
					p.Spec.SchedulerName, p.Spec.NodeName = "another", b.Node
				})
				if err := w.client.Tracker().Create(v1.SchemeGroupVersion.WithResource("pods"), s, "default"); err != nil {
					return d, err
				}
			}
			filled[b.Node] = true
		}
		time.Sleep(100 * time.Millisecond) // the scheduler's cache hears of them
		return d, err
	})
	w.create(append(list(2, "red"), list(2, "blue")...)...)
	var strangers int
	var at map[string]string
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		ours := 0
		strangers, at = 0, w.where()
		for name, n := range at {
			if strings.HasPrefix(name, "stranger") {
				strangers++
			} else if n != "" {
				ours++
			}
		}
		if ours == 4 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%v\n%s", at, w.told())
		}
	}
	on := map[string]int{}
	for _, n := range at {
		on[n]++
	}
	for n, count := range on {
		if count > 2 {
			t.Errorf("%d pods on %s: %v", count, n, at)
		}
	}
	if strangers == 0 || calls.Load() < 2 {
		t.Errorf("%d strangers came and the policy was asked %d times", strangers, calls.Load())
	}
}

func TestStockRulesHold(t *testing.T) {
	tainted := node("n0", "8", func(n *v1.Node) {
		n.Spec.Taints = []v1.Taint{{Key: "k", Value: "v", Effect: v1.TaintEffectNoSchedule}}
	})
	cordoned := node("n1", "8", func(n *v1.Node) { n.Spec.Unschedulable = true })
	labelled := node("n2", "8", func(n *v1.Node) { n.Labels["disk"] = "ssd" })
	apart := func(p *v1.Pod) {
		p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "red"}}, TopologyKey: v1.LabelHostname,
		}}}}
	}
	w := start(t, enforceArgs, tainted, cordoned, labelled, node("n3", "8"), node("n4", "8"))
	w.create(list(3, "red", apart)...)
	w.create(pod("blue-0", "blue", func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} }))
	w.create(pod("blue-1", "blue", func(p *v1.Pod) { p.Spec.NodeName = ""; p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "g"}} }))
	at := w.settles(4)
	w.stays(4, 300*time.Millisecond)
	seen := map[string]bool{}
	for name, n := range at {
		if n == "n0" || n == "n1" {
			t.Errorf("%s is on %s, which is tainted or cordoned", name, n)
		}
		if strings.HasPrefix(name, "red") {
			if seen[n] {
				t.Errorf("two reds, which keep each other off, on %s: %v", n, at)
			}
			seen[n] = true
		}
	}
	if at["blue-0"] != "n2" || at["blue-1"] != "" {
		t.Errorf("blue-0 selects n2 and is on %s; blue-1 is gated and on %q", at["blue-0"], at["blue-1"])
	}
}

func TestPreemption(t *testing.T) {
	w := start(t, enforceArgs, nodes(1, "1")...)
	low, high := int32(0), int32(1000)
	w.create(pod("red-low", "red", func(p *v1.Pod) { p.Spec.Priority = &low }))
	w.settles(1)
	w.create(pod("blue-high", "blue", func(p *v1.Pod) { p.Spec.Priority = &high }))
	for end := time.Now().Add(10 * time.Second); w.where()["blue-high"] == ""; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%v\n%s", w.where(), w.told())
		}
	}
	if _, there := w.where()["red-low"]; there {
		t.Error("the pod of low priority is still there")
	}
}
