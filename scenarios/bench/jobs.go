package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/compare"
	"github.com/cotenant/cotenant/sim/contention"
)

// jobsSpec replays jobs by several policies, all on the same jobs. Exactly one
// of Throughputs and Contention says how fast jobs run; a Trace below the data
// folder takes the place of drawn jobs.
type jobsSpec struct {
	Throughputs string          `json:"throughputs,omitempty"`
	Contention  *contentionSpec `json:"contention,omitempty"`
	// Exclude leaves out families of workloads.
	Exclude []string    `json:"exclude,omitempty"`
	Nodes   []nodesSpec `json:"nodes,omitempty"`
	Trace   string      `json:"trace,omitempty"`
	Load    float64     `json:"load,omitempty"`
	Jobs    int         `json:"jobs,omitempty"`
	// FirstSeed is added to the seeds 0, 1, ...
	FirstSeed uint64 `json:"first_seed,omitempty"`
	Backfill  bool   `json:"backfill,omitempty"`
	// Migrate is the cost of a move, such as 30s; without, nothing moves.
	Migrate string `json:"migrate,omitempty"`
	Online  bool   `json:"online,omitempty"`
	// Observed is the share of the co-locations that policies know; 0 means all.
	Observed float64 `json:"observed,omitempty"`
	Kind     string  `json:"kind,omitempty"`
	// Policies besides spread, as on the command line.
	Policies []string `json:"policies"`
	// Versus names pairs "A / B" for the metric of the same name.
	Versus []string `json:"versus,omitempty"`
}

type nodesSpec struct {
	Class   string `json:"class,omitempty"`
	Nodes   int    `json:"nodes"`
	Devices int    `json:"devices,omitempty"` // a node; 0 means 1
}

type contentionSpec struct {
	Servers  int     `json:"servers"`
	Strength float64 `json:"strength,omitempty"`
	Profile  int     `json:"profile"`
	Noise    float64 `json:"noise,omitempty"`
}

// metrics are what jobs can be held to, of policies P by seed:
//
//	ratio:P       mean JCT / spread's
//	closed:P      share of the gap (spread - lower bound) that it closes
//	wait:P        longest wait / spread's
//	unfinished:P  jobs left
//	jct:P / Q     mean JCT of P / that of Q
//	closed:P / Q  share of the gap (spread - Q) that P closes
//	wait:P / Q    longest wait of P / that of Q
//	bound         lower bound / spread's mean JCT
//	seconds       all runs of the seed
func (j *jobsSpec) metrics() []string {
	out := []string{"bound", "seconds"}
	for _, p := range append([]string{compare.Spread}, j.Policies...) {
		out = append(out, "ratio:"+p, "closed:"+p, "wait:"+p, "unfinished:"+p)
	}
	for _, v := range j.Versus {
		out = append(out, "jct:"+v, "closed:"+v, "wait:"+v)
	}
	return out
}

func (j *jobsSpec) validate() error {
	switch {
	case (j.Throughputs == "") == (j.Contention == nil):
		return errors.New("jobs: give either throughputs or contention")
	case (j.Trace == "") == (j.Jobs == 0):
		return errors.New("jobs: give either a trace or a number of jobs with their load")
	case len(j.Policies) == 0:
		return errors.New("jobs: no policies")
	}
	for _, text := range j.Policies {
		if _, err := compare.ParseSpec(text); err != nil {
			return fmt.Errorf("jobs: %w", err)
		}
	}
	for _, v := range j.Versus {
		if _, _, err := j.pair(v); err != nil {
			return err
		}
	}
	return nil
}

// pair reads "A / B", both of which must be run.
func (j *jobsSpec) pair(text string) (a, b string, err error) {
	a, b, ok := strings.Cut(text, " / ")
	known := "," + strings.Join(append([]string{compare.Spread}, j.Policies...), ",") + ","
	if !ok || !strings.Contains(known, ","+a+",") || !strings.Contains(known, ","+b+",") {
		return "", "", fmt.Errorf("jobs: versus %q is not \"A / B\" of the policies", text)
	}
	return a, b, nil
}

// jobs runs a jobs scenario with one seed.
func (b *bench) jobs(j *jobsSpec, seed uint64) (map[string]float64, error) {
	w, err := b.world(j)
	if err != nil {
		return nil, err
	}
	seed += j.FirstSeed
	s := compare.Setting{
		World: w, Seeds: []uint64{seed}, Options: sim.Config{Backfill: j.Backfill, Observe: j.Online},
		Belief: compare.Belief{Observed: j.Observed, Kind: j.Kind}, Parallel: parallel,
	}
	if j.Observed == 0 {
		s.Belief.Observed = 1
	}
	if j.Migrate != "" {
		s.Options.Migrate.On = true
		if s.Options.Migrate.Cost, err = time.ParseDuration(j.Migrate); err != nil {
			return nil, fmt.Errorf("migrate: %w", err)
		}
	}
	s.Specs = []compare.Spec{{Text: compare.Spread, Name: compare.Spread}}
	for _, text := range j.Policies {
		spec, err := compare.ParseSpec(text)
		if err != nil {
			return nil, err
		}
		s.Specs = append(s.Specs, spec)
	}
	if s.Jobs, err = b.jobsOf(j, w); err != nil {
		return nil, err
	}
	if err := s.Check(); err != nil {
		return nil, err
	}
	begin := time.Now()
	outcomes, err := s.Run(b.ctx)
	if err != nil {
		return nil, err
	}
	m, err := j.measure(outcomes)
	if err != nil {
		return nil, err
	}
	m["seconds"] = time.Since(begin).Seconds()
	return m, nil
}

// measure makes metrics of the runs of one seed.
func (j *jobsSpec) measure(outcomes []compare.Outcome) (map[string]float64, error) {
	m := map[string]float64{}
	by := map[string]*sim.Result{}
	for i := range outcomes {
		o := &outcomes[i]
		if o.Err != nil {
			return nil, o.Err
		}
		by[o.Spec.Text] = &o.Result
	}
	spread := by[compare.Spread]
	m["bound"] = spread.LowerBound / spread.MeanJCT
	for name, r := range by {
		m["ratio:"+name] = r.MeanJCT / spread.MeanJCT
		m["closed:"+name] = (spread.MeanJCT - r.MeanJCT) / (spread.MeanJCT - spread.LowerBound)
		m["wait:"+name] = r.MaxWait / spread.MaxWait
		m["unfinished:"+name] = float64(len(r.Unfinished))
	}
	for _, v := range j.Versus {
		p, q, err := j.pair(v)
		if err != nil {
			return nil, err
		}
		m["jct:"+v] = by[p].MeanJCT / by[q].MeanJCT
		m["closed:"+v] = (spread.MeanJCT - by[p].MeanJCT) / (spread.MeanJCT - by[q].MeanJCT)
		m["wait:"+v] = by[p].MaxWait / by[q].MaxWait
	}
	return m, nil
}

// world opens the world of a scenario, once for all that have the same.
func (b *bench) world(j *jobsSpec) (*compare.World, error) {
	key := fmt.Sprintf("%s %+v %v %v", j.Throughputs, j.Contention, j.Exclude, j.Nodes)
	if j.Contention != nil {
		key = fmt.Sprintf("contention %+v", *j.Contention)
	}
	if w, ok := b.worlds[key]; ok {
		return w, nil
	}
	w, err := b.openWorld(j)
	if err == nil {
		b.worlds[key] = w
	}
	return w, err
}

func (b *bench) openWorld(j *jobsSpec) (*compare.World, error) {
	if c := j.Contention; c != nil {
		return compare.Contention(compare.ContentionConfig{
			Servers: c.Servers, Strength: c.Strength, Profile: contention.SamplesConfig{Colocations: c.Profile, Noise: c.Noise, Seed: 1},
		})
	}
	samples, err := readData(b.data, j.Throughputs, j.Exclude, formats.ReadSamples)
	if err != nil {
		return nil, err
	}
	var nodes []cluster.Node
	for _, n := range j.Nodes {
		nodes = append(nodes, cluster.Nodes(n.Class, n.Nodes, max(1, n.Devices), 0)...)
	}
	return compare.Measured(samples, nodes, 2)
}

// jobsOf makes the function that gives the jobs of a seed.
func (b *bench) jobsOf(j *jobsSpec, w *compare.World) (func(uint64) ([]sim.Job, error), error) {
	if j.Trace == "" {
		return func(seed uint64) ([]sim.Job, error) {
			return w.Generate(compare.Load{Jobs: j.Jobs, Load: j.Load}, seed)
		}, nil
	}
	list, err := readData(b.data, j.Trace, j.Exclude, formats.ReadTrace)
	if err != nil {
		return nil, err
	}
	t, err := w.FromTrace(list, compare.TraceOptions{})
	return func(uint64) ([]sim.Job, error) { return t.Jobs, nil }, err
}

// readData reads a file below the data folder.
func readData[T any](folder, file string, exclude []string, read func(io.Reader, formats.Options) (T, formats.Report, error)) (T, error) {
	path := filepath.Join(folder, file)
	data, _, err := formats.ReadFile(path, formats.Options{Exclude: exclude}, read)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s is %w", path, errAbsent)
	}
	return data, err
}
