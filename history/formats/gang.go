package formats

import (
	"strconv"
	"strings"
)

// Gang is the gang of a pod: the pods that go together or not at all.
type Gang struct {
	// Convention is whose labels name it.
	Convention string
	// Name is that of the gang, in the pod's namespace.
	Name string
	// Minimum is how many pods go together; 0 where the pod does not say.
	Minimum int
}

// GangMinimum is an annotation: how many pods of the gang go together.
const GangMinimum = "cotenant.dev/gang-minimum"

// gangConvention is where a project names the gang of a pod and its minimum.
type gangConvention struct {
	name        string
	labels      []string // that name the gang
	annotations []string // that name the gang
	minimum     []string // labels or annotations with the number
}

// In the order in which they are looked for.
var gangConventions = []gangConvention{
	{name: "coscheduling", labels: []string{"scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io"}},
	{name: "kueue", labels: []string{"kueue.x-k8s.io/pod-group-name"}, minimum: []string{"kueue.x-k8s.io/pod-group-total-count"}},
	{name: "volcano", annotations: []string{"scheduling.k8s.io/group-name"}, minimum: []string{"scheduling.volcano.sh/group-min-member"}},
	{
		name: "koordinator", annotations: []string{"gang.scheduling.koordinator.sh/name"},
		labels: []string{"pod-group.scheduling.sigs.k8s.io/name"}, minimum: []string{"gang.scheduling.koordinator.sh/min-available"},
	},
	{name: "kubeflow", labels: []string{"training.kubeflow.org/job-name", "job-name"}},
	{name: "jobset", labels: []string{"jobset.sigs.k8s.io/jobset-name"}},
	{name: "cotenant", labels: []string{"cotenant.dev/gang"}},
}

// PodGang is the gang that a pod's labels and annotations name, or its
// spec.schedulingGroup.podGroupName; ok is false where it has none.
func PodGang(labels, annotations map[string]string, podGroup string) (g Gang, ok bool) {
	if podGroup != "" {
		return Gang{Convention: "PodGroup", Name: podGroup}, true
	}
	for _, c := range gangConventions {
		if c.name == "kubeflow" && labels["training.kubeflow.org/job-name"] == "" && labels["replica-type"] == "" {
			continue // job-name is also what Jobs label, whose pods are no gang
		}
		name := firstLabel(labels, c.labels)
		if name == "" {
			name = firstLabel(annotations, c.annotations)
		}
		if name == "" {
			continue
		}
		g = Gang{Convention: c.name, Name: name}
		for _, k := range append([]string{GangMinimum}, c.minimum...) {
			for _, m := range []map[string]string{annotations, labels} {
				if n, err := strconv.Atoi(m[k]); err == nil && n > 0 && g.Minimum == 0 {
					g.Minimum = n
				}
			}
		}
		return g, true
	}
	return Gang{}, false
}

// PodWorkload is the workload that a pod's label names, else its annotation of
// the same key, which can hold any name, else the name of its first image without
// registry, tag and digest; "" where it has none.
func PodWorkload(labels, annotations map[string]string, images []string) string {
	for _, named := range []map[string]string{labels, annotations} {
		if w := named[WorkloadLabel]; w != "" {
			return w
		}
	}
	for _, image := range images {
		name, _, _ := strings.Cut(image, "@")
		name = name[strings.LastIndexByte(name, '/')+1:]
		if name, _, _ = strings.Cut(name, ":"); name != "" {
			return name
		}
	}
	return ""
}
