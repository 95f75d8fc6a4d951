package plugin

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	appslisters "k8s.io/client-go/listers/apps/v1"
)

// owners tells how many pods a controller wants, from the caches that the
// scheduler keeps anyway: a group whose pods are all there need not be waited
// for.
type owners struct {
	replicaSets  appslisters.ReplicaSetLister
	statefulSets appslisters.StatefulSetLister
}

func newOwners(f informers.SharedInformerFactory) *owners {
	return &owners{f.Apps().V1().ReplicaSets().Lister(), f.Apps().V1().StatefulSets().Lister()}
}

// want is how many pods the pod's controller wants in all; ok is false where
// that is not known.
func (o *owners) want(pod *v1.Pod) (n int, ok bool) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return 1, true
	}
	var replicas *int32
	switch owner.Kind {
	case "ReplicaSet":
		set, err := o.replicaSets.ReplicaSets(pod.Namespace).Get(owner.Name)
		if err != nil || set.UID != owner.UID {
			return 0, false
		}
		replicas = set.Spec.Replicas
	case "StatefulSet":
		set, err := o.statefulSets.StatefulSets(pod.Namespace).Get(owner.Name)
		if err != nil || set.UID != owner.UID {
			return 0, false
		}
		replicas = set.Spec.Replicas
	default:
		return 0, false
	}
	if replicas == nil {
		return 1, true
	}
	return int(*replicas), true
}
