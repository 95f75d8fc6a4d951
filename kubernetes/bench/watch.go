package bench

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// bindings watches pods being bound.
type bindings struct {
	mu          sync.Mutex
	at          map[string]string // pod name to node name
	first, last time.Time         // when we saw the first and the last
	moved       string            // a pod that was bound twice, which must not be
	since       time.Time         // when those that are waited for were submitted
	waits       []float64         // seconds from then until each was seen bound
	changed     chan struct{}     // has room for one; filled after each change
}

// watchBindings watches until the context is done.
func watchBindings(ctx context.Context, c kubernetes.Interface) (*bindings, error) {
	b := &bindings{at: map[string]string{}, changed: make(chan struct{}, 1)}
	factory := informers.NewSharedInformerFactoryWithOptions(c, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = "spec.nodeName!=" }))
	pods := factory.Core().V1().Pods().Informer()
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { b.see(o.(*corev1.Pod)) },
		UpdateFunc: func(_, o any) { b.see(o.(*corev1.Pod)) },
	})
	if err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), pods.HasSynced) {
		return nil, fmt.Errorf("watch pods: %w", ctx.Err())
	}
	return b, nil
}

func (b *bindings) see(pod *corev1.Pod) {
	b.mu.Lock()
	switch b.at[pod.Name] {
	case "":
		now := time.Now()
		if len(b.at) == 0 {
			b.first = now
		}
		b.at[pod.Name], b.last = pod.Spec.NodeName, now
		b.waits = append(b.waits, now.Sub(b.since).Seconds())
	case pod.Spec.NodeName:
	default:
		b.moved = pod.Name
	}
	b.mu.Unlock()
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// wait returns when so many are bound, or when none was for as long as patience.
func (b *bindings) wait(ctx context.Context, n int, patience time.Duration) error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for before := -1; ; {
		b.mu.Lock()
		have := len(b.at)
		b.mu.Unlock()
		if have >= n {
			return nil
		}
		if have > before {
			before = have
			timer.Reset(patience)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return nil
		case <-b.changed:
		}
	}
}

// from sets the time from which pods wait.
func (b *bindings) from(t time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.since = t
}

// wait99 is the 99th percentile of the seconds that pods waited; 0 of none.
func (b *bindings) wait99() float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waits) == 0 {
		return 0
	}
	return nearest(slices.Sorted(slices.Values(b.waits)), 99)
}

// where is the node that a pod was bound to, "" where it was not.
func (b *bindings) where(pod string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.at[pod]
}

// placement is what was bound so far; it fails where a pod was bound twice.
func (b *bindings) placement() (map[string]string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.moved != "" {
		return nil, fmt.Errorf("pod %s was bound twice", b.moved)
	}
	return maps.Clone(b.at), nil
}
