package controlplane_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cotenant/cotenant/kubernetes/controlplane"
)

// started gives a test a plane, or skips where the programs are not built.
func started(t *testing.T, c controlplane.Config) *controlplane.Plane {
	t.Helper()
	if _, err := controlplane.Binaries(); err != nil {
		t.Skip(err)
	}
	c.Log = t.Output()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	p, err := controlplane.Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "redis"}}},
	}
}

// eventually waits for up to a minute of the cluster's own time.
func eventually(t *testing.T, what string, holds func() (bool, error)) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		ok, err := holds()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within a minute (%v)", what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func TestStockSchedulerBindsPods(t *testing.T) {
	p := started(t, controlplane.Config{})
	ctx := t.Context()
	if err := p.AddNodes(ctx, controlplane.Nodes(10, controlplane.NodeShape{})...); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if _, err := p.Client().CoreV1().Pods("default").Create(ctx, pod(fmt.Sprintf("pod-%d", i)), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	s, err := p.StartScheduler(ctx, controlplane.Scheduler{Program: "kube-scheduler"})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "all 20 pods run", func() (bool, error) {
		pods, err := p.Client().CoreV1().Pods("default").List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Running"})
		return err == nil && len(pods.Items) == 20, err
	})
	m, err := s.Metrics(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if n := m["scheduler_pod_scheduling_sli_duration_seconds"].GetMetric()[0].GetHistogram().GetSampleCount(); n != 20 {
		t.Errorf("the scheduler's own metrics count %d pods, want 20", n)
	}
}
