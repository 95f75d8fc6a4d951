package storm_test

import (
	"fmt"
	"maps"
	"os"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cotenant/cotenant/kubernetes/storm"
)

// A log as kube-scheduler writes it, but for most resources.
const dumped = `I1201 03:00:00.1 1 dumper.go:60] "Dump of cached NodeInfo" nodes=<
	Node name: n0
	Deleted: false
	Requested Resources: &{MilliCPU:1000}
	Allocatable Resources:&{MilliCPU:4000}
	Scheduled Pods(number: 1):
	name: old, namespace: default, uid: u-old, phase: Running, nominated node: 
 >
I1201 03:00:00.1 1 dumper.go:70] "Dump of scheduling queue" summary="" pods=""
I1201 03:00:01.1 1 dumper.go:60] "Dump of cached NodeInfo" nodes=<
	Node name: n0
	Deleted: false
	Scheduled Pods(number: 2):
	name: a, namespace: default, uid: u-a, phase: Running, nominated node: 
	name: b, namespace: default, uid: u-b, phase: Running, nominated node: 
	Nominated Pods(number: 1):
	name: c, namespace: default, uid: u-c, phase: Pending, nominated node: n0
	
	Node name: n1
	Deleted: true
	Scheduled Pods(number: 1):
	name: d, namespace: default, uid: u-d, phase: Running, nominated node: 
 >
I1201 03:00:01.1 1 dumper.go:70] "Dump of scheduling queue" summary="activeQ:1" pods=<
	name: c, namespace: default, uid: u-c, phase: Pending, nominated node: n0
 >
`

func TestReadCache(t *testing.T) {
	on, ok := storm.ReadCache(dumped)
	if want := map[types.UID]string{"u-a": "n0", "u-b": "n0", "u-d": "n1"}; !ok || !maps.Equal(on, want) {
		t.Fatalf("read %v, want %v", on, want)
	}
	if _, ok := storm.ReadCache("nothing of the kind"); ok {
		t.Error("a log without a dump has one")
	}
	pod := func(name, node string, phase corev1.PodPhase) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("u-" + name)}, Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
	}
	if got := storm.CacheDiffers(on, []corev1.Pod{pod("a", "n0", "Running"), pod("b", "n0", "Running"), pod("c", "", "Pending"), pod("d", "n1", "Running")}); len(got) != 0 {
		t.Errorf("nothing differs, and it says %q", got)
	}
	got := storm.CacheDiffers(on, []corev1.Pod{pod("a", "n1", "Running"), pod("b", "n0", "Failed"), pod("e", "n1", "Running")})
	want := []string{
		`pod a is on "n1" by the API server, on "n0" by the cache`, `pod b is on "" by the API server, on "n0" by the cache`,
		`pod e is on "n1" by the API server, on "" by the cache`, `pod of UID u-d is gone by the API server, on "n1" by the cache`,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("it says\n%q, want\n%q", got, want)
	}
}

// settled is how long the cache may take to be what the API server has: a gang that
// is in part holds nodes of which only the scheduler knows until its timeout.
const settled = 3 * timeout

// compareCache has the scheduler dump its cache until it is what the API server
// lists, pod by pod.
func (w *weather) compareCache(when string) {
	w.Helper()
	begin := time.Now()
	for {
		before, err := os.Stat(w.scheduler.Log())
		if err != nil {
			w.Fatal(err)
		}
		if err := syscall.Kill(w.scheduler.PID(), syscall.SIGUSR2); err != nil {
			w.Fatal(err)
		}
		var on map[types.UID]string
		w.insist("the scheduler dumps its cache", func() error {
			all, err := os.ReadFile(w.scheduler.Log())
			if err != nil {
				return err
			}
			var ok bool
			if on, ok = storm.ReadCache(string(all[before.Size():])); !ok {
				return fmt.Errorf("its log has no %q", "Dump of cached NodeInfo")
			}
			return nil
		})
		var list *corev1.PodList
		w.insist("list pods", func() (err error) {
			list, err = w.kube.CoreV1().Pods("").List(w.ctx, metav1.ListOptions{})
			return err
		})
		differs := storm.CacheDiffers(on, list.Items)
		if len(differs) == 0 {
			w.Logf("%s the scheduler's cache has what the API server lists: %d pods on nodes, of %d", when, len(on), len(list.Items))
			return
		}
		if time.Since(begin) > settled {
			for _, d := range differs {
				w.Errorf("%s, after %v: %s", when, settled, d)
			}
			return
		}
		time.Sleep(time.Second)
	}
}
