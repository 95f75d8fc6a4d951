package plugin

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/cotenant/cotenant/explain"
)

// Bind implements framework.BindPlugin. It binds as the default binder does,
// with the decision, where there is one, as an annotation of the binding, which
// the API server copies to the pod: no call more. A gang's pod, whoever decided on
// its node, is bound again and again on the node that it holds, until the wait
// timeout: the others are bound already.
func (p *Plugin) Bind(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	d := decisionOf(state)
	_, gang := groupOf(pod)
	if d == nil && gang == nil || !p.minds(pod.Namespace) {
		return fwk.NewStatus(fwk.Skip)
	}
	binding := &v1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     v1.ObjectReference{Kind: "Node", Name: node},
	}
	if d != nil {
		binding.Annotations = map[string]string{explain.DecisionAnnotation: d.JSON()}
	}
	until := time.Now()
	if gang != nil {
		until = until.Add(p.waiting.timeoutOf(pod, p.args.WaitTimeout.Duration))
	}
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		err := p.bind(ctx, binding)
		if err == nil {
			return nil
		}
		if !passing(err) || time.Now().Add(wait).After(until) {
			return fwk.AsStatus(err)
		}
		if done, final := p.isBound(ctx, pod, node); done || final != nil {
			return fwk.AsStatus(final)
		}
		bindRetries.Inc()
		klog.FromContext(ctx).V(2).Info("Binding failed: the pod keeps its node, and it is tried again", "pod", klog.KObj(pod), "node", node, "err", err)
		select {
		case <-ctx.Done():
			return fwk.AsStatus(context.Cause(ctx))
		case <-time.After(wait):
		}
	}
}

func (p *Plugin) bind(ctx context.Context, binding *v1.Binding) error {
	if c := p.handle.APICacher(); c != nil {
		done, err := c.BindPod(binding)
		if err != nil {
			return err
		}
		return c.WaitOnFinish(ctx, done)
	}
	return p.handle.ClientSet().CoreV1().Pods(binding.Namespace).Bind(ctx, binding, metav1.CreateOptions{})
}

// passing reports whether the error may pass: not that the pod is gone, is
// another one, or is refused for what it is. That it is forbidden may pass, too:
// an API server that has just started forbids everything until it has read who
// may do what.
func passing(err error) bool {
	switch {
	case apierrors.IsNotFound(err), apierrors.IsInvalid(err), apierrors.IsGone(err), apierrors.IsBadRequest(err):
		return false
	}
	return true
}

// isBound asks whether a binding that failed came through nevertheless, as one
// does whose answer was lost. final is an error after which nothing is tried.
func (p *Plugin) isBound(ctx context.Context, pod *v1.Pod, node string) (done bool, final error) {
	now, err := p.handle.ClientSet().CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, err
	case err != nil:
		return false, nil // it may pass, as the binding's own error
	case now.UID != pod.UID:
		return false, apierrors.NewConflict(v1.Resource("pods"), pod.Name, errAnother)
	case now.Spec.NodeName == node:
		return true, nil
	case now.Spec.NodeName != "":
		return false, apierrors.NewConflict(v1.Resource("pods"), pod.Name, errElsewhere)
	}
	return false, nil
}

var (
	errAnother   = errors.New("another pod has its name by now")
	errElsewhere = errors.New("it is bound to another node by now")
)
