package bench

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// bindings watches pods being bound.
type bindings struct {
	mu          sync.Mutex
	at          map[string]string // pod name to node name
	first, last time.Time         // when we saw the first and the last
	moved       string            // a pod that was bound twice, which must not be
	failed      error             // why the watch ended, if not by its context
	changed     chan struct{}     // has room for one; filled after each change
}

// watchBindings watches until the context is done.
func watchBindings(ctx context.Context, c kubernetes.Interface) (*bindings, error) {
	b := &bindings{at: map[string]string{}, changed: make(chan struct{}, 1)}
	w, err := c.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!="})
	if err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	go func() {
		for e := range w.ResultChan() {
			b.see(e)
		}
		b.mu.Lock()
		if ctx.Err() == nil && b.failed == nil {
			b.failed = fmt.Errorf("the watch of pods ended")
		}
		b.mu.Unlock()
		b.wake()
	}()
	return b, nil
}

func (b *bindings) see(e watch.Event) {
	pod, ok := e.Object.(*corev1.Pod)
	b.mu.Lock()
	switch {
	case !ok:
		if e.Type == watch.Error {
			b.failed = fmt.Errorf("watch pods: %v", e.Object)
		}
	case b.at[pod.Name] == "":
		now := time.Now()
		if len(b.at) == 0 {
			b.first = now
		}
		b.at[pod.Name], b.last = pod.Spec.NodeName, now
	case b.at[pod.Name] != pod.Spec.NodeName:
		b.moved = pod.Name
	}
	b.mu.Unlock()
	b.wake()
}

func (b *bindings) wake() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// wait returns when so many are bound, or when none was for as long as patience.
func (b *bindings) wait(ctx context.Context, n int, patience time.Duration) error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		b.mu.Lock()
		have, failed := len(b.at), b.failed
		b.mu.Unlock()
		if failed != nil || have >= n {
			return failed
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return nil
		case <-b.changed:
			timer.Reset(patience)
		}
	}
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
