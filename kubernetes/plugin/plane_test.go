package plugin

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	"github.com/cotenant/cotenant/explain"
	"github.com/cotenant/cotenant/kubernetes/controlplane"
	"github.com/cotenant/cotenant/kubernetes/controlplane/planetest"
	"github.com/cotenant/cotenant/kubernetes/plugin/plan"
	"github.com/cotenant/cotenant/place"
)

// On a real API server, too: whatever the files hold and the policy does, pods
// get nodes by the stock scores, and each has one event that says why.
func TestPodsAreScheduledOnAPlane(t *testing.T) {
	plane := planetest.Start(t, controlplane.Config{})
	if err := plane.AddNodes(t.Context(), controlplane.Nodes(4, controlplane.NodeShape{CPU: "2", Memory: "8Gi"})...); err != nil {
		t.Fatal(err)
	}
	// A node on which nothing more fits.
	for i := range 2 {
		filler := pod(fmt.Sprint("filler-", i), "red", func(p *v1.Pod) {
			p.UID, p.ResourceVersion, p.OwnerReferences, p.Labels, p.Spec.NodeName = "", "", nil, nil, "node-0000"
		})
		if _, err := plane.Client().CoreV1().Pods("default").Create(t.Context(), filler, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	free := make(chan bool)
	defer close(free)
	for _, c := range []struct {
		name    string
		samples string
		policy  func(place.Request) (place.Decision, error)
		code    plan.Code
	}{
		{"corrupt", planetest.TwoColours[:40], nil, plan.BadFiles},
		{"absent", "", nil, plan.BadFiles},
		{"panics", planetest.TwoColours, func(place.Request) (place.Decision, error) { panic("oh") }, plan.PolicyPanicked},
		{"full", planetest.TwoColours, func(r place.Request) (place.Decision, error) { return allOn(r, "node-0000"), nil }, plan.BadDecision},
		{"sleeps", planetest.TwoColours, func(place.Request) (place.Decision, error) { <-free; return place.Decision{}, nil }, plan.PolicyLate},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &world{T: t, samples: filepath.Join(t.TempDir(), "samples.jsonl")}
			if c.samples != "" {
				w.writeSamples(c.samples)
			}
			w.onPlane(plane, "mode: enforce, slotsPerNode: 2, timeBudget: 500ms, timePerPod: 0s")
			if c.policy != nil {
				w.policyOf(c.policy)
			}
			core := plane.Client().CoreV1()
			for _, p := range list(4, "red") {
				p.Name, p.UID, p.ResourceVersion, p.OwnerReferences = c.name+"-"+p.Name, "", "", nil
				if _, err := core.Pods("default").Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			var told map[string]int
			for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
				bound := 0
				pods, err := core.Pods("default").List(t.Context(), metav1.ListOptions{})
				if err != nil {
					t.Fatal(err)
				}
				for i := range pods.Items {
					if strings.HasPrefix(pods.Items[i].Name, c.name) && pods.Items[i].Spec.NodeName != "" {
						bound++
					}
				}
				list, err := plane.Client().EventsV1().Events("default").List(t.Context(), metav1.ListOptions{})
				if err != nil {
					t.Fatal(err)
				}
				told = map[string]int{}
				for _, e := range list.Items {
					if e.Reason == "CotenantFallback" && strings.HasPrefix(e.Regarding.Name, c.name) && strings.Contains(e.Note, string(c.code)) {
						told[e.Regarding.Name]++
					}
				}
				if bound == 4 && len(told) == 4 {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("%d of 4 pods are bound; told of %s: %v", bound, c.code, told)
				}
			}
			for name, n := range told {
				if n != 1 {
					t.Errorf("pod %s has %d events that say %s", name, n, c.code)
				}
			}
			none := int64(0)
			if err := core.Pods("default").DeleteCollection(t.Context(), metav1.DeleteOptions{GracePeriodSeconds: &none}, metav1.ListOptions{LabelSelector: "app=red"}); err != nil {
				t.Error(err)
			}
		})
	}
}

// Every pod of a PodGroup with a topology constraint is where the plan has it: the
// scheduler scores the plan's placement and the domain that it is in, which is
// large here and fuller than the plan's nodes.
func TestPlacementsOnAPlane(t *testing.T) {
	gates(t, true)
	plane := planetest.Start(t, controlplane.Config{}.WithGangs())
	all := controlplane.Nodes(12, controlplane.NodeShape{CPU: "8", Memory: "64Gi"})
	for i, n := range all {
		n.Labels[v1.LabelTopologyZone] = fmt.Sprint("z", i%2)
	}
	if err := plane.AddNodes(t.Context(), all...); err != nil {
		t.Fatal(err)
	}
	create := func(p *v1.Pod) {
		t.Helper()
		p.UID, p.ResourceVersion, p.OwnerReferences = "", "", nil
		if _, err := plane.Client().CoreV1().Pods("default").Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 4 {
		create(pod(fmt.Sprint("filler-", i), "green", func(p *v1.Pod) {
			p.Spec.NodeName = all[8+i].Name
			p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse("7")
		}))
	}
	w := &world{T: t, samples: filepath.Join(t.TempDir(), "samples.jsonl")}
	w.writeSamples(planetest.TwoColours)
	w.onPlane(plane, "mode: enforce, slotsPerNode: 2")
	const gangs = 4
	for g := range gangs {
		group := podGroup(fmt.Sprint("g", g), 4, v1.LabelTopologyZone)
		group.UID = ""
		if _, err := plane.Client().SchedulingV1beta1().PodGroups("default").Create(t.Context(), group, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, p := range append(list(2, "red", of(group.Name)), list(2, "blue", of(group.Name))...) {
			p.Name = group.Name + "-" + p.Name
			create(p)
		}
	}
	var wrong []string
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		found, err := plane.Client().CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "app!=green"})
		if err != nil {
			t.Fatal(err)
		}
		bound := 0
		wrong = nil
		for i := range found.Items {
			p := &found.Items[i]
			if p.Spec.NodeName == "" {
				continue
			}
			bound++
			d, err := explain.ParseDecision(p.Annotations[explain.DecisionAnnotation])
			if err != nil || d.Planned != p.Spec.NodeName {
				wrong = append(wrong, fmt.Sprintf("%s is on %s: %s (%v)", p.Name, p.Spec.NodeName, p.Annotations[explain.DecisionAnnotation], err))
			}
		}
		if bound == 4*gangs {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d pods are bound", bound, 4*gangs)
		}
	}
	if wrong != nil {
		t.Errorf("not where the plan has them:\n%s", strings.Join(wrong, "\n"))
	}
}

// onPlane runs a scheduler of a real control plane in this process, so that a
// test can put policies into it.
func (w *world) onPlane(plane *controlplane.Plane, args string) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	client := plane.Client()
	cfg := configuration(w.T, fmt.Sprintf("{%s, policy: {name: greedy}, samples: {path: %q}}", args, w.samples))
	rest, err := clientcmd.BuildConfigFromFlags("", plane.Kubeconfig())
	if err != nil {
		w.Fatal(err)
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		w.Fatal(err)
	}
	factory := scheduler.NewInformerFactory(client, 0, nil)
	registry := frameworkruntime.Registry{Name: func(ctx context.Context, obj runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
		p, err := New(ctx, obj, h)
		w.plugin = p
		return p, err
	}}
	sched, err := scheduler.New(ctx, client, factory, nil, profile.NewRecorderFactory(broadcaster), scheduler.WithKubeConfig(rest),
		scheduler.WithProfiles(cfg.Profiles...), scheduler.WithFrameworkOutOfTreeRegistry(registry))
	if err != nil {
		w.Fatal(err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	if err := sched.WaitForHandlersSync(ctx); err != nil {
		w.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); sched.Run(ctx) }()
	w.Cleanup(func() { cancel(); <-done; factory.Shutdown(); broadcaster.Shutdown() })
}
