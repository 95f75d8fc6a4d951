package plugin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/fake"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"

	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/kubernetes/controlplane"
	"github.com/cotenant/cotenant/kubernetes/controlplane/planetest"
	"github.com/cotenant/cotenant/kubernetes/plugin/pods"
)

func label(key, value string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Labels[key] = value }
}

// A gang of which nobody says how many pods go together waits for more for as
// long as they come, however slowly.
func TestGangWithoutANumberWaitsUntilNoMoreCome(t *testing.T) {
	w := start(t, gangArgs+", gangWindow: 500ms", nodes(2, "1")...)
	for _, p := range named("g", 4, label("jobset.sigs.k8s.io/jobset-name", "g")) {
		w.create(p)
		w.stays(0, 250*time.Millisecond)
	}
	w.stays(0, 1500*time.Millisecond) // there is room for two
	if told := w.told(); !strings.Contains(told, "CotenantGangUnnumbered") || !strings.Contains(told, "those 4 that are there do") {
		t.Errorf("nobody is told that the gang's number is a guess:\n%s", told)
	}
	for i := range 2 {
		if _, err := w.client.CoreV1().Nodes().Create(w.ctx, node(fmt.Sprint("more-", i), "1"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w.settles(4)
}

// An object that the scheduler has no right to read is no object that says nothing.
func TestGangObjectsThatMayNotBeRead(t *testing.T) {
	volcano := formats.GangResources[2]
	resource := schema.GroupVersionResource{Group: volcano.Group, Version: volcano.Version, Resource: volcano.Resource}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{resource: "PodGroupList"})
	var may atomic.Bool
	client.PrependReactor("list", volcano.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		return !may.Load(), nil, apierrors.NewForbidden(resource.GroupResource(), "", errors.New("no such right"))
	})
	o := newGangObjects(&fake.FakeDiscovery{Fake: &clienttesting.Fake{}}, client, klog.Background())
	o.watch(t.Context(), volcano)
	defer o.watched[volcano]()
	until := func(hidden bool) (why string) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
			if why = o.hidden(pods.Volcano); (why != "") == hidden {
				return why
			}
			if time.Now().After(end) {
				t.Fatalf("%q", why)
			}
		}
	}
	if why := until(true); !strings.Contains(why, "PodGroup of scheduling.volcano.sh/v1beta1") || !strings.Contains(why, "no such right") {
		t.Error(why)
	}
	may.Store(true)
	until(false)
}

// Objects are read from when their kind is served, and forgotten with it.
func TestGangObjectsComeAndGo(t *testing.T) {
	volcano := formats.GangResources[2]
	resource := schema.GroupVersionResource{Group: volcano.Group, Version: volcano.Version, Resource: volcano.Resource}
	group := planetest.Object(t, `{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {namespace: default, name: g}, spec: {minMember: 4}}`)
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{resource: "PodGroupList"}, group)
	served := &fake.FakeDiscovery{Fake: &clienttesting.Fake{}}
	o := newGangObjects(served, client, klog.Background())
	is := func(n int, timeout time.Duration) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
			got := o.of("default", &pods.Gang{Convention: pods.Volcano, Name: "g"})
			if got.Minimum == n && got.Timeout == timeout {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("the gang is %+v, want %d", got, n)
			}
		}
	}
	o.look(t.Context())
	is(0, 0)
	served.Resources = []*metav1.APIResourceList{{GroupVersion: resource.GroupVersion().String(), APIResources: []metav1.APIResource{{Name: "queues"}, {Name: volcano.Resource}}}}
	o.look(t.Context())
	is(4, 0)
	if got := o.of("default", &pods.Gang{Convention: pods.Coscheduling, Name: "g"}); got.Minimum != 0 {
		t.Errorf("another convention's gang of that name is %+v", got)
	}
	group.Object["spec"] = map[string]any{"minMember": int64(5), "scheduleTimeoutSeconds": int64(7)}
	if _, err := client.Resource(resource).Namespace("default").Update(t.Context(), group, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	is(5, 7*time.Second)
	if err := client.Resource(resource).Namespace("default").Delete(t.Context(), "g", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	is(0, 0)
	served.Resources = nil
	o.look(t.Context())
	if len(o.watched)+len(o.said) != 0 {
		t.Errorf("of a kind that went are left %v and %v", o.watched, o.said)
	}
}

// What a gang's object says of the time comes before the argument.
func TestTimeoutOfAGang(t *testing.T) {
	for said, want := range map[time.Duration]time.Duration{0: time.Minute, 5 * time.Second: 5 * time.Second, time.Hour: 15 * time.Minute} {
		g := &group{told: formats.GangObject{Timeout: said}}
		if got := g.timeout(time.Minute); got != want {
			t.Errorf("the object says %v: %v, want %v", said, got, want)
		}
	}
}

// On a real API server: by each project's object the scheduler knows how many
// pods of a gang go together, and binds none before they are there and have room.
func TestGangObjectsOnAPlane(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a control plane")
	}
	plane := planetest.Start(t, controlplane.Config{})
	planetest.ServeGangs(t, plane)
	all := controlplane.Nodes(4, controlplane.NodeShape{CPU: "1", Memory: "8Gi"})
	if err := plane.AddNodes(t.Context(), all[:2]...); err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, samples: t.TempDir() + "/samples.jsonl"}
	w.writeSamples(planetest.TwoColours)
	w.onPlane(plane, "mode: enforce, slotsPerNode: 2, gangWindow: 0s")
	core, objects := plane.Client().CoreV1(), planetest.Dynamic(t, plane)
	bound := func() (n int) {
		list, err := core.Pods("default").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			if list.Items[i].Spec.NodeName != "" {
				n++
			}
		}
		return n
	}
	until := func(what string, holds func() bool) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: not within 30 s", what)
			}
		}
	}
	none := int64(0)
	now := metav1.DeleteOptions{GracePeriodSeconds: &none}
	for _, c := range []struct {
		name, resource, object string
		member                 func(*v1.Pod)
	}{
		{
			pods.Coscheduling, "podgroups", `{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: g}, spec: {minMember: 4}}`,
			label("scheduling.x-k8s.io/pod-group", "g"),
		},
		{
			pods.Volcano, "podgroups", `{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: g}, spec: {minMember: 4}}`,
			func(p *v1.Pod) { p.Annotations = map[string]string{"scheduling.k8s.io/group-name": "g"} },
		},
		{
			pods.JobSet, "jobsets", `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: g}, spec: {replicatedJobs: [{name: w, replicas: 2, template: {spec: {parallelism: 2}}}]}}`,
			label("jobset.sigs.k8s.io/jobset-name", "g"),
		},
		{
			pods.Kubeflow, "pytorchjobs", `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: g}, spec: {pytorchReplicaSpecs: {Master: {}, Worker: {replicas: 3}}}}`,
			label("training.kubeflow.org/job-name", "g"),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := planetest.Object(t, c.object)
			kind := objects.Resource(o.GroupVersionKind().GroupVersion().WithResource(c.resource)).Namespace("default")
			if _, err := kind.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			p := w.plugin.(*Plugin)
			until("the object is read", func() bool { return p.objects.of("default", &pods.Gang{Convention: c.name, Name: "g"}).Minimum == 4 })
			for _, member := range named("g", 4, c.member) {
				member.UID, member.ResourceVersion, member.OwnerReferences = "", "", nil
				if _, err := core.Pods("default").Create(t.Context(), member, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				for range 8 {
					time.Sleep(50 * time.Millisecond)
					if n := bound(); n > 0 {
						t.Fatalf("%d pods are bound after %s of four came, with room for two", n, member.Name)
					}
				}
			}
			if err := plane.AddNodes(t.Context(), all[2:]...); err != nil {
				t.Fatal(err)
			}
			until("all four are bound", func() bool { return bound() == 4 })
			ctx := context.WithoutCancel(t.Context())
			if err := core.Pods("default").DeleteCollection(ctx, now, metav1.ListOptions{}); err != nil {
				t.Error(err)
			}
			for _, n := range all[2:] {
				if err := core.Nodes().Delete(ctx, n.Name, now); err != nil {
					t.Error(err)
				}
			}
			until("the plugin has seen them go", func() bool {
				p.waiting.mu.Lock()
				defer p.waiting.mu.Unlock()
				return len(p.waiting.groups) == 0
			})
		})
	}
}
