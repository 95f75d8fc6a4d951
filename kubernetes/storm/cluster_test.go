package storm_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/cotenant/cotenant/kubernetes/controlplane"
	"github.com/cotenant/cotenant/kubernetes/storm"
)

const namespace = "default"

// weather is a cluster under a storm, and who plays the part of the
// controllers: what was deleted by the storm is made anew, as a Job would.
type weather struct {
	*testing.T
	ctx       context.Context
	rand      *rand.Rand
	plane     *controlplane.Plane
	kube      kubernetes.Interface
	scheduler *controlplane.RunningScheduler
	ledger    *storm.Ledger
	member    func(g gang, p *corev1.Pod) // marks a pod as a gang's
	native    bool
	running   []gang // submitted and not ended
	away      map[string]time.Time
	nodes     []*corev1.Node
}

// gang is a job whose tasks are pods.
type gang struct {
	name     string
	size     int
	workload string
}

func (g gang) pods() []string {
	names := make([]string, g.size)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", g.name, i)
	}
	return names
}

// insist does what the API server must do, however often it is away.
func (w *weather) insist(what string, do func() error) {
	w.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		err := do()
		if err == nil {
			return
		}
		if time.Now().After(deadline) || w.ctx.Err() != nil {
			w.Fatalf("%s: %v", what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func unless(is func(error) bool, err error) error {
	if is(err) {
		return nil
	}
	return err
}

// watch feeds the ledger.
func (w *weather) watch() {
	factory := informers.NewSharedInformerFactory(w.kube, 0)
	informer := factory.Core().V1().Pods().Informer()
	if _, err := informer.AddEventHandler(w.ledger.Handler()); err != nil {
		w.Fatal(err)
	}
	factory.Start(w.ctx.Done())
	factory.WaitForCacheSync(w.ctx.Done())
}

// mayEvict lets the scheduler evict, which the stock one has no right to and
// ours needs where it is configured to.
func (w *weather) mayEvict() {
	evict := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}}
	if err := w.plane.Allow(w.ctx, "evict", evict); err != nil {
		w.Fatal(err)
	}
}

func (w *weather) submit(g gang) {
	w.Helper()
	w.ledger.Expect(g.name, g.size)
	if w.native {
		group := &schedulingv1beta1.PodGroup{
			ObjectMeta: metav1.ObjectMeta{Name: g.name, Namespace: namespace},
			Spec: schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
				Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(g.size)},
			}},
		}
		w.insist("create group "+g.name, func() error {
			_, err := w.kube.SchedulingV1beta1().PodGroups(namespace).Create(w.ctx, group, metav1.CreateOptions{})
			return unless(apierrors.IsAlreadyExists, err)
		})
	}
	for _, name := range g.pods() {
		w.createPod(g, name)
	}
	w.running = append(w.running, g)
}

func (w *weather) createPod(g gang, name string) {
	w.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: namespace, Annotations: map[string]string{},
			Labels: map[string]string{storm.GangLabel: g.name, "cotenant.dev/workload": g.workload},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: g.workload,
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
		}}},
	}
	w.member(g, p)
	w.insist("create pod "+name, func() error {
		_, err := w.kube.CoreV1().Pods(namespace).Create(w.ctx, p, metav1.CreateOptions{})
		return unless(apierrors.IsAlreadyExists, err)
	})
}

var atOnce = func() metav1.DeleteOptions {
	none := int64(0)
	return metav1.DeleteOptions{GracePeriodSeconds: &none}
}()

func (w *weather) deletePod(name string) {
	w.Helper()
	w.insist("delete pod "+name, func() error {
		return unless(apierrors.IsNotFound, w.kube.CoreV1().Pods(namespace).Delete(w.ctx, name, atOnce))
	})
}

// finish ends a whole gang, its pods one by one in random order, and removes
// them once all have succeeded.
func (w *weather) finish(i int) {
	w.Helper()
	g := w.running[i]
	if !w.there(g) {
		return // it will be whole again
	}
	w.running = append(w.running[:i], w.running[i+1:]...)
	names := g.pods()
	w.rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	// Said again until they have: kwok misses the word where it comes while it
	// is about to call the pod running, or away.
	tries, last := 0, time.Time{}
	w.insist("gang "+g.name+" finishes", func() error {
		if w.ledger.All(g.name, corev1.PodSucceeded) {
			return nil
		}
		if time.Since(last) < time.Second {
			return errors.New("some of its pods still run")
		}
		tries++
		last = time.Now()
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"cotenant.dev/finished":"%d"}}}`, tries)
		for _, name := range names {
			_, err := w.kube.CoreV1().Pods(namespace).Patch(w.ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
			if err != nil {
				return fmt.Errorf("finish pod %s: %w", name, err)
			}
		}
		return errors.New("some of its pods still run")
	})
	w.ledger.Forget(g.name)
	for _, name := range names {
		w.deletePod(name)
	}
}

// there reports whether all pods of a gang run as the API server has it: behind an
// outage the ledger has yet to hear of pods that were deleted just before.
func (w *weather) there(g gang) bool {
	w.Helper()
	running := 0
	w.insist("list pods of gang "+g.name, func() error {
		pods, err := w.kube.CoreV1().Pods(namespace).List(w.ctx, metav1.ListOptions{LabelSelector: storm.GangLabel + "=" + g.name})
		if err != nil {
			return err
		}
		running = 0
		for i := range pods.Items {
			if pods.Items[i].Status.Phase == corev1.PodRunning {
				running++
			}
		}
		return nil
	})
	return running == g.size
}

// ownEnd is what kube-scheduler 1.37 says before it ends itself. It does where a
// pod was deleted and made anew, under its name, while its watch was broken: the
// informer tells of one pod that changed its node.
const ownEnd = "Pod updated on a different node than previously added to"

// supervise starts the scheduler again where it has ended itself, as a kubelet
// would.
func (w *weather) supervise() {
	w.Helper()
	err := w.scheduler.Died()
	if err == nil {
		return
	}
	if !strings.Contains(err.Error(), ownEnd) {
		w.Fatal(err)
	}
	w.Log("kube-scheduler has ended itself: " + ownEnd)
	w.restartScheduler(0)
}

// loseNode deletes a node and, as a controller would, its pods.
func (w *weather) loseNode(name string, back time.Time) {
	w.Helper()
	w.away[name] = back
	w.insist("delete node "+name, func() error {
		return unless(apierrors.IsNotFound, w.kube.CoreV1().Nodes().Delete(w.ctx, name, metav1.DeleteOptions{}))
	})
	var pods *corev1.PodList
	w.insist("list pods of node "+name, func() (err error) {
		pods, err = w.kube.CoreV1().Pods(namespace).List(w.ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
		return err
	})
	for _, p := range pods.Items {
		w.deletePod(p.Name)
	}
}

// mend brings back the nodes whose time has come, and makes pods anew that
// were deleted by somebody else than the end of their gang.
func (w *weather) mend(now time.Time) {
	w.Helper()
	w.supervise()
	for _, n := range w.nodes {
		back, is := w.away[n.Name]
		if !is || now.Before(back) {
			continue
		}
		delete(w.away, n.Name)
		w.insist("create node "+n.Name, func() error {
			_, err := w.kube.CoreV1().Nodes().Create(w.ctx, n.DeepCopy(), metav1.CreateOptions{})
			return unless(apierrors.IsAlreadyExists, err)
		})
	}
	var pods *corev1.PodList
	w.insist("list pods", func() (err error) {
		pods, err = w.kube.CoreV1().Pods(namespace).List(w.ctx, metav1.ListOptions{ResourceVersion: "0"})
		return err
	})
	there := map[string]bool{}
	for _, p := range pods.Items {
		there[p.Name] = true
		if at := p.Spec.NodeName; at != "" {
			if _, is := w.away[at]; is {
				w.deletePod(p.Name) // bound to a node that was gone by then
				there[p.Name] = false
			}
		}
	}
	for _, g := range w.running {
		for _, name := range g.pods() {
			if !there[name] {
				w.createPod(g, name)
			}
		}
	}
}

// restartAPI kills the API server, and starts it again after a while.
func (w *weather) restartAPI(after time.Duration) {
	w.Helper()
	begin := time.Now()
	if err := w.plane.APIServer.Kill(); err != nil {
		w.Fatal(err)
	}
	time.Sleep(after)
	if err := w.plane.APIServer.Start(w.ctx); err != nil {
		w.Fatal(err)
	}
	w.ledger.Excuse(time.Since(begin))
}

// restartScheduler kills the scheduler, and starts it again after a while.
func (w *weather) restartScheduler(after time.Duration) {
	w.Helper()
	begin := time.Now()
	if err := w.scheduler.Kill(); err != nil {
		w.Fatal(err)
	}
	time.Sleep(after)
	if err := w.scheduler.Start(w.ctx); err != nil {
		w.Fatal(err)
	}
	w.ledger.Excuse(time.Since(begin))
}
