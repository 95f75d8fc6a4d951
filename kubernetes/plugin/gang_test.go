package plugin

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics/legacyregistry"
)

func named(prefix string, n int, change ...func(*v1.Pod)) []*v1.Pod {
	var out []*v1.Pod
	for i := range n {
		out = append(out, pod(fmt.Sprintf("%s-%d", prefix, i), "red", change...))
	}
	return out
}

func (w *world) boundOf(prefix string) int {
	n := 0
	for name, node := range w.where() {
		if node != "" && strings.HasPrefix(name, prefix+"-") {
			n++
		}
	}
	return n
}

const gangArgs = "mode: enforce, slotsPerNode: 2, groupWindow: 20ms, waitTimeout: 1s"

func TestGangWaitsForItsMinimum(t *testing.T) {
	w := start(t, gangArgs, nodes(4, "8")...)
	all := named("g", 3, gang("g", 3))
	w.create(all[:2]...)
	w.stays(0, 300*time.Millisecond)
	w.create(all[2])
	w.settles(3)
}

// Two gangs of which each could have some of the nodes that the other needs.
func TestGangsDoNotWaitForEachOther(t *testing.T) {
	for _, workload := range []string{"red", "green"} { // placed by a plan, and by the stock scores
		t.Run(workload, func(t *testing.T) {
			w := start(t, gangArgs, nodes(6, "1")...)
			a, b := named("a", 4, gang("a", 4)), named("b", 4, gang("b", 4))
			for i := range a {
				for _, p := range []*v1.Pod{a[i], b[i]} {
					p.Spec.Containers[0].Image = workload
				}
				w.create(a[i], b[i])
			}
			w.settles(4)
			w.stays(4, time.Second)
			first, second := "a", "b"
			if w.boundOf("b") == 4 {
				first, second = "b", "a"
			}
			if w.boundOf(first) != 4 || w.boundOf(second) != 0 {
				t.Fatalf("%d of a and %d of b have a node", w.boundOf("a"), w.boundOf("b"))
			}
			for i := range 4 {
				w.remove(fmt.Sprintf("%s-%d", first, i))
			}
			w.settles(4)
			if w.boundOf(second) != 4 {
				t.Fatalf("%d of %s have a node after the other gang went", w.boundOf(second), second)
			}
		})
	}
}

func TestGangThatDoesNotFitHoldsNothing(t *testing.T) {
	w := start(t, gangArgs, nodes(2, "1")...)
	w.create(named("g", 3, gang("g", 3))...)
	w.create(pod("red-alone", "red"))
	w.settles(1)
	w.stays(1, 500*time.Millisecond)
	if told := w.told(); !strings.Contains(told, "gang") {
		t.Errorf("events don't name the gang:\n%s", told)
	}
}

// A gang that the scheduler's own filters refuse waits as any pod does: its pods
// must not call each other past their backoff.
func TestGangThatIsRefusedBacksOff(t *testing.T) {
	for name, args := range map[string]string{"enforce, unknown": gangArgs, "assist": strings.Replace(gangArgs, "enforce", "assist", 1)} {
		for room, n := range map[string]int{"room for none": 0, "room for one": 1} {
			t.Run(name+", "+room, func(t *testing.T) {
				w := start(t, args, nodes(max(1, n), map[int]string{0: "0.5", 1: "1"}[n])...)
				all := named("g", 3, gang("g", 3))
				for _, p := range all {
					p.Spec.Containers[0].Image = map[bool]string{true: "red", false: "green"}[name == "assist"]
				}
				before := attempts(t)
				w.create(all...)
				w.stays(0, 2*time.Second)
				if tried := attempts(t) - before; tried == 0 || tried > 60 {
					t.Errorf("its pods were tried %g times in two seconds", tried)
				}
				for i := range 3 {
					w.remove(fmt.Sprintf("g-%d", i))
				}
			})
		}
	}
}

// attempts is how often the scheduler has tried to place a pod.
func attempts(t *testing.T) (sum float64) {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "scheduler_schedule_attempts_total" {
			for _, m := range f.GetMetric() {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// A failed bind of a gang's pod is tried again on the node that it holds,
// whoever keeps the gang together and whatever decided on the node.
func TestFailedBindOfAGangIsTriedAgainOnItsNode(t *testing.T) {
	for _, c := range []struct {
		name, args, workload string
		member               func(*v1.Pod)
	}{
		{"labelled", gangArgs, "red", gang("g", 3)},
		{"labelled, unknown", gangArgs, "green", gang("g", 3)},
		{"labelled, assist", strings.Replace(gangArgs, "enforce", "assist", 1), "green", gang("g", 3)},
		{"PodGroup", gangArgs, "red", of("g")},
		{"PodGroup, unknown", gangArgs, "green", of("g")},
	} {
		t.Run(c.name, func(t *testing.T) {
			gates(t, true)
			w := start(t, c.args, append(nodes(3, "8"), podGroup("g", 3))...)
			var failed atomic.Int32
			var at atomic.Value
			w.refusing(func(pod, node string) error {
				if pod == "g-1" && failed.Add(1) <= 3 {
					at.Store(node)
					return errors.New("the API server restarts")
				}
				return nil
			})
			image := func(p *v1.Pod) { p.Spec.Containers[0].Image = c.workload }
			w.create(named("g", 3, c.member, image)...)
			got := w.settles(3)
			if failed.Load() != 4 || got["g-1"] != at.Load() {
				t.Errorf("g-1 failed %d times on %v and is on %s", failed.Load()-1, at.Load(), got["g-1"])
			}
			for name, n := range w.bound {
				if n != 1 {
					t.Errorf("%s was bound %d times", name, n)
				}
			}
			if told := w.told(); strings.Contains(told, "FailedScheduling") {
				t.Errorf("a bind was given up on:\n%s", told)
			}
		})
	}
}

// A binding whose answer was lost came through nevertheless.
func TestBindWhoseAnswerWasLost(t *testing.T) {
	w := start(t, gangArgs, nodes(3, "8")...)
	var once atomic.Bool
	w.client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		handled, obj, err := w.bind(action)
		if handled && err == nil && once.CompareAndSwap(false, true) {
			return true, nil, errors.New("connection reset")
		}
		return handled, obj, err
	})
	w.create(named("g", 3, gang("g", 3))...)
	w.settles(3)
	for name, n := range w.bound {
		if n != 1 {
			t.Errorf("%s was bound %d times", name, n)
		}
	}
}

// evictions counts, and takes the pods away as the API server does.
func (w *world) evictions() *atomic.Int32 {
	var n atomic.Int32
	w.client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "eviction" {
			return false, nil, nil
		}
		n.Add(1)
		e := action.(clienttesting.CreateAction).GetObject().(*policyv1.Eviction)
		return true, nil, w.client.Tracker().Delete(v1.SchemeGroupVersion.WithResource("pods"), e.Namespace, e.Name)
	})
	return &n
}

func (w *world) phase(name string, p v1.PodPhase) {
	w.Helper()
	got, err := w.client.CoreV1().Pods("default").Get(w.ctx, name, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	got = got.DeepCopy()
	got.Status.Phase = p
	got.ResourceVersion += "0"
	if _, err := w.client.CoreV1().Pods("default").UpdateStatus(w.ctx, got, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// The pods of a gang that finish one by one are not lost.
func TestPodsThatFinishAreNotLost(t *testing.T) {
	w := start(t, gangArgs+", evictPartialGangs: true", nodes(3, "8")...)
	n := w.evictions()
	w.create(named("g", 3, gang("g", 3))...)
	w.settles(3)
	for i := range 2 {
		w.phase(fmt.Sprintf("g-%d", i), v1.PodSucceeded)
	}
	time.Sleep(1500 * time.Millisecond)
	w.remove("g-0") // as the controller does after a while
	time.Sleep(1500 * time.Millisecond)
	if n.Load() != 0 {
		t.Errorf("%d pods of a gang that finishes were evicted", n.Load())
	}
}

// A pod of a gang of which others have finished already is replaced: those
// that have finished count.
func TestLostPodOfAGangThatFinishesIsReplaced(t *testing.T) {
	w := start(t, gangArgs, nodes(3, "8")...)
	w.create(named("g", 3, gang("g", 3))...)
	w.settles(3)
	w.phase("g-0", v1.PodSucceeded)
	w.remove("g-1")
	w.create(pod("g-1b", "red", gang("g", 3)))
	w.settles(3)
}

func TestGangInPartIsEvictedOnlyIfConfigured(t *testing.T) {
	basic := podGroup("basic", 0)
	basic.Spec.SchedulingPolicy = schedulingv1beta1.PodGroupSchedulingPolicy{Basic: &schedulingv1beta1.BasicSchedulingPolicy{}}
	for _, c := range []struct {
		name   string
		evict  bool
		member func(*v1.Pod)
		want   int32
	}{
		{"labelled, not configured", false, gang("g", 3), 0},
		{"labelled", true, gang("g", 3), 2},
		{"PodGroup, not configured", false, of("g"), 0},
		{"PodGroup", true, of("g"), 2},
		{"PodGroup that may be in part", true, of("basic"), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			gates(t, true)
			w := start(t, fmt.Sprintf("%s, evictPartialGangs: %v", gangArgs, c.evict), append(nodes(3, "8"), podGroup("g", 3), basic)...)
			n := w.evictions()
			w.create(named("g", 3, c.member)...)
			w.settles(3)
			w.remove("g-2")
			time.Sleep(2500 * time.Millisecond)
			if got := n.Load(); got != c.want {
				t.Errorf("%d evicted, want %d", got, c.want)
			}
		})
	}
}

// A pod that takes a lost one's place completes the gang again.
func TestLostPodIsReplaced(t *testing.T) {
	w := start(t, gangArgs, nodes(3, "8")...)
	w.create(named("g", 3, gang("g", 3))...)
	w.settles(3)
	w.remove("g-1")
	w.create(pod("g-1b", "red", gang("g", 3)))
	w.settles(3)
}
