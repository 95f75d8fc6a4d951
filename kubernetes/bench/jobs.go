package bench

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/kubernetes/controlplane"
	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/compare"
	"github.com/cotenant/cotenant/sim/contention"
)

// Testbed is the world of `cotenant simulate jobs --contention`: servers of
// devices, training jobs of workers and parameter servers, and what a profiler
// measured there, which is all that schedulers know of it.
type Testbed struct {
	*compare.World
	alone []history.Sample
}

// NewTestbed is one with so many servers and profiled co-locations.
func NewTestbed(servers, profiled int) (*Testbed, error) {
	world, err := compare.Contention(compare.ContentionConfig{
		Servers: servers, Profile: contention.SamplesConfig{Colocations: profiled, Seed: 1, Noise: .03},
	})
	if err != nil {
		return nil, err
	}
	for i := range world.Nodes {
		world.Nodes[i].Name = nodeName(i)
	}
	truth, err := contention.New(contention.Config{})
	if err != nil {
		return nil, err
	}
	return &Testbed{World: world, alone: truth.AloneSamples(mostTasks, mostTasks)}, nil
}

// mostTasks is the most workers, and the most parameter servers, of a job.
const mostTasks = 4

// Model is what is learned from what was profiled, by a seed.
func (t *Testbed) Model(seed uint64) (interference.Model, error) {
	return t.Fit(compare.Belief{Observed: 1, Seed: seed})
}

// Simulate runs policies on the jobs of a load and a seed, as `cotenant
// simulate jobs --backfill` does: a scheduler of Kubernetes backfills, too.
func (t *Testbed) Simulate(ctx context.Context, load compare.Load, seed uint64, policies ...string) ([]sim.Result, error) {
	s := compare.Setting{
		World: t.World, Options: sim.Config{Backfill: true}, Belief: compare.Belief{Observed: 1}, Seeds: []uint64{seed},
		Jobs: func(seed uint64) ([]sim.Job, error) { return t.Generate(load, seed) },
	}
	for _, name := range policies {
		spec, err := compare.ParseSpec(name)
		if err != nil {
			return nil, err
		}
		s.Specs = append(s.Specs, spec)
	}
	outcomes, err := s.Run(ctx)
	if err != nil {
		return nil, err
	}
	results := make([]sim.Result, len(outcomes))
	for i, o := range outcomes {
		if o.Err != nil {
			return nil, fmt.Errorf("simulate %s: %w", o.Spec.Text, o.Err)
		}
		if n := len(o.Result.Unfinished) + len(o.Result.Refused); n > 0 {
			return nil, fmt.Errorf("simulate %s: %d jobs did not finish: %s", o.Spec.Text, n, o.Result.Why)
		}
		results[i] = o.Result
	}
	return results, nil
}

//go:embed jobs.yaml
var oursForJobs string

// StockForJobs is the scheduler of the release, which tries again after a
// second at most what found no place: hours pass in seconds.
func StockForJobs() Candidate {
	return Candidate{Name: "stock", Program: "kube-scheduler", Configuration: "podInitialBackoffSeconds: 1\npodMaxBackoffSeconds: 1\n"}
}

// OursForJobs is Cotenant's scheduler with harmony for jobs.
func OursForJobs() Candidate {
	return Candidate{Name: "cotenant", Program: "cotenant-scheduler", Configuration: oursForJobs}
}

// Replay is training jobs on a plane: each is a PodGroup of pods that go
// together, submitted when it arrives; its pods succeed when its work is done
// at the speeds that the testbed's truth has for where they really are.
type Replay struct {
	Testbed *Testbed
	Jobs    []sim.Job
	// Model is what the scheduler is given.
	Model interference.Model
	// Rate is how many seconds of the jobs pass in one of the clock.
	Rate float64
	// Settle is how long the jobs' time stands still after each event, so that what
	// a scheduler needs for it, seconds at most, is not counted as hours. Its delays
	// are those of the jobs where it is 0.
	Settle    time.Duration
	Scheduler Candidate
	Limits    Limits
	// Patience is how long nothing may happen before the run fails; 0 is a minute.
	Patience time.Duration
	Log      io.Writer
}

// JobsResult is what a replay showed. Times are of the jobs, in seconds, but
// for Seconds, which are the clock's.
type JobsResult struct {
	Scheduler string  `json:"scheduler"`
	Jobs      int     `json:"jobs"`
	Rate      float64 `json:"rate"`
	MeanJCT   float64 `json:"mean_jct_s"`
	MedianJCT float64 `json:"median_jct_s"`
	P95JCT    float64 `json:"p95_jct_s"`
	// MeanWait and MaxWait are from arrival to the last pod's binding.
	MeanWait float64 `json:"mean_wait_s"`
	MaxWait  float64 `json:"max_wait_s"`
	Makespan float64 `json:"makespan_s"`
	Seconds  float64 `json:"seconds"`
	// Own are the scheduler's metrics that begin with cotenant_, summed over labels.
	Own map[string]float64 `json:"own,omitempty"`
}

// summary fills in what is told of completion times and waits.
func (r *JobsResult) summary(jct, wait []float64) {
	if r.Jobs = len(jct); r.Jobs == 0 {
		return
	}
	mean := func(x []float64) float64 {
		sum := 0.0
		for _, v := range x {
			sum += v
		}
		return sum / float64(len(x))
	}
	r.MeanJCT, r.MeanWait, r.MaxWait = mean(jct), mean(wait), slices.Max(wait)
	jct = slices.Sorted(slices.Values(jct))
	n := len(jct)
	r.MedianJCT, r.P95JCT = (jct[(n-1)/2]+jct[n/2])/2, nearest(jct, 95)
}

// nearest is a percentile of what is sorted, by the nearest rank.
func nearest(sorted []float64, percent int) float64 {
	return sorted[(len(sorted)*percent+99)/100-1]
}

// Simulated is a simulator's result in the same words.
func Simulated(policy string, s sim.Result) JobsResult {
	r := JobsResult{Scheduler: "simulated " + policy, Makespan: s.Makespan}
	var jct, wait []float64
	for i := range s.Jobs {
		jct = append(jct, s.Jobs[i].JCT().Seconds())
		wait = append(wait, (s.Jobs[i].Start - s.Jobs[i].Arrival).Seconds())
	}
	r.summary(jct, wait)
	return r
}

// configuration is the candidate's, with what it is given as files in dir.
func (p Replay) configuration(dir string) (string, error) {
	text := p.Scheduler.Configuration
	if p.Limits != (Limits{}) {
		text += fmt.Sprintf("\nclientConnection: {qps: %g, burst: %d}\n", p.Limits.QPS, p.Limits.Burst)
	}
	if !strings.Contains(text, "${MODEL}") {
		return text, nil
	}
	model, samples := filepath.Join(dir, "jobs.safetensors"), filepath.Join(dir, "alone.jsonl")
	text = strings.NewReplacer("${MODEL}", model, "${SAMPLES}", samples, "${RATE}", strconv.FormatFloat(p.pace(), 'g', -1, 64)).Replace(text)
	return text, p.Testbed.save(p.Model, model, samples)
}

// pace is how many seconds of the jobs pass in one of the clock's about, where
// it stands still at times: each job arrives, begins and ends.
func (p Replay) pace() float64 {
	span := p.Jobs[len(p.Jobs)-1].Arrival.Seconds()
	return span / (span/p.Rate + 3*float64(len(p.Jobs))*p.Settle.Seconds())
}

// save writes what a scheduler is given: the model, and how fast jobs run alone.
func (t *Testbed) save(m interference.Model, model, samples string) error {
	var one, other bytes.Buffer
	if err := interference.Save(&one, m); err != nil {
		return fmt.Errorf("model of the testbed: %w", err)
	}
	if err := formats.WriteJSONL(&other, t.alone); err != nil {
		return fmt.Errorf("rates alone of the testbed: %w", err)
	}
	return errors.Join(os.WriteFile(model, one.Bytes(), 0o600), os.WriteFile(samples, other.Bytes(), 0o600))
}

// Run runs a replay on a control plane of its own.
func (p Replay) Run(ctx context.Context) (r JobsResult, err error) {
	if p.Log == nil {
		p.Log = io.Discard
	}
	if p.Patience == 0 {
		p.Patience = time.Minute
	}
	plane, err := controlplane.Start(ctx, controlplane.Config{Log: p.Log}.WithGangs())
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	if err := plane.AddNodes(ctx, p.Testbed.nodes()...); err != nil {
		return r, err
	}
	configuration, err := p.configuration(plane.Dir())
	if err != nil {
		return r, err
	}
	scheduler, err := plane.StartScheduler(ctx, controlplane.Scheduler{Program: p.Scheduler.Program, Configuration: configuration})
	if err != nil {
		return r, err
	}
	if r, err = p.drive(ctx, plane.Client()); err != nil {
		return r, err
	}
	metrics, err := scheduler.Metrics(ctx)
	if err != nil {
		return r, err
	}
	r.Own = totals(metrics, "cotenant_")
	return r, nil
}
