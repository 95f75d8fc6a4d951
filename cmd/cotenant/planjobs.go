package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/sim/compare"
)

// planJobsFlags are the flags of `plan jobs`, as given.
type planJobsFlags struct {
	cluster     clusterFlags
	share       int
	jobs        string
	throughputs string
	contention  string
	profile     int
	samples     string
	model       string
	columns     []string
	exclude     []string
	strict      bool
	policies    []string
	migrate     time.Duration
	scale       time.Duration
	limit       time.Duration
	seed        uint64
	output      string
}

func planJobsCommand() *cobra.Command {
	var f planJobsFlags
	cmd := &cobra.Command{
		Use:   "jobs",
		Short: "Place training jobs that wait, and say why",
		Long: `Place the training jobs that wait on a cluster as it is, by every policy named:
whole jobs only, in order of arrival. A job that a policy holds back, since it
would slow others more than it gains, waits with the reason in words.

Speeds come from --throughputs or --samples, which know what was measured, and
from --model (by cotenant fit), which predicts the rest. Without a model the
policies take a co-location that nobody measured for fair shares. --contention
plans for the servers of simulate jobs --contention instead, of which a profiler
measured --profile co-locations, and fits a model where --model gives none.

Jobs come from --jobs, or are those that wait in the snapshot of --cluster.
docs/simulate.md describes the file of jobs.`,
		Example: `  cotenant plan jobs --throughputs throughputs.json --nodes v100:4x4 --jobs queue.yaml --policy greedy-wait
  cotenant plan jobs --samples samples.jsonl --model model.safetensors --cluster snapshot.json --jobs queue.csv -o json
  cotenant plan jobs --contention --nodes 6 --jobs queue.yaml --policy harmony,consolidate
  kubectl get nodes,pods -A -o json | cotenant plan jobs --throughputs throughputs.json --cluster - --migrate 30s`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				if f.contention != shippedWorld {
					return wrongUse("unexpected argument %q", args[0])
				}
				f.contention = args[0]
			}
			return f.run(cmd)
		},
	}
	f.cluster.register(cmd)
	f.cluster.registerNamespace(cmd)
	fl := cmd.Flags()
	fl.IntVar(&f.share, "share", 2, "most jobs on a device, for devices that don't say")
	fl.StringVar(&f.jobs, "jobs", "", "`FILE` of the jobs that wait (YAML, JSON or CSV)")
	fl.StringVar(&f.throughputs, "throughputs", "", "`FILE` of speeds alone and in pairs: Gavel's throughputs; gzip too")
	fl.StringVar(&f.contention, "contention", "", "instead: servers by a model of contention, with the constants of `FILE` or those that ship; --nodes is their number")
	fl.Lookup("contention").NoOptDefVal = shippedWorld
	fl.IntVar(&f.profile, "profile", 500, "`N` co-locations that a profiler measured (--contention)")
	fl.StringVar(&f.samples, "samples", "", "`FILE` of measurements: .jsonl, .csv, SQLite; gzip too")
	fl.StringVar(&f.model, "model", "", "model `FILE` by cotenant fit, for what was not measured")
	fl.StringSliceVar(&f.exclude, "exclude", []string{"Recommendation"}, "leave out these families of `workloads` of --throughputs")
	fl.BoolVar(&f.strict, "strict", false, "fail on the first bad record of a file instead of leaving it out")
	fl.StringArrayVar(&f.policies, "policy", []string{"greedy-wait"}, "policies, a comma `list` of NAME[@FILE][:key=value...] and exec:PROGRAM; harmony is the one that was trained")
	fl.DurationVar(&f.migrate, "migrate", 0, "allow running jobs to move, at this `cost` of standing still")
	fl.DurationVar(&f.scale, "scale", 0, "allow jobs with max_workers to get more or fewer workers, running ones at this `cost` of standing still")
	fl.DurationVar(&f.limit, "time-limit", 0, "most `time` for a decision of an exec: policy (default 1m)")
	fl.Uint64Var(&f.seed, "seed", 1, "`S`, the seed of all that is drawn")
	outputFlag(cmd, &f.output)
	return cmd
}

func (f *planJobsFlags) run(cmd *cobra.Command) error {
	in := &inputs{stdin: cmd.InOrStdin(), ctx: cmd.Context()}
	log := cmd.ErrOrStderr()
	if f.migrate < 0 || f.scale < 0 || f.limit < 0 {
		return wrongUse("--migrate %s, --scale %s, --time-limit %s: negative", f.migrate, f.scale, f.limit)
	}
	if err := checkOutput(f.output); err != nil {
		return err
	}
	specs, err := f.specs(in)
	if err != nil {
		return err
	}
	world, model, err := f.world(in, log)
	if err != nil {
		return err
	}
	req, err := f.request(in, log, world)
	if err != nil {
		return err
	}
	var plans []jobPlan
	for _, spec := range specs {
		p, err := f.plan(cmd.Context(), spec, world, model, req)
		if err != nil {
			return fmt.Errorf("policy %s: %w", spec.Text, err)
		}
		plans = append(plans, p...)
	}
	return writeJobPlans(cmd.OutOrStdout(), f.output, plans)
}

func (f *planJobsFlags) specs(in *inputs) ([]compare.Spec, error) {
	var specs []compare.Spec
	for _, value := range f.policies {
		for _, part := range splitPolicies(value) {
			spec, err := parseJobPolicy(in, part)
			if err != nil {
				return nil, err
			}
			if spec.Truth {
				return nil, wrongUse("--policy %s: a plan has no truth to ask; leave :truth out", spec.Text)
			}
			if slices.ContainsFunc(specs, func(s compare.Spec) bool { return s.Text == spec.Text }) {
				return nil, wrongUse("--policy %s: named twice", spec.Text)
			}
			specs = append(specs, spec)
		}
	}
	return specs, nil
}

// world reads what is known of speeds, and the model that a policy believes.
func (f *planJobsFlags) world(in *inputs, log io.Writer) (*compare.World, interference.Model, error) {
	source := &sourceFlags{samples: f.samples, columns: f.columns, strict: f.strict}
	var samples []history.Sample
	var err error
	switch {
	case f.throughputs != "" && f.samples != "":
		return nil, nil, wrongUse("--throughputs and --samples are both given; keep one")
	case f.contention != "" && (f.throughputs != "" || f.samples != ""):
		return nil, nil, wrongUse("--contention and --throughputs or --samples are both given; keep one")
	case f.contention != "":
		return f.servers(in)
	case f.throughputs != "":
		samples, err = readThroughputs(in, log, f.throughputs, f.strict, f.exclude)
	case f.samples != "":
		samples, err = source.readSamples(in, log)
	default:
		return nil, nil, wrongUse("how fast do jobs run? give --throughputs FILE or --samples FILE, or --contention")
	}
	if err != nil {
		return nil, nil, err
	}
	w, err := compare.Known(samples, nil, nil)
	if err != nil {
		return nil, nil, source.located(err)
	}
	if f.model == "" {
		return w, w.Table, nil
	}
	model, err := f.predicts(in, w)
	return w, model, err
}

// predicts is --model, overridden by what was measured.
func (f *planJobsFlags) predicts(in *inputs, w *compare.World) (interference.Model, error) {
	m, err := readModel(in, f.model)
	if err != nil {
		return nil, err
	}
	if m, err = interference.Override(m, w.Samples); err != nil {
		return nil, fmt.Errorf("--model %s: %w", f.model, err)
	}
	return m, nil
}

// servers makes the world of --contention, and the model that is believed.
func (f *planJobsFlags) servers(in *inputs) (*compare.World, interference.Model, error) {
	flags := worldFlags{contention: f.contention, nodes: f.cluster.nodes, strength: 1, profile: f.profile, noise: 0.03, profileSeed: 1}
	w, err := flags.loadContention(in)
	if err != nil {
		return nil, nil, err
	}
	if f.model != "" {
		m, err := f.predicts(in, w)
		return w, m, err
	}
	m, err := w.Fit(compare.Belief{Observed: 1, Seed: f.seed, Parallel: parallel})
	return w, m, err
}

// request reads the cluster and the jobs that wait.
func (f *planJobsFlags) request(in *inputs, log io.Writer, w *compare.World) (place.Request, error) {
	c, err := f.readCluster(in, log, w)
	if err != nil {
		return place.Request{}, err
	}
	pending := c.Pending
	if f.jobs != "" {
		if len(pending) > 0 {
			fmt.Fprintf(log, "--cluster: %s that wait in %s are left out: --jobs are placed\n", count(len(pending), "group"), f.cluster.cluster)
		}
		if pending, err = readJobs(in, f.jobs); err != nil {
			return place.Request{}, err
		}
	}
	if len(pending) == 0 {
		return place.Request{}, wrongUse("which jobs? give --jobs FILE, or a --cluster with pods that wait")
	}
	if f.scale == 0 { // policies scale whatever shows bounds
		for i := range c.Running {
			c.Running[i].Sizes = nil
		}
		for i := range pending {
			pending[i].MinWorkers, pending[i].MaxWorkers = 0, 0
		}
	}
	view, err := cluster.NewSnapshot(c.Spec)
	if err != nil {
		return place.Request{}, fmt.Errorf("%s: %w", f.cluster.origin(err), err)
	}
	if err := checkIDs(view, pending); err != nil {
		return place.Request{}, err
	}
	unknown := map[string]bool{}
	for _, g := range pending {
		for _, t := range g.Tasks {
			if t.Role != cluster.ParameterServer && !slices.Contains(w.Alone.Workloads(), t.Workload) {
				unknown[t.Workload] = true
			}
		}
	}
	if len(unknown) > 0 {
		var names []string
		for name := range unknown {
			names = append(names, name)
		}
		slices.Sort(names)
		fmt.Fprintf(log, "nobody measured %s: each class is taken to be as fast for them, and devices they share to be shared fairly\n", some(names, 8))
	}
	w.Nodes, w.Declared = c.Nodes, c.Workloads
	now := time.Duration(0)
	for _, g := range pending {
		now = max(now, g.Arrival)
	}
	for _, r := range view.Running() {
		now = max(now, r.Started)
	}
	return place.Request{View: view, Pending: pending, Now: now, Objective: place.MeanPerformance, Rand: rand.New(rand.NewPCG(f.seed, streamPolicy))}, nil
}

func checkIDs(view *cluster.Snapshot, pending []cluster.Group) error {
	taken := map[cluster.TaskID]bool{}
	for _, r := range view.Running() {
		taken[r.ID] = true
	}
	for _, g := range pending {
		for _, t := range g.Tasks {
			if taken[t.ID] {
				return fmt.Errorf("job %q: task %q runs already or is in two jobs; names are unique in a cluster", g.Name, t.ID)
			}
			taken[t.ID] = true
		}
	}
	return nil
}

// readCluster makes or reads the cluster. Devices that do not say how many
// tasks they take get --share; running tasks that do not say which devices
// they use get the first that are free.
func (f *planJobsFlags) readCluster(in *inputs, log io.Writer, w *compare.World) (c formats.Cluster, err error) {
	k := &f.cluster
	if err := k.where(); err != nil {
		return c, err
	}
	switch {
	case f.share < 1 || f.share > 64:
		return c, wrongUse("--share %d: give 1 to 64", f.share)
	case k.slots < 0 || k.slots > maxSlots || k.zones < 0:
		return c, wrongUse("--slots %d, --zones %d: give numbers of 0 or more, and at most %d slots", k.slots, k.zones, maxSlots)
	}
	switch {
	case f.contention != "" && k.nodes != "":
		c.Nodes, c.Workloads = w.Nodes, w.Declared
	case k.nodes != "":
		if c.Nodes, err = k.madeNodes(maxSlots); err != nil {
			return c, err
		}
	default:
		if c, err = k.snapshot(in, log, f.strict); err != nil {
			return c, err
		}
	}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if k.nodes != "" && k.slots == 0 {
			n.Slots = 0 // devices are what limits jobs
		}
		for d := range n.Devices {
			if n.Devices[d].Slots == 0 && w.Scope == history.ScopeDevice {
				n.Devices[d].Slots = f.share
			}
		}
	}
	if k.zones > 0 {
		labelZones(c.Nodes, k.zones)
	}
	if guessed := giveDevices(&c.Spec); guessed > 0 {
		fmt.Fprintf(log, "--cluster: %d running tasks do not say which devices they use: taken to be the emptiest of their nodes\n", guessed)
	}
	if err := k.declare(in, &c.Spec); err != nil {
		return c, err
	}
	if k.constraints != "" {
		rules, err := readConstraints(in, k.constraints)
		if err != nil {
			return c, err
		}
		c.Constraints = mergeConstraints(c.Constraints, rules)
	}
	return c, nil
}

// giveDevices gives running tasks that need devices and name none the emptiest
// of their node.
func giveDevices(spec *cluster.Spec) (guessed int) {
	at := map[string]*cluster.Node{}
	for i := range spec.Nodes {
		at[spec.Nodes[i].Name] = &spec.Nodes[i]
	}
	used := map[string][]int{}
	for i := range spec.Running {
		r := &spec.Running[i]
		if n := at[r.Node]; n != nil {
			if used[r.Node] == nil {
				used[r.Node] = make([]int, len(n.Devices))
			}
			for _, d := range r.On {
				if d >= 0 && d < len(n.Devices) {
					used[r.Node][d]++
				}
			}
		}
	}
	for i := range spec.Running {
		r := &spec.Running[i]
		if r.Devices == 0 || len(r.On) > 0 || at[r.Node] == nil {
			continue
		}
		guessed++
		for range min(r.Devices, len(at[r.Node].Devices)) {
			best := -1
			for d, n := range used[r.Node] {
				if !slices.Contains(r.On, d) && (best < 0 || n < used[r.Node][best]) {
					best = d
				}
			}
			r.On = append(r.On, best)
			used[r.Node][best]++
		}
	}
	return guessed
}

// plan asks one policy.
func (f *planJobsFlags) plan(ctx context.Context, spec compare.Spec, w *compare.World, model interference.Model, req place.Request) ([]jobPlan, error) {
	if spec.Name == "linear" {
		linear, err := interference.Fit(interference.KindLinear, w.Samples, interference.Options{Metrics: []history.Metric{history.Rate}})
		if err != nil {
			return nil, err
		}
		model = linear
	}
	speeds := w.Speeds(model, spec.Pessimism())
	policy, end, err := spec.New(ctx, w, speeds.Fork(), compare.PolicyOptions{Migrate: f.migrate, Scale: f.scale, Explain: true, Limit: f.limit})
	if err != nil {
		return nil, wrongUse("--policy %s: %v", spec.Text, err)
	}
	defer end()
	d, _, err := decide(ctx, policy, req, 0)
	if ctx.Err() != nil {
		return nil, stopped("nothing was written")
	}
	if err != nil {
		return nil, err
	}
	after, err := carryOut(req, d)
	if err != nil {
		return nil, fmt.Errorf("its decision is invalid: %w", err)
	}
	return describeJobs(spec.Text, req, d, after, speeds), nil
}
