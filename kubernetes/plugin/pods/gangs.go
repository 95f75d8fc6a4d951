package pods

import (
	"strconv"

	v1 "k8s.io/api/core/v1"
)

// Gang says how many pods of a group go together.
type Gang struct {
	// Convention is whose labels say so.
	Convention string
	// Name of the object that tells more, in the pod's namespace.
	Name string
	// Minimum is how many pods go together; 0 where the pod does not say.
	Minimum int
	// Native gangs are those of the scheduler's own PodGroup API, which holds them
	// together itself.
	Native bool
}

// The conventions, in the order in which they are looked for.
const (
	Native       = "PodGroup"
	Coscheduling = "coscheduling"
	Kueue        = "kueue"
	Kubeflow     = "kubeflow"
	JobSet       = "jobset"
	Volcano      = "volcano"
	Koordinator  = "koordinator"
	Ours         = "cotenant"
)

// convention is where a project names the gang of a pod and its minimum.
type convention struct {
	name        string
	labels      []string // that name the gang
	annotations []string // that name the gang
	minimum     []string // labels or annotations with the number
}

var conventions = []convention{
	{name: Coscheduling, labels: []string{"scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io"}},
	{name: Kueue, labels: []string{"kueue.x-k8s.io/pod-group-name"}, minimum: []string{"kueue.x-k8s.io/pod-group-total-count"}},
	{name: Volcano, annotations: []string{"scheduling.k8s.io/group-name"}, minimum: []string{"scheduling.volcano.sh/group-min-member"}},
	{
		name: Koordinator, annotations: []string{"gang.scheduling.koordinator.sh/name"},
		labels: []string{"pod-group.scheduling.sigs.k8s.io/name"}, minimum: []string{"gang.scheduling.koordinator.sh/min-available"},
	},
	{name: Kubeflow, labels: []string{"training.kubeflow.org/job-name", "job-name"}},
	{name: JobSet, labels: []string{"jobset.sigs.k8s.io/jobset-name"}},
	{name: Ours, labels: []string{"cotenant.dev/gang"}},
}

// group is the group that a pod is placed in, and its gang where it has one.
func group(pod *v1.Pod) (name string, gang *Gang) {
	in := pod.Namespace + "/"
	if g := pod.Spec.SchedulingGroup; g != nil && g.PodGroupName != nil {
		return in + "podgroup/" + *g.PodGroupName, &Gang{Convention: Native, Name: *g.PodGroupName, Native: true}
	}
	for _, c := range conventions {
		if c.name == Kubeflow && !trains(pod) {
			continue // job-name is also what Jobs label, whose pods are no gang
		}
		if n := c.of(pod); n != "" {
			return in + c.name + "/" + n, &Gang{Convention: c.name, Name: n, Minimum: minimum(pod, c.minimum)}
		}
	}
	if o := owner(pod); o != "" {
		return in + o, nil
	}
	return in + "Pod/" + pod.Name, nil
}

func (c convention) of(pod *v1.Pod) string {
	for _, k := range c.labels {
		if n := pod.Labels[k]; n != "" {
			return n
		}
	}
	for _, k := range c.annotations {
		if n := pod.Annotations[k]; n != "" {
			return n
		}
	}
	return ""
}

// trains reports whether Kubeflow's training operators made the pod.
func trains(pod *v1.Pod) bool {
	return pod.Labels["training.kubeflow.org/job-name"] != "" ||
		pod.Labels["job-name"] != "" && pod.Labels["replica-type"] != ""
}

// minimum is the number that the pod names, 0 where it names none or no
// positive one.
func minimum(pod *v1.Pod, keys []string) int {
	for _, k := range append([]string{GangMinimum}, keys...) {
		for _, m := range []map[string]string{pod.Annotations, pod.Labels} {
			if n, err := strconv.Atoi(m[k]); err == nil && n > 0 {
				return n
			}
		}
	}
	return 0
}
