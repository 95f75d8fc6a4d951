package bench

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/kubernetes/controlplane"
	"github.com/cotenant/cotenant/kubernetes/plugin/pods"
	"github.com/cotenant/cotenant/sim"
)

const (
	gpus = "nvidia.com/gpu"
	// jobLabel names the job of a pod.
	jobLabel = "bench.cotenant.dev/job"
)

// nodes are the testbed's servers.
func (t *Testbed) nodes() []*corev1.Node {
	n := t.Nodes[0] // all are alike
	return controlplane.Nodes(len(t.Nodes), controlplane.NodeShape{
		CPU: fmt.Sprintf("%dm", n.Capacity[cluster.CPU]), Memory: fmt.Sprint(n.Capacity[cluster.Memory]),
		Extended: map[string]string{gpus: fmt.Sprint(len(n.Devices))},
	})
}

// taskPod is the name of a task's pod.
func taskPod(id cluster.TaskID) string { return strings.ReplaceAll(string(id), "/", "-") }

// jobPod describes the pod of a task of a job.
func (t *Testbed) jobPod(j *sim.Job, task cluster.Task, scheduler string) *corev1.Pod {
	requests := corev1.ResourceList{}
	for _, w := range t.Declared {
		if w.Name == task.Workload {
			requests[corev1.ResourceCPU] = *resource.NewMilliQuantity(w.Requests[cluster.CPU], resource.DecimalSI)
			requests[corev1.ResourceMemory] = *resource.NewQuantity(w.Requests[cluster.Memory], resource.BinarySI)
		}
	}
	role := "ps"
	if task.Role == cluster.Worker {
		role = "worker"
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: taskPod(task.ID), Namespace: namespace,
			Labels:      map[string]string{jobLabel: j.Name, "training.kubeflow.org/replica-type": role},
			Annotations: map[string]string{pods.WorkloadLabel: task.Workload},
		},
		Spec: corev1.PodSpec{
			SchedulerName: scheduler, SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: &j.Name},
			Containers: []corev1.Container{{Name: "main", Image: "training", Resources: corev1.ResourceRequirements{Requests: requests}}},
		},
	}
	if task.Devices > 0 {
		n := *resource.NewQuantity(int64(task.Devices), resource.DecimalSI)
		requests[gpus] = n
		pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{gpus: n}
	}
	return pod
}

// submitJob creates a job's PodGroup and its pods, in the order of its tasks.
func (t *Testbed) submitJob(ctx context.Context, c kubernetes.Interface, j *sim.Job, scheduler string) error {
	group := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: j.Name, Namespace: namespace},
		Spec: schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
			Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(len(j.Tasks))},
		}},
	}
	if _, err := c.SchedulingV1beta1().PodGroups(namespace).Create(ctx, group, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create PodGroup %s: %w", j.Name, err)
	}
	for _, task := range j.Tasks {
		pod := t.jobPod(j, task, scheduler)
		if _, err := c.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create pod %s: %w", pod.Name, err)
		}
	}
	return nil
}

// patient is how many seconds the pods of a job have to end: a busy machine needs
// some.
const patient = 120

// finishJob has kwok end a job's pods, and deletes them and their group. It is
// said again until they have ended: kwok misses the word where it comes while it
// is about to call a pod running.
func finishJob(ctx context.Context, c kubernetes.Interface, j *sim.Job) error {
	of := metav1.ListOptions{LabelSelector: jobLabel + "=" + j.Name}
	for try := 1; ; try++ {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"cotenant.dev/finished":"%d"}}}`, try)
		for _, task := range j.Tasks {
			if _, err := c.CoreV1().Pods(namespace).Patch(ctx, taskPod(task.ID), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				return fmt.Errorf("finish pod of task %s: %w", task.ID, err)
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
		list, err := c.CoreV1().Pods(namespace).List(ctx, of)
		if err != nil {
			return fmt.Errorf("list the pods of %s: %w", j.Name, err)
		}
		ended := 0
		for i := range list.Items {
			if pods.Ended(&list.Items[i]) {
				ended++
			}
		}
		switch {
		case ended == len(j.Tasks):
			return c.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, of)
		case try == patient:
			return fmt.Errorf("job %s: %d of %d pods have ended %d s after they were told to", j.Name, ended, len(j.Tasks), try)
		}
	}
}
