package bench

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/cotenant/cotenant/kubernetes/controlplane"
)

// Candidate is a scheduler to measure.
type Candidate struct {
	Name string
	// Program is one of the folder of programs, or a path.
	Program string
	// Configuration is its KubeSchedulerConfiguration. ${MODEL} in it becomes
	// the path of a model file of the truth.
	Configuration string
	// SchedulerName is what its pods ask for; "" is default-scheduler.
	SchedulerName string
}

// Stock is the scheduler of the release as it comes.
func Stock() Candidate { return Candidate{Name: "stock", Program: "kube-scheduler"} }

//go:embed ours.yaml
var ours string

// Ours is Cotenant's scheduler, which places by the truth.
func Ours() Candidate {
	return Candidate{Name: "cotenant", Program: "cotenant-scheduler", Configuration: ours}
}

//go:embed gangs.yaml
var gangs string

// Gangs is Cotenant's scheduler as a cluster with gangs has it: one that has
// been in part for longer than the timeout is evicted.
func Gangs(timeout time.Duration) Candidate {
	return Candidate{Name: "cotenant", Program: "cotenant-scheduler", Configuration: strings.ReplaceAll(gangs, "${TIMEOUT}", timeout.String())}
}

// Limits are those of a scheduler's client; the zero value is the defaults,
// 50 requests a second with bursts of 100.
type Limits struct {
	QPS   float32 `json:"qps"`
	Burst int32   `json:"burst"`
}

// Trial is what one run measures.
type Trial struct {
	Batch     Batch
	Truth     *Truth
	Scheduler Candidate
	Limits    Limits
	// Arrive submits one service after another, each when the one before it is
	// bound; otherwise all pods are pending before the scheduler starts.
	Arrive bool
	// Sequence, where not 0, is the mean performance that ours is held against:
	// Truth.Sequence.
	Sequence float64
	// Patience is how long no pod may be bound before the run ends; 0 is 30 s.
	Patience time.Duration
	// Plane is what the control plane is like.
	Plane controlplane.Config
	// Log gets a line for each step; nil drops them.
	Log io.Writer
}

// Result is what a run showed. Times are in seconds.
type Result struct {
	Scheduler string `json:"scheduler"`
	Arrive    bool   `json:"arrive"`
	Limits    Limits `json:"limits"`
	Nodes     int    `json:"nodes"`
	Pods      int    `json:"pods"`
	Bound     int    `json:"bound"`
	// ShareBound is Bound / Pods.
	ShareBound float64 `json:"share_bound"`
	// MeanPerformance of what is bound, by the truth; LimitPerformance is what
	// no placement of all pods can be better than, and Share the one over the other.
	MeanPerformance  float64 `json:"mean_performance"`
	LimitPerformance float64 `json:"bound_performance"`
	Share            float64 `json:"share"`
	Truth            string  `json:"truth"`
	// Sequence is what the policy reaches by itself on the same sequence of
	// services, and ShareOfSequence MeanPerformance over it; absent where all pods
	// are pending at once.
	Sequence        float64 `json:"sequence_performance,omitempty"`
	ShareOfSequence float64 `json:"share_of_sequence,omitempty"`
	// FirstBind and Seconds are from the start of the scheduler's process to the
	// first and the last binding that we saw; PodsPerSecond is Bound / Seconds.
	FirstBind     float64 `json:"first_bind_s"`
	Seconds       float64 `json:"seconds"`
	PodsPerSecond float64 `json:"pods_per_second"`
	// SLI99 is the 99th percentile of scheduler_pod_scheduling_sli_duration_seconds
	// and Attempt99 of scheduler_scheduling_attempt_duration_seconds, interpolated
	// within their buckets as Prometheus does.
	SLI99     float64 `json:"sli_p99_s"`
	Attempt99 float64 `json:"attempt_p99_s"`
	// Wait99 is the 99th percentile of the time from when a pod's service was
	// submitted, or the scheduler started where that was later, until we saw the pod
	// bound: SLI99 begins with the first attempt, so it has no waiting for a group.
	Wait99 float64 `json:"wait_p99_s"`
	// Attempts by their result: scheduler_schedule_attempts_total.
	Attempts map[string]float64 `json:"attempts"`
	// Requests that the scheduler sent to the API server, by method:
	// rest_client_requests_total.
	Requests map[string]float64 `json:"requests"`
	// Own are the scheduler's metrics that begin with cotenant_, summed over labels.
	Own map[string]float64 `json:"own,omitempty"`
	// Placement is pod name to node name.
	Placement map[string]string `json:"-"`
}

// Run runs a trial on a control plane of its own.
func Run(ctx context.Context, t Trial) (r Result, err error) {
	if t.Log == nil {
		t.Log = io.Discard
	}
	if t.Patience == 0 {
		t.Patience = 30 * time.Second
	}
	t.Plane.Log = t.Log
	plane, err := controlplane.Start(ctx, t.Plane)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	if err := plane.AddNodes(ctx, controlplane.Nodes(t.Batch.Nodes, t.Batch.shape())...); err != nil {
		return r, err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	seen, err := watchBindings(watching, plane.Client())
	if err != nil {
		return r, err
	}
	if !t.Arrive {
		for _, s := range t.Batch.Services {
			if err := s.submit(ctx, plane.Client(), t.Scheduler.SchedulerName); err != nil {
				return r, err
			}
		}
		fmt.Fprintf(t.Log, "%d pods of %d services are pending\n", t.Batch.Tasks(), len(t.Batch.Services))
	}
	configuration, err := t.Scheduler.For(t.Truth, plane.Dir())
	if err != nil {
		return r, err
	}
	if t.Limits != (Limits{}) {
		configuration += fmt.Sprintf("\nclientConnection: {qps: %g, burst: %d}\n", t.Limits.QPS, t.Limits.Burst)
	}
	begin := time.Now()
	scheduler, err := plane.StartScheduler(ctx, controlplane.Scheduler{Program: t.Scheduler.Program, Configuration: configuration, Sole: true})
	if err != nil {
		return r, err
	}
	seen.from(begin)
	if t.Arrive {
		err = t.arrive(ctx, plane, seen)
	} else {
		err = seen.wait(ctx, t.Batch.Tasks(), t.Patience)
	}
	if err != nil {
		return r, err
	}
	return t.result(ctx, scheduler, seen, begin)
}

// arrive submits the services one by one. One that is not bound in time is
// left behind: the next may fit.
func (t Trial) arrive(ctx context.Context, plane *controlplane.Plane, seen *bindings) error {
	pods := 0
	for _, s := range t.Batch.Services {
		seen.from(time.Now())
		if err := s.submit(ctx, plane.Client(), t.Scheduler.SchedulerName); err != nil {
			return err
		}
		pods += s.Replicas
		if err := seen.wait(ctx, pods, t.Patience); err != nil {
			return err
		}
	}
	return nil
}

func (t Trial) result(ctx context.Context, scheduler *controlplane.RunningScheduler, seen *bindings, begin time.Time) (Result, error) {
	r := Result{
		Scheduler: t.Scheduler.Name, Arrive: t.Arrive, Limits: t.Limits,
		Nodes: t.Batch.Nodes, Pods: t.Batch.Tasks(), Truth: t.Truth.Name,
	}
	var err error
	if r.Placement, err = seen.placement(); err != nil {
		return r, err
	}
	if r.Bound = len(r.Placement); r.Bound > 0 {
		r.FirstBind, r.Seconds = seen.first.Sub(begin).Seconds(), seen.last.Sub(begin).Seconds()
		r.PodsPerSecond = float64(r.Bound) / r.Seconds
	}
	r.ShareBound = float64(r.Bound) / float64(r.Pods)
	worth, err := t.Truth.Judge(t.Batch, r.Placement)
	if err != nil {
		return r, err
	}
	r.MeanPerformance, r.LimitPerformance, r.Share = worth.MeanPerformance, worth.Bound, worth.Share
	if t.Sequence > 0 {
		r.Sequence, r.ShareOfSequence = t.Sequence, r.MeanPerformance/t.Sequence
	}
	// It writes what it counted once a second.
	select {
	case <-ctx.Done():
		return r, ctx.Err()
	case <-time.After(2 * time.Second):
	}
	metrics, err := scheduler.Metrics(ctx)
	if err != nil {
		return r, err
	}
	r.SLI99 = quantile(metrics["scheduler_pod_scheduling_sli_duration_seconds"], .99)
	r.Attempt99 = quantile(metrics["scheduler_scheduling_attempt_duration_seconds"], .99)
	r.Wait99 = seen.wait99()
	r.Attempts = ByLabel(metrics["scheduler_schedule_attempts_total"], "result")
	r.Requests = ByLabel(metrics["rest_client_requests_total"], "method")
	r.Own = totals(metrics, "cotenant_")
	return r, nil
}

// For is the candidate's configuration, with the truth as a model file in dir.
func (c Candidate) For(truth *Truth, dir string) (string, error) {
	if !strings.Contains(c.Configuration, "${MODEL}") {
		return c.Configuration, nil
	}
	path := filepath.Join(dir, "truth.safetensors")
	return strings.ReplaceAll(c.Configuration, "${MODEL}", path), truth.Save(path)
}
