package controlplane

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeShape is what a node offers, as quantities; an empty one is 32 cores,
// 256 GiB and 110 pods.
type NodeShape struct {
	CPU, Memory, Pods string
	// Labels beside the name of the node, and Extended resources such as
	// "nvidia.com/gpu": "4".
	Labels, Extended map[string]string
}

// Nodes describes n alike nodes, node-0000 and so on. Panics on a quantity
// that is none.
func Nodes(n int, s NodeShape) []*corev1.Node {
	resources := corev1.ResourceList{}
	for name, given := range map[corev1.ResourceName][2]string{
		corev1.ResourceCPU:    {s.CPU, "32"},
		corev1.ResourceMemory: {s.Memory, "256Gi"},
		corev1.ResourcePods:   {s.Pods, "110"},
	} {
		quantity := given[0]
		if quantity == "" {
			quantity = given[1]
		}
		resources[name] = resource.MustParse(quantity)
	}
	for name, quantity := range s.Extended {
		resources[corev1.ResourceName(name)] = resource.MustParse(quantity)
	}
	nodes := make([]*corev1.Node, n)
	for i := range nodes {
		name := fmt.Sprintf("node-%04d", i)
		labels := map[string]string{corev1.LabelHostname: name, corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux"}
		for k, v := range s.Labels {
			labels[k] = v
		}
		nodes[i] = &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
			Status:     corev1.NodeStatus{Capacity: resources.DeepCopy(), Allocatable: resources.DeepCopy()},
		}
	}
	return nodes
}

// AddNodes creates nodes and waits until kwok has made them ready and, where
// a controller taints nodes that are not, until it has taken the taint away.
func (p *Plane) AddNodes(ctx context.Context, nodes ...*corev1.Node) error {
	wanted := map[string]bool{}
	for _, n := range nodes {
		if _, err := p.client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create node %s: %w", n.Name, err)
		}
		wanted[n.Name] = true
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		all, err := p.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return fmt.Errorf("list nodes: %w", err)
		}
		ready := 0
		for _, n := range all.Items {
			if wanted[n.Name] && usable(&n) {
				ready++
			}
		}
		if ready == len(wanted) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d nodes are ready: %w", ready, len(wanted), ctx.Err())
		case <-tick.C:
		}
	}
}

func usable(n *corev1.Node) bool {
	for _, t := range n.Spec.Taints {
		if t.Key == corev1.TaintNodeNotReady {
			return false
		}
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
