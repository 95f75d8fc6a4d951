package conformance

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/cotenant/cotenant/kubernetes/controlplane"
)

const namespace = "default"

// patience is how long an outcome may take; a pod that must stay pending is
// watched for still after the scheduler has said so.
const (
	patience = 30 * time.Second
	still    = 300 * time.Millisecond
)

// world is what a case acts on: a cluster with one scheduler in charge of it.
type world struct {
	*testing.T
	ctx   context.Context
	plane *controlplane.Plane
	kube  kubernetes.Interface
}

// nodes are those of a case, node-0000 and so on; change edits the i-th.
func (w *world) nodes(n int, s controlplane.NodeShape, change func(i int, node *corev1.Node)) {
	w.Helper()
	all := controlplane.Nodes(n, s)
	for i, node := range all {
		if change != nil {
			change(i, node)
		}
	}
	if err := w.plane.AddNodes(w.ctx, all...); err != nil {
		w.Fatal(err)
	}
}

func (w *world) create(pods ...*corev1.Pod) {
	w.Helper()
	for _, p := range pods {
		if _, err := w.kube.CoreV1().Pods(namespace).Create(w.ctx, p, metav1.CreateOptions{}); err != nil {
			w.Fatalf("create pod %s: %v", p.Name, err)
		}
	}
}

// until waits for something to hold.
func (w *world) until(what string, holds func() (bool, error)) {
	w.Helper()
	deadline := time.Now().Add(patience)
	for {
		ok, err := holds()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("%s: not within %v (%v); pods: %s", what, patience, err, w.describe())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (w *world) pod(name string) (*corev1.Pod, error) {
	return w.kube.CoreV1().Pods(namespace).Get(w.ctx, name, metav1.GetOptions{})
}

// on waits until a pod is bound, and says where.
func (w *world) on(name string) (node string) {
	w.Helper()
	w.until("pod "+name+" is bound", func() (bool, error) {
		p, err := w.pod(name)
		if err == nil {
			node = p.Spec.NodeName
		}
		return node != "", err
	})
	return node
}

// bound asks that a pod be bound to one of the nodes.
func (w *world) bound(name string, nodes ...string) {
	w.Helper()
	if at := w.on(name); !slices.Contains(nodes, at) {
		w.Errorf("pod %s is on %s, want one of %q", name, at, nodes)
	}
}

// pending asks that the scheduler look at a pod, refuse it for that reason, and
// leave it pending.
func (w *world) pending(name, reason string) {
	w.Helper()
	w.until("pod "+name+" is refused as "+reason, func() (bool, error) {
		p, err := w.pod(name)
		if err != nil {
			return false, err
		}
		return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == reason
		}), nil
	})
	w.unbound(name)
}

// unbound asks that a pod stay pending.
func (w *world) unbound(name string) {
	w.Helper()
	time.Sleep(still)
	if p, err := w.pod(name); err != nil || p.Spec.NodeName != "" {
		w.Errorf("pod %s is bound to %q (%v), want it pending", name, p.Spec.NodeName, err)
	}
}

// gone asks that a pod be deleted.
func (w *world) gone(name string) {
	w.Helper()
	w.until("pod "+name+" is gone", func() (bool, error) {
		_, err := w.pod(name)
		return apierrors.IsNotFound(err), nil
	})
}

func (w *world) describe() string {
	pods, err := w.kube.CoreV1().Pods(namespace).List(w.ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	text := ""
	for _, p := range pods.Items {
		text += fmt.Sprintf("\n  %s on %q", p.Name, p.Spec.NodeName)
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled {
				text += ": " + c.Reason + " " + c.Message
			}
		}
	}
	return text
}

// clean removes what a case made.
func (w *world) clean() {
	none := int64(0)
	now := metav1.DeleteOptions{GracePeriodSeconds: &none}
	all := metav1.ListOptions{}
	core, resources := w.kube.CoreV1(), w.kube.ResourceV1()
	for what, err := range map[string]error{
		"pods":           core.Pods(namespace).DeleteCollection(w.ctx, now, all),
		"claims":         core.PersistentVolumeClaims(namespace).DeleteCollection(w.ctx, now, all),
		"volumes":        core.PersistentVolumes().DeleteCollection(w.ctx, now, all),
		"classes":        w.kube.StorageV1().StorageClasses().DeleteCollection(w.ctx, now, all),
		"budgets":        w.kube.PolicyV1().PodDisruptionBudgets(namespace).DeleteCollection(w.ctx, now, all),
		"devices":        resources.ResourceClaims(namespace).DeleteCollection(w.ctx, now, all),
		"device classes": resources.DeviceClasses().DeleteCollection(w.ctx, now, all),
		"slices":         resources.ResourceSlices().DeleteCollection(w.ctx, now, all),
	} {
		if err != nil {
			w.Errorf("remove %s: %v", what, err)
		}
	}
	// What protects volumes in use lets go of them a little later.
	w.until("no pod and no volume is left", func() (bool, error) {
		pods, err := core.Pods(namespace).List(w.ctx, all)
		if err != nil {
			return false, err
		}
		claims, err := core.PersistentVolumeClaims(namespace).List(w.ctx, all)
		if err != nil {
			return false, err
		}
		volumes, err := core.PersistentVolumes().List(w.ctx, all)
		return err == nil && len(pods.Items)+len(claims.Items)+len(volumes.Items) == 0, err
	})
	if err := core.Nodes().DeleteCollection(w.ctx, now, all); err != nil {
		w.Errorf("remove nodes: %v", err)
	}
}
