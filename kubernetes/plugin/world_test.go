package plugin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/cotenant/cotenant/kubernetes/controlplane/planetest"
	"github.com/cotenant/cotenant/kubernetes/plugin/pods"
)

// world is a real scheduler, with its real queue, cache and framework, over a
// client that holds objects in memory.
type world struct {
	*testing.T
	ctx     context.Context
	client  *fake.Clientset
	plugin  any
	samples string
	events  chan string

	mu     sync.Mutex
	refuse func(pod, node string) error // what the API server answers to a binding
	bound  map[string]int               // times that a pod was bound
}

// start runs a scheduler whose profile has the plugin with the arguments, a YAML
// flow such as "mode: enforce, slotsPerNode: 2".
func start(t *testing.T, args string, objects ...runtime.Object) *world {
	t.Helper()
	return startWith(t, planetest.TwoColours, args, objects...)
}

// startWith is start with other samples; "" is no file.
func startWith(t *testing.T, samples, args string, objects ...runtime.Object) *world {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &world{T: t, ctx: ctx, client: fake.NewClientset(objects...), bound: map[string]int{}, events: make(chan string, 10000)}
	w.samples = filepath.Join(t.TempDir(), "samples.jsonl")
	if samples != "" {
		w.writeSamples(samples)
	}
	w.client.PrependReactor("create", "pods", w.bind)
	w.client.PrependWatchReactor("pods", w.watch)
	cfg := configuration(t, fmt.Sprintf("{%s, policy: {name: greedy}, samples: {path: %q}}", args, w.samples))
	factory := scheduler.NewInformerFactory(w.client, 0, nil)
	registry := frameworkruntime.Registry{Name: func(ctx context.Context, obj runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
		p, err := New(ctx, obj, h)
		w.plugin = p
		return p, err
	}}
	recorder := events.NewFakeRecorder(10000)
	sched, err := scheduler.New(ctx, w.client, factory, nil, func(string) events.EventRecorderLogger { return recorder },
		scheduler.WithProfiles(cfg.Profiles...), scheduler.WithFrameworkOutOfTreeRegistry(registry),
		scheduler.WithPodInitialBackoffSeconds(1), scheduler.WithPodMaxBackoffSeconds(1))
	if err != nil {
		t.Fatal(err)
	}
	w.events = recorder.Events
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	if err := sched.WaitForHandlersSync(ctx); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); sched.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done; factory.Shutdown() })
	return w
}

func configuration(t *testing.T, args string) *schedulerapi.KubeSchedulerConfiguration {
	t.Helper()
	text := `---
{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, profiles: [{schedulerName: default-scheduler,
		plugins: {multiPoint: {enabled: [{name: Cotenant, weight: 100}]}},
		pluginConfig: [{name: Cotenant, args: ` + args + `}, {name: PodTopologySpread, args: {defaultingType: List}}]}]}`
	obj, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(text), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg, ok := obj.(*schedulerapi.KubeSchedulerConfiguration)
	if !ok {
		t.Fatalf("configuration is a %T", obj)
	}
	return cfg
}

func (w *world) writeSamples(text string) {
	w.Helper()
	if err := os.WriteFile(w.samples, []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
}

// bind is the API server's part of a binding: it takes over its annotations.
func (w *world) bind(action clienttesting.Action) (bool, runtime.Object, error) {
	if action.GetSubresource() != "binding" {
		return false, nil, nil
	}
	b, ok := action.(clienttesting.CreateAction).GetObject().(*v1.Binding)
	if !ok {
		return true, nil, errors.New("no binding")
	}
	w.mu.Lock()
	refuse := w.refuse
	w.mu.Unlock()
	if refuse != nil {
		if err := refuse(b.Name, b.Target.Name); err != nil {
			return true, nil, err
		}
	}
	obj, err := w.client.Tracker().Get(v1.SchemeGroupVersion.WithResource("pods"), b.Namespace, b.Name)
	if err != nil {
		return true, nil, err
	}
	pod := obj.(*v1.Pod).DeepCopy()
	if pod.Spec.NodeName != "" {
		return true, nil, fmt.Errorf("pod %s is bound to %s already", pod.Name, pod.Spec.NodeName)
	}
	pod.Spec.NodeName = b.Target.Name
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	maps.Copy(pod.Annotations, b.Annotations)
	w.mu.Lock()
	w.bound[pod.Name]++
	w.mu.Unlock()
	return true, nil, w.client.Tracker().Update(v1.SchemeGroupVersion.WithResource("pods"), pod, b.Namespace)
}

// watch is as the API server has it for the scheduler, which selects pods that
// have not ended: one that ends is deleted, as it was before.
func (w *world) watch(action clienttesting.Action) (bool, watch.Interface, error) {
	all, err := w.client.Tracker().Watch(action.GetResource(), action.GetNamespace())
	if err != nil {
		return true, nil, err
	}
	return true, watch.Filter(all, func(e watch.Event) (watch.Event, bool) {
		if pod, ok := e.Object.(*v1.Pod); ok && pods.Ended(pod) && e.Type == watch.Modified {
			pod = pod.DeepCopy()
			pod.Status.Phase = v1.PodRunning
			return watch.Event{Type: watch.Deleted, Object: pod}, true
		}
		return e, true
	}), nil
}

func (w *world) refusing(f func(pod, node string) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refuse = f
}

func (w *world) create(list ...*v1.Pod) {
	w.Helper()
	for _, p := range list {
		if _, err := w.client.CoreV1().Pods(p.Namespace).Create(w.ctx, p, metav1.CreateOptions{}); err != nil {
			w.Fatal(err)
		}
	}
}

func (w *world) remove(name string) {
	w.Helper()
	if err := w.client.CoreV1().Pods("default").Delete(w.ctx, name, metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
}

// where is the node of each pod.
func (w *world) where() map[string]string {
	w.Helper()
	list, err := w.client.CoreV1().Pods("").List(w.ctx, metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	out := map[string]string{}
	for i := range list.Items {
		out[list.Items[i].Name] = list.Items[i].Spec.NodeName
	}
	return out
}

// settles waits until n pods have a node, and returns where all are.
func (w *world) settles(n int) map[string]string {
	w.Helper()
	var at map[string]string
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		at = w.where()
		bound := 0
		for _, node := range at {
			if node != "" {
				bound++
			}
		}
		if bound == n {
			return at
		}
		if time.Now().After(end) {
			w.Fatalf("%d pods have a node, %d should; events:\n%s\n%v", bound, n, w.told(), at)
		}
	}
}

// stays checks that for a while no more than n pods have a node.
func (w *world) stays(n int, d time.Duration) {
	w.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		bound := 0
		for _, node := range w.where() {
			if node != "" {
				bound++
			}
		}
		if bound > n {
			w.Fatalf("%d pods have a node, at most %d should: %v", bound, n, w.where())
		}
	}
}

// told is the events so far.
func (w *world) told() string {
	var lines []string
	for {
		select {
		case e := <-w.events:
			lines = append(lines, e)
		default:
			return strings.Join(lines, "\n")
		}
	}
}

func node(name string, cpu string, change ...func(*v1.Node)) *v1.Node {
	n := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{v1.LabelHostname: name}},
		Status: v1.NodeStatus{Allocatable: v1.ResourceList{
			v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse("8Gi"), v1.ResourcePods: resource.MustParse("110"),
		}},
	}
	for _, f := range change {
		f(n)
	}
	return n
}

func nodes(n int, cpu string) []runtime.Object {
	var out []runtime.Object
	for i := range n {
		out = append(out, node(fmt.Sprintf("n%d", i), cpu))
	}
	return out
}

var podNumber int

func pod(name, image string, change ...func(*v1.Pod)) *v1.Pod {
	podNumber++
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "default", UID: types.UID(fmt.Sprintf("uid-%s-%d", name, podNumber)),
			Labels: map[string]string{"app": image}, ResourceVersion: fmt.Sprint(podNumber),
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: image, Controller: new(true)}},
		},
		Spec: v1.PodSpec{
			SchedulerName: v1.DefaultSchedulerName,
			Containers: []v1.Container{{Name: "c", Image: "example.org/" + image + ":1", Resources: v1.ResourceRequirements{
				Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")},
			}}},
		},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

// gang labels the pod as one of a gang of n.
func gang(name string, n int) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Labels["scheduling.x-k8s.io/pod-group"] = name
		p.Annotations = map[string]string{"cotenant.dev/gang-minimum": fmt.Sprint(n)}
	}
}

func list(n int, image string, change ...func(*v1.Pod)) []*v1.Pod {
	var out []*v1.Pod
	for i := range n {
		out = append(out, pod(fmt.Sprintf("%s-%d", image, i), image, change...))
	}
	return out
}

// mixed checks that each node has one pod of each colour.
func (w *world) mixed(at map[string]string) {
	w.Helper()
	on := map[string][]string{}
	for name, n := range at {
		colour, _, _ := strings.Cut(name, "-")
		on[n] = append(on[n], colour)
	}
	for n, colours := range on {
		slices.Sort(colours)
		if !slices.Equal(colours, []string{"blue", "red"}) {
			w.Errorf("on %s are %v, the plan has one of each everywhere: %v", n, colours, at)
		}
	}
}
