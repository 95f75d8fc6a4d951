package pods

import (
	v1 "k8s.io/api/core/v1"

	"github.com/cotenant/cotenant/history/formats"
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

// The conventions. formats.PodGang knows their labels and annotations.
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

// group is the group that a pod is placed in, and its gang where it has one.
func group(pod *v1.Pod) (name string, gang *Gang) {
	in := pod.Namespace + "/"
	if g := pod.Spec.SchedulingGroup; g != nil && g.PodGroupName != nil {
		return in + "podgroup/" + *g.PodGroupName, &Gang{Convention: Native, Name: *g.PodGroupName, Native: true}
	}
	if g, ok := formats.PodGang(pod.Labels, pod.Annotations, ""); ok {
		return in + g.Convention + "/" + g.Name, &Gang{Convention: g.Convention, Name: g.Name, Minimum: g.Minimum}
	}
	if o := owner(pod); o != "" {
		return in + o, nil
	}
	return in + "Pod/" + pod.Name, nil
}
