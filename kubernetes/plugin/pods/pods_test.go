package pods_test

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/kubernetes/plugin/pods"
)

func pod(image string, labels, annotations map[string]string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "p", Namespace: "ns", UID: "u", Labels: labels, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-1", Controller: new(true)}},
		},
		Spec: v1.PodSpec{Containers: []v1.Container{{Image: image}}},
	}
}

func TestWorkload(t *testing.T) {
	for image, want := range map[string]string{
		"redis": "redis", "docker.io/library/redis:7": "redis", "host:5000/a/b/redis@sha256:12": "redis",
		"redis:7@sha256:12": "redis", "": "", ":7": "",
	} {
		if got := pods.Workload(pod(image, nil, nil)); got != want {
			t.Errorf("image %q: workload %q, want %q", image, got, want)
		}
	}
	if got := pods.Workload(pod("redis:7", map[string]string{pods.WorkloadLabel: "cache"}, nil)); got != "cache" {
		t.Errorf("the label comes first: %q", got)
	}
	if got := pods.Workload(pod("redis:7", nil, map[string]string{pods.WorkloadLabel: "vgg/ps"})); got != "vgg/ps" {
		t.Errorf("an annotation takes any name: %q", got)
	}
}

func TestGangs(t *testing.T) {
	type m = map[string]string
	for _, c := range []struct {
		labels, annotations m
		group, convention   string
		minimum             int
	}{
		{m{"scheduling.x-k8s.io/pod-group": "g"}, nil, "ns/coscheduling/g", pods.Coscheduling, 0},
		{m{"scheduling.x-k8s.io/pod-group": "g"}, m{pods.GangMinimum: "4"}, "ns/coscheduling/g", pods.Coscheduling, 4},
		{nil, m{"scheduling.k8s.io/group-name": "g", "scheduling.volcano.sh/group-min-member": "3"}, "ns/volcano/g", pods.Volcano, 3},
		{nil, m{"gang.scheduling.koordinator.sh/name": "g", "gang.scheduling.koordinator.sh/min-available": "2"}, "ns/koordinator/g", pods.Koordinator, 2},
		{m{"kueue.x-k8s.io/pod-group-name": "g"}, m{"kueue.x-k8s.io/pod-group-total-count": "5"}, "ns/kueue/g", pods.Kueue, 5},
		{m{"jobset.sigs.k8s.io/jobset-name": "g"}, nil, "ns/jobset/g", pods.JobSet, 0},
		{m{"training.kubeflow.org/job-name": "g", "training.kubeflow.org/replica-type": "ps"}, nil, "ns/kubeflow/g", pods.Kubeflow, 0},
		{m{"job-name": "g", "replica-type": "worker"}, nil, "ns/kubeflow/g", pods.Kubeflow, 0},
		{m{"job-name": "g"}, nil, "ns/ReplicaSet/web-1", "", 0}, // a Job's pods are no gang
		{m{"kueue.x-k8s.io/pod-group-name": "g"}, m{"kueue.x-k8s.io/pod-group-total-count": "-5"}, "ns/kueue/g", pods.Kueue, 0},
		{nil, nil, "ns/ReplicaSet/web-1", "", 0},
	} {
		got := pods.Read(pod("redis", c.labels, c.annotations))
		convention, minimum := "", 0
		if got.Gang != nil {
			convention, minimum = got.Gang.Convention, got.Gang.Minimum
		}
		if got.Group != c.group || convention != c.convention || minimum != c.minimum {
			t.Errorf("labels %v, annotations %v: group %q, gang %q of %d; want %q, %q of %d", c.labels, c.annotations, got.Group, convention, minimum, c.group, c.convention, c.minimum)
		}
	}
	native := pod("redis", m{"scheduling.x-k8s.io/pod-group": "g"}, nil)
	native.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: new("pg")}
	if got := pods.Read(native); got.Gang == nil || !got.Gang.Native || got.Group != "ns/podgroup/pg" {
		t.Errorf("the scheduler's own PodGroup comes first: %+v", got)
	}
}

func TestRoles(t *testing.T) {
	for text, want := range map[string]cluster.Role{"Worker": cluster.Worker, "ps": cluster.ParameterServer, "Chief": cluster.Worker, "evaluator": cluster.Replica} {
		if got := pods.Read(pod("a", map[string]string{"training.kubeflow.org/replica-type": text}, nil)).Task.Role; got != want {
			t.Errorf("replica-type %s: %s, want %s", text, got, want)
		}
	}
}

// A request of "0" of a resource that no node has asks for nothing.
func TestZeroRequests(t *testing.T) {
	p := pod("redis", nil, nil)
	p.Spec.Containers[0].Resources.Requests = v1.ResourceList{
		"example.org/unicorn": resource.MustParse("0"), v1.ResourceCPU: resource.MustParse("1500m"),
	}
	if got := pods.Requests(p); len(got) != 1 || got[cluster.CPU] != 1500 {
		t.Errorf("requests %v, want 1500 of cpu alone", got)
	}
	if got := pods.Requests(pod("redis", nil, nil)); len(got) != 0 {
		t.Errorf("a container without requests asks for %v", got)
	}
}

func TestKind(t *testing.T) {
	a, b := pod("redis", nil, nil), pod("redis", nil, nil)
	b.Name, b.UID = "q", "v"
	b.Spec.Volumes = []v1.Volume{{Name: "kube-api-access-x7k2p", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{}}}}
	if pods.Kind(a, true) != pods.Kind(b, true) {
		t.Error("pods that differ in name and in their token's volume are of different kinds")
	}
	for name, change := range map[string]func(*v1.Pod){
		"selector":   func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"a": "b"} },
		"toleration": func(p *v1.Pod) { p.Spec.Tolerations = []v1.Toleration{{Key: "a"}} },
		"labels":     func(p *v1.Pod) { p.Labels = map[string]string{"a": "b"} },
		"claim": func(p *v1.Pod) {
			p.Spec.Volumes = []v1.Volume{{VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}}}
		},
		"requests": func(p *v1.Pod) {
			p.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}
		},
	} {
		c := pod("redis", nil, nil)
		change(c)
		if pods.Kind(a, true) == pods.Kind(c, true) {
			t.Errorf("another %s, the same kind", name)
		}
	}
}

func TestSpec(t *testing.T) {
	known := func(w string) bool { return w == "redis" }
	on := func(image, cpu string) *v1.Pod {
		p := pod(image, nil, nil)
		p.UID, p.Spec.NodeName = "uid-"+"x", "n"
		p.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)}
		return p
	}
	ended := on("redis", "1")
	ended.Status.Phase = v1.PodSucceeded
	info := framework.NewNodeInfo(on("redis", "1"), on("agent", "500m"), ended)
	info.SetNode(&v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{v1.LabelInstanceTypeStable: "m5"}},
		Status:     v1.NodeStatus{Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse("4"), v1.ResourcePods: resource.MustParse("10")}},
	})
	spec := pods.View{Known: known, Class: func(c string) string { return c }}.Spec([]fwk.NodeInfo{info})
	n := spec.Nodes[0]
	if n.Class != "m5" || n.Capacity[cluster.CPU] != 3500 || n.Slots != 9 || len(spec.Running) != 1 || spec.Running[0].Workload != "redis" {
		t.Errorf("node %+v, running %+v; want m5, 3500m and 9 slots beside the agent, one redis", n, spec.Running)
	}
	spec = pods.View{Known: known, Class: func(c string) string { return c }, Slots: func(string) int { return 1 }}.Spec([]fwk.NodeInfo{info})
	if n := spec.Nodes[0]; n.Slots != 1 {
		t.Errorf("slots %d, want 1", n.Slots)
	}
}

func Example() {
	p := pods.Read(pod("example.org/redis:7", map[string]string{"scheduling.x-k8s.io/pod-group": "train"}, nil))
	fmt.Println(p.Task.Workload, p.Group, p.Gang.Convention)
	// Output: redis ns/coscheduling/train coscheduling
}

// Which device a pod has is the node's to say; how many are taken is not.
func TestDevices(t *testing.T) {
	n := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n"},
		Status:     v1.NodeStatus{Allocatable: v1.ResourceList{"nvidia.com/gpu": resource.MustParse("4"), v1.ResourcePods: resource.MustParse("10")}},
	}
	info := framework.NewNodeInfo()
	for i := range 2 {
		p := pod("red", nil, nil)
		p.Name, p.UID = fmt.Sprint("p", i), types.UID(fmt.Sprint("u", i))
		p.Spec.Containers[0].Resources.Requests = v1.ResourceList{"nvidia.com/gpu": resource.MustParse(fmt.Sprint(1 + i))}
		info.AddPod(p)
	}
	info.SetNode(n)
	spec := pods.View{Known: func(string) bool { return true }, Class: func(c string) string { return c }}.Spec([]fwk.NodeInfo{info})
	if len(spec.Nodes[0].Devices) != 4 || !slices.Equal(spec.Running[0].On, []int{0}) || !slices.Equal(spec.Running[1].On, []int{1, 2}) || spec.Running[1].Devices != 2 {
		t.Errorf("the cluster is %+v", spec)
	}
}
