package pods

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/resource"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history/formats"
)

// Labels and annotations of this project.
const (
	WorkloadLabel = formats.WorkloadLabel
	// GangMinimum is an annotation: how many pods of the gang go together.
	GangMinimum = formats.GangMinimum
)

// Pod is what a plan needs to know of a pod.
type Pod struct {
	Namespace, Name string
	// Task has the pod's UID as its ID.
	Task cluster.Task
	// Group names the pods that are placed in one decision.
	Group string
	// Gang is nil where the group may be placed in part.
	Gang     *Gang
	Priority int32
	// Node is where the pod is bound; "" while it waits.
	Node string
}

// Read reads a pod.
func Read(pod *v1.Pod) Pod {
	p := Pod{
		Namespace: pod.Namespace, Name: pod.Name, Node: pod.Spec.NodeName,
		Task: cluster.Task{
			ID: cluster.TaskID(pod.UID), Workload: Workload(pod), Role: role(pod),
			Requests: Requests(pod),
		},
	}
	p.Task.Devices = devices(p.Task.Requests)
	if pod.Spec.Priority != nil {
		p.Priority = *pod.Spec.Priority
	}
	p.Group, p.Gang = group(pod)
	return p
}

// Workload is the pod's workload, as all readers of pods make it out.
func Workload(pod *v1.Pod) string {
	images := make([]string, len(pod.Spec.Containers))
	for i := range pod.Spec.Containers {
		images[i] = pod.Spec.Containers[i].Image
	}
	return formats.PodWorkload(pod.Labels, pod.Annotations, images)
}

// Requests is what the scheduler counts for the pod. Requests of 0 are left
// out: they ask for nothing, even of a resource that no node has.
func Requests(pod *v1.Pod) cluster.Resources {
	out := cluster.Resources{}
	for name, q := range resource.PodRequests(pod, resource.PodResourcesOptions{}) {
		n := q.Value()
		if name == v1.ResourceCPU {
			n = q.MilliValue()
		}
		if n > 0 {
			out[string(name)] = n
		}
	}
	return out
}

// gpu ends the names of the resources whose units are devices: nvidia.com/gpu,
// amd.com/gpu.
const gpu = "/gpu"

// devices is how many devices of a node are among the resources.
func devices(r cluster.Resources) int {
	n := int64(0)
	for name, amount := range r {
		if strings.HasSuffix(name, gpu) {
			n += amount
		}
	}
	return int(min(n, mostDevices))
}

// mostDevices bounds those of a node.
const mostDevices = 64

// Ended reports whether the pod has run to its end: it uses nothing.
func Ended(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
}

// Roles of the operators that label them; older ones leave the prefix out.
var roleLabels = []string{"training.kubeflow.org/replica-type", "replica-type", "jobset.sigs.k8s.io/replicatedjob-name"}

func role(pod *v1.Pod) cluster.Role {
	for _, text := range append(values(pod.Labels, roleLabels), pod.Annotations["volcano.sh/task-spec"]) {
		switch strings.ToLower(text) {
		case "worker", "workers", "master", "chief":
			return cluster.Worker
		case "ps", "parameter-server":
			return cluster.ParameterServer
		}
	}
	return cluster.Replica
}

func values(m map[string]string, keys []string) []string {
	out := make([]string, 0, len(keys)+1)
	for _, k := range keys {
		out = append(out, m[k])
	}
	return out
}

// owner is the controller of the pod, "" where it has none. The ReplicaSets of
// a Deployment count apart: pods of different templates are no group.
func owner(pod *v1.Pod) string {
	if o := metav1.GetControllerOfNoCopy(pod); o != nil {
		return o.Kind + "/" + o.Name
	}
	return ""
}
