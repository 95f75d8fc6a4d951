package bench

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/cotenant/cotenant/kubernetes/controlplane"
	"github.com/cotenant/cotenant/kubernetes/plugin/pods"
)

const (
	namespace = "default"
	// creators is how many requests to create pods are under way at a time.
	creators = 16
)

// shape is what the batch's nodes offer: room for exactly Slots pods.
func (b Batch) shape() controlplane.NodeShape {
	return controlplane.NodeShape{CPU: fmt.Sprint(b.Slots), Memory: fmt.Sprintf("%dGi", 4*b.Slots)}
}

// pods describes a service's replicas, owned by a ReplicaSet as a Deployment's
// would be. No controller runs that would make them by itself.
func (s Service) pods(owner *appsv1.ReplicaSet, scheduler string) []*corev1.Pod {
	yes := true
	out := make([]*corev1.Pod, s.Replicas)
	for i := range out {
		out[i] = &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: podName(s, i), Namespace: namespace,
				Labels: map[string]string{"app": s.Name, pods.WorkloadLabel: s.Workload},
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: "apps/v1", Kind: "ReplicaSet", Name: owner.Name, UID: owner.UID, Controller: &yes,
				}},
			},
			Spec: corev1.PodSpec{
				SchedulerName: scheduler,
				Containers: []corev1.Container{{
					Name: "main", Image: s.Workload,
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
						corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("4Gi"),
					}},
				}},
			},
		}
	}
	return out
}

// submit creates a service's ReplicaSet and pods.
func (s Service) submit(ctx context.Context, c kubernetes.Interface, scheduler string) error {
	replicas := int32(s.Replicas)
	labels := map[string]string{"app": s.Name}
	owner, err := c.AppsV1().ReplicaSets(namespace).Create(ctx, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: s.Name, Namespace: namespace},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: s.Workload}}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create the ReplicaSet of service %s: %w", s.Name, err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	for _, pod := range s.pods(owner, scheduler) {
		group.Go(func() error {
			if _, err := c.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("create pod %s: %w", pod.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}
