package formats

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/cotenant/cotenant/internal/misfit"
)

// GangResource is where an API server has objects that say how many pods of a
// convention's gangs go together. They have the names of their gangs.
type GangResource struct {
	// Convention is that of Gang.
	Convention                     string
	Group, Version, Resource, Kind string
}

// GangResources are the objects of others; the scheduler's own PodGroups are not
// among them.
var GangResources = []GangResource{
	{"coscheduling", "scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup"},
	{"koordinator", "scheduling.sigs.k8s.io", "v1alpha1", "podgroups", "PodGroup"},
	{"volcano", "scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup"},
	{"jobset", "jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet"},
	{"kubeflow", "kubeflow.org", "v1", "jaxjobs", "JAXJob"},
	{"kubeflow", "kubeflow.org", "v1", "mpijobs", "MPIJob"},
	{"kubeflow", "kubeflow.org", "v1", "paddlejobs", "PaddleJob"},
	{"kubeflow", "kubeflow.org", "v1", "pytorchjobs", "PyTorchJob"},
	{"kubeflow", "kubeflow.org", "v1", "tfjobs", "TFJob"},
	{"kubeflow", "kubeflow.org", "v1", "xgboostjobs", "XGBoostJob"},
}

// GangObject is what an object says of its gang.
type GangObject struct {
	Namespace, Name string
	// Minimum is how many pods go together; 0 where it does not say.
	Minimum int
	// Timeout is how long the first wait for the last; 0 where it does not say.
	Timeout time.Duration
}

// replicatedJob is one of a JobSet's.
type replicatedJob struct {
	Replicas  *int              `json:"replicas"`
	DependsOn []json.RawMessage `json:"dependsOn"`
	Template  struct {
		Spec struct {
			Parallelism *int `json:"parallelism"`
			Completions *int `json:"completions"`
		} `json:"spec"`
	} `json:"template"`
}

// ReadGangObject reads an object of GangResources, or a PodGroup of the
// scheduler's own, as JSON.
func ReadGangObject(object []byte) (GangObject, error) {
	type policy struct {
		MinAvailable           int   `json:"minAvailable"`
		ScheduleTimeoutSeconds int64 `json:"scheduleTimeoutSeconds"`
	}
	var spec struct {
		MinMember              int   `json:"minMember"`
		ScheduleTimeoutSeconds int64 `json:"scheduleTimeoutSeconds"`
		SchedulingPolicy       struct {
			Gang struct {
				MinCount int `json:"minCount"`
			} `json:"gang"`
		} `json:"schedulingPolicy"`
		ReplicatedJobs []replicatedJob `json:"replicatedJobs"`
		StartupPolicy  struct {
			Order string `json:"startupPolicyOrder"`
		} `json:"startupPolicy"`
		RunPolicy struct {
			SchedulingPolicy policy `json:"schedulingPolicy"`
		} `json:"runPolicy"`
	}
	var o struct {
		Metadata struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"metadata"`
		Spec map[string]json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(object, &o); err != nil {
		return GangObject{}, misfit.JSON(err)
	}
	g := GangObject{Namespace: o.Metadata.Namespace, Name: o.Metadata.Name}
	text, _ := json.Marshal(o.Spec) // it was JSON a moment ago
	if err := json.Unmarshal(text, &spec); err != nil {
		return GangObject{}, misfit.JSON(err)
	}
	g.Minimum = max(spec.MinMember, spec.SchedulingPolicy.Gang.MinCount, spec.RunPolicy.SchedulingPolicy.MinAvailable, 0)
	seconds := max(spec.ScheduleTimeoutSeconds, spec.RunPolicy.SchedulingPolicy.ScheduleTimeoutSeconds, 0)
	g.Timeout = time.Duration(min(seconds, mostSeconds)) * time.Second
	if g.Minimum == 0 {
		g.Minimum = podsOf(spec.ReplicatedJobs, spec.StartupPolicy.Order == "InOrder")
	}
	if g.Minimum > 0 {
		return g, nil
	}
	for field, text := range o.Spec {
		if !strings.HasSuffix(field, "ReplicaSpecs") {
			continue
		}
		var roles map[string]struct {
			Replicas *int `json:"replicas"`
		}
		if err := json.Unmarshal(text, &roles); err != nil {
			return GangObject{}, misfit.JSON(err)
		}
		for _, r := range roles {
			g.Minimum += orOne(r.Replicas)
		}
	}
	return g, nil
}

// mostSeconds keeps a Duration from overflowing.
const mostSeconds = 1 << 32

// podsOf is how many pods of a JobSet begin together. Those of jobs that begin
// once others are ready cannot be waited for.
func podsOf(jobs []replicatedJob, inOrder bool) (n int) {
	for i, j := range jobs {
		if inOrder && i > 0 || len(j.DependsOn) > 0 {
			continue
		}
		each := orOne(j.Template.Spec.Parallelism)
		if c := j.Template.Spec.Completions; c != nil {
			each = min(each, max(*c, 0))
		}
		n += orOne(j.Replicas) * each
	}
	return n
}

// orOne is a number of replicas, which is 1 where it is not given.
func orOne(n *int) int {
	if n == nil {
		return 1
	}
	return min(max(*n, 0), mostReplicas)
}

// mostReplicas keeps what is summed up from overflowing.
const mostReplicas = 1 << 20
