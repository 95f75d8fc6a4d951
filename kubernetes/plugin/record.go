package plugin

import (
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/cotenant/cotenant/explain"
	"github.com/cotenant/cotenant/kubernetes/plugin/config"
	"github.com/cotenant/cotenant/kubernetes/plugin/plan"
)

// Decision is what is recorded of a pod, kept for its cycle.
type Decision struct{ explain.Decision }

// Clone implements framework.StateData.
func (d *Decision) Clone() fwk.StateData { return d }

// give says why the scheduler's own scores decide.
func (d *Decision) give(why plan.Reason) { d.Fallback, d.Why = string(why.Code), why.Words }

const decisionKey fwk.StateKey = explain.DecisionAnnotation

// decisionOf is what was decided in this cycle; nil where nothing was.
func decisionOf(state fwk.CycleState) *Decision {
	data, err := state.Read(decisionKey)
	if err != nil {
		return nil
	}
	d, _ := data.(*Decision)
	return d
}

// recorder tells people what was decided.
type recorder struct {
	handle fwk.Handle
	events bool
	logger klog.Logger

	mu     sync.Mutex
	logged map[plan.Code]bool
}

func newRecorder(h fwk.Handle, args *config.CotenantArgs, logger klog.Logger) *recorder {
	return &recorder{handle: h, events: args.Events != "none", logger: logger, logged: map[plan.Code]bool{}}
}

// fallback counts that a pod is left to the scheduler, logs each reason once,
// and names it in the pod's event.
func (r *recorder) fallback(pod *v1.Pod, why plan.Reason) {
	fallbacks.WithLabelValues(string(why.Code)).Inc()
	r.mu.Lock()
	first := !r.logged[why.Code]
	r.logged[why.Code] = true
	r.mu.Unlock()
	if first {
		r.logger.Info("Left to the scheduler's own scores; told once for each reason, then only counted", "pod", klog.KObj(pod), "reason", why.Code, "why", why.Words)
	}
	kind := v1.EventTypeWarning
	if why.Code == plan.WorkloadUnknown { // no news: most clusters hold many
		kind = v1.EventTypeNormal
	}
	r.event(pod, kind, explain.FallbackEvent, "left to the scheduler's own scores: %s: %s", why.Code, why.Words)
}

// event tells of a pod.
func (r *recorder) event(pod *v1.Pod, kind, reason, format string, args ...any) {
	if !r.events {
		return
	}
	if e := r.handle.EventRecorder(); e != nil {
		e.Eventf(pod, nil, kind, reason, "Scheduling", "%s", clipped(fmt.Sprintf(format, args...)))
	}
}

// clipped shortens what an event says to what the API server takes.
func clipped(note string) string {
	const most = 1000
	if len(note) > most {
		return note[:most] + "..."
	}
	return note
}
