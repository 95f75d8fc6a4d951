package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/baseline"
	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/services"
)

// servicesFlags are the flags of `simulate services`, as given.
type servicesFlags struct {
	sourceFlags
	clusterFlags
	load      float64
	most      float64
	lifetime  time.Duration
	lifetimes string
	sizes     string
	scaling   float64
	mix       string
	drift     time.Duration
	horizon   time.Duration
	warmup    time.Duration

	policies  []string
	objective string
	migrate   time.Duration
	mtbf      time.Duration
	repair    time.Duration
	moments   int
	replan    string
	limit     time.Duration

	seed   uint64
	seeds  int
	output string
	out    string
}

func simulateServicesCommand() *cobra.Command {
	f := &servicesFlags{}
	cmd := &cobra.Command{
		Use:   "services",
		Short: "Let services come, scale and go under several policies, and compare how they perform",
		Long: `Let the same services arrive, scale and leave under every policy named, and
compare the performance of what runs, averaged over time, with what the tasks
that run at a moment could reach at most.

What is placed stays where it is, unless --migrate allows moves. What fits
nowhere waits, and is tried again at every change. A service's lifetime counts
from its arrival, so that all policies face the same demand. It begins with as
many tasks as --load says, placed by the policy itself, one service after the
other, and counts after --warmup.

With --samples alone the policies see what was measured. With --model they see
only the model; --samples given too is then the truth. With neither, the
measurements that ship with cotenant are the samples.

The table holds every policy against greedy, seed by seed, in points of the
bound. The bound is that of the tasks which run, all free to sit anywhere, at
--moments of each run; "re-planned" is what --replan reaches by placing all of
them anew there. Waiting tasks count in neither; "served" counts them, with
performance 0.

Every decision is checked: one that breaks a constraint fails the run.

After Ctrl-C the runs that finished are shown and, with --out, written; the same
command then runs only the rest.
Exit 1 when a policy failed.`,
		Example: `  cotenant simulate services --nodes 20 --load 0.8 --policy spread,greedy --seeds 5
  cotenant simulate services --samples colocations.csv --nodes 81 --slots 8 --load 0.95 --seeds 20 --policy spread,greedy,greedy-search
  cotenant simulate services --model model.safetensors --samples colocations.csv --nodes 81 --slots 8 --zones 3 \
      --constraints rules.yaml --mtbf 500h --repair 1h --mix zipf --drift 12h --out run`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
		// Writing what finished may take longer than a command is waited for.
		Annotations: map[string]string{endsItself: "yes"},
	}
	f.sourceFlags.register(cmd)
	f.clusterFlags.register(cmd)
	fl := cmd.Flags()
	fl.Float64Var(&f.load, "load", 0.8, "share of all slots that is wanted on average")
	fl.Float64Var(&f.most, "most", 1, "share of all slots that is wanted at most: services that would exceed it do not come, and more are offered to make up for it; 0 is no limit")
	fl.DurationVar(&f.lifetime, "lifetime", time.Hour, "mean `time` for which a service is wanted")
	fl.StringVar(&f.lifetimes, "lifetimes", "exponential", "exponential, or log-uniform:RATIO of the longest to the shortest")
	fl.StringVar(&f.sizes, "sizes", "", "mix of replicas of a service, `N:SHARE,...` (default: 1 to 16, N as often as 1/N)")
	fl.Float64Var(&f.scaling, "scaling", 1, "how often a service draws a new size in a mean lifetime, on average")
	fl.StringVar(&f.mix, "mix", string(services.Uniform), "how often workloads occur: "+strings.Join(services.Mixes(), ", "))
	fl.DurationVar(&f.drift, "drift", 0, "the mix becomes another, drawn alike, within this `time`, again and again (default: never)")
	fl.DurationVar(&f.horizon, "horizon", 0, "`time` to simulate (default: 24 mean lifetimes)")
	fl.DurationVar(&f.warmup, "warmup", 0, "`time` at the beginning that does not count (default: 4 mean lifetimes)")

	fl.StringArrayVar(&f.policies, "policy", nil, "policies, a comma `list` of NAME[@FILE][:key=value...] and exec:PROGRAM (default: spread,greedy); metis is the one that was trained")
	fl.StringVar(&f.objective, "objective", "mean", "`what` the policies optimise: mean, worst, p99, nodes, traffic (needs edges in --workloads), or a weighted sum such as mean=1,traffic=0.2")
	fl.DurationVar(&f.migrate, "migrate", 0, "allow running tasks to move, at this `cost` of no performance")
	fl.DurationVar(&f.mtbf, "mtbf", 0, "mean `time` between failures of a node, whose tasks then wait again (default: never)")
	fl.DurationVar(&f.repair, "repair", 10*time.Minute, "`time` to repair a node")
	fl.IntVar(&f.moments, "moments", 20, "`N` moments of each run at which the bound is computed")
	fl.StringVar(&f.replan, "replan", "", "`POLICY` that places all tasks anew at those moments, for comparison, such as greedy-search")
	fl.DurationVar(&f.limit, "time-limit", 0, "most `time` for a decision of an exec: policy (default 1m)")

	fl.Uint64Var(&f.seed, "seed", 1, "`S`, the seed of all that is drawn")
	fl.IntVar(&f.seeds, "seeds", 1, "run with `N` seeds: S, S+1, ...")
	fl.StringVar(&f.out, "out", "", "also write manifest.json, runs.csv, moments.csv and decisions.csv into `DIR`")
	outputFlag(cmd, &f.output)
	return cmd
}

// held is the policy against which all others are held.
const heldAgainst = "greedy"

// dynamic is all that was read for `simulate services`.
type dynamic struct {
	source *source
	spec   cluster.Spec
	stream services.Stream
	config services.Config // without arrivals and policy
	specs  []policySpec
	replan *policySpec
	seeds  []uint64
	limit  time.Duration
}

// read checks the flags and reads what they name.
func (f *servicesFlags) read(cmd *cobra.Command, in *inputs, log io.Writer) (*dynamic, error) {
	d := &dynamic{limit: f.limit}
	if err := f.check(); err != nil {
		return nil, err
	}
	for i := range f.seeds {
		d.seeds = append(d.seeds, f.seed+uint64(i))
	}
	objective, err := place.ParseObjective(f.objective)
	if err != nil {
		return nil, wrongUse("--%s%s", err, objectiveHint(f.objective))
	}
	if err := f.readPolicies(d, in); err != nil {
		return nil, err
	}
	migrate := sim.Price{On: cmd.Flags().Changed("migrate"), Cost: f.migrate}
	for _, spec := range d.specs {
		if moves := spec.params["moves"]; !migrate.On && moves != "" && moves != "0" {
			fmt.Fprintf(log, "--policy %s moves nothing: allow moves, and say what one costs, with --migrate, such as --migrate 30s\n", spec.text)
		}
	}
	if d.source, err = f.sourceFlags.load(in, log); err != nil {
		return nil, err
	}
	c, err := f.clusterFlags.load(in, log, d.source, f.strict)
	if err != nil {
		return nil, err
	}
	if n := len(c.Running) + len(c.Pending); n > 0 {
		fmt.Fprintf(log, "--cluster: what runs or waits in %s is left out: the simulation begins with services of its own\n", f.cluster)
	}
	d.spec = c.Spec
	d.spec.Running = nil
	classes := classesOf(d.spec.Nodes)
	if err := d.source.checkClasses(classes); err != nil {
		return nil, err
	}
	f.warnDeclared(log, d.source, classes)
	known := d.source.workloads(classes)
	if err := checkRuleNames(f.constraints, d.spec.Constraints, known); err != nil {
		return nil, err
	}
	view, err := cluster.NewSnapshot(d.spec)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.origin(err), err)
	}
	if objective.Traffic != 0 {
		// Any number of each may come to run.
		tasks := func(w string) int {
			if slices.Contains(known, w) {
				return 2
			}
			return 0
		}
		if err := checkEdges(log, view.Workloads(), tasks, "the services"); err != nil {
			return nil, err
		}
	}
	slots, ok := view.Slots()
	if !ok {
		return nil, wrongUse("--load %g: of what? some node has no limit of tasks; give --slots", f.load)
	}
	if err := d.source.checkMeasured(view, known); err != nil {
		return nil, err
	}
	truth, _ := d.source.judge()
	d.stream = services.Stream{
		Capacity: slots, Load: f.load, Most: f.most, Horizon: f.horizon, Lifetime: f.lifetime, Scaling: f.scaling,
		Workloads: known, Mix: services.Mix(f.mix), Drift: f.drift,
	}
	if f.most == 0 {
		d.stream.Most = math.Inf(1)
	}
	if d.stream.Sizes, err = parseReplicas(f.sizes); err != nil {
		return nil, err
	}
	if d.stream.Range, err = parseLifetimes(f.lifetimes); err != nil {
		return nil, err
	}
	d.config = services.Config{
		Cluster: d.spec, Truth: truth, Objective: objective, Horizon: f.horizon, Warmup: f.warmup, Lifetime: f.lifetime,
		Migrate: migrate, MTBF: f.mtbf, Repair: f.repair, Samples: f.moments,
	}
	if err := d.config.LimitFailures(); err != nil {
		return nil, wrongUse("--mtbf %s: %v", f.mtbf, err)
	}
	if _, err := d.stream.Draw(d.seeds[0]); err != nil {
		return nil, wrongUse("%v", err)
	}
	return d, nil
}

func (f *servicesFlags) check() error {
	if err := checkOutput(f.output); err != nil {
		return err
	}
	if err := oneOf("mix", f.mix, services.Mixes()); err != nil {
		return err
	}
	const longest = 70 * 365 * 24 * time.Hour
	for _, d := range []struct {
		flag string
		time time.Duration
	}{
		{"lifetime", f.lifetime},
		{"drift", f.drift},
		{"horizon", f.horizon},
		{"warmup", f.warmup},
		{"migrate", f.migrate},
		{"mtbf", f.mtbf},
		{"repair", f.repair},
		{"time-limit", f.limit},
	} {
		if d.time < 0 {
			return wrongUse("--%s %s: negative", d.flag, d.time)
		}
		if d.time > longest {
			return wrongUse("--%s %s: give at most %s", d.flag, d.time, longest)
		}
	}
	switch {
	case f.seeds < 1 || f.seeds > maxSeeds:
		return wrongUse("--seeds %d: give 1 to %d", f.seeds, maxSeeds)
	case f.seed > math.MaxUint64-maxSeeds:
		return wrongUse("--seed %d: too large", f.seed)
	case f.lifetime < time.Millisecond:
		return wrongUse("--lifetime %s: give 1ms to %s", f.lifetime, longest)
	case !(f.most >= 0):
		return wrongUse("--most %g: give a share of the slots, such as 1, or 0 for no limit", f.most)
	case !(f.load > 0):
		return wrongUse("--load %g: give a number above 0; 1 is all slots", f.load)
	case f.most > 0 && f.load >= f.most:
		return wrongUse("--load %g: the average must lie below the most that is wanted, --most %g", f.load, f.most)
	case !(f.scaling >= 0 && f.scaling <= 1000):
		return wrongUse("--scaling %g: give 0 to 1000", f.scaling)
	case f.moments < 1 || f.moments > 100_000:
		return wrongUse("--moments %d: give 1 to 100000", f.moments)
	}
	if f.horizon == 0 {
		f.horizon = min(24*f.lifetime, longest)
	}
	if f.warmup == 0 {
		f.warmup = min(4*f.lifetime, f.horizon/2)
	}
	if f.warmup >= f.horizon {
		return wrongUse("--horizon %s: it must be longer than the warm-up, %s", f.horizon, f.warmup)
	}
	if f.drift > 0 && f.horizon/f.drift > 10_000 {
		return wrongUse("--drift %s: too short for a horizon of %s", f.drift, f.horizon)
	}
	if f.out != "" {
		return checkRunFolder(f.out)
	}
	return nil
}

func (f *servicesFlags) readPolicies(d *dynamic, in *inputs) error {
	policies := f.policies
	if len(policies) == 0 {
		policies = []string{"spread," + heldAgainst}
	}
	var err error
	if d.specs, err = parsePolicies(policies); err != nil {
		return err
	}
	if err := loadPolicies(in, d.specs); err != nil {
		return err
	}
	if !slices.ContainsFunc(d.specs, func(s policySpec) bool { return s.text == heldAgainst }) {
		d.specs = slices.Insert(d.specs, 0, policySpec{text: heldAgainst, name: heldAgainst})
	}
	if f.replan == "" {
		return nil
	}
	name, _, _ := strings.Cut(f.replan, ":")
	known := append(baseline.Names(), "bound")
	specs, err := parsePolicies([]string{f.replan})
	switch {
	case !slices.Contains(known, name) || len(specs) > 1:
		return wrongUse("--replan %s: give one policy of %s%s", f.replan, strings.Join(known, ", "), didYouMean(name, known))
	case err != nil:
		return underFlag("replan", err)
	}
	d.replan = &specs[0]
	return nil
}

// parseReplicas reads N:SHARE,...
func parseReplicas(text string) ([]services.Size, error) {
	if text == "" {
		return nil, nil
	}
	var sizes []services.Size
	for part := range strings.SplitSeq(text, ",") {
		var z services.Size
		var rest string
		if n, _ := fmt.Sscanf(part+" .", "%d:%g %s", &z.Replicas, &z.Share, &rest); n != 3 || rest != "." || z.Replicas < 1 || z.Replicas > 10_000 ||
			!(z.Share >= 0) || math.IsInf(z.Share, 0) {
			return nil, wrongUse("--sizes %s: %q is not N:SHARE, such as 4:0.5", text, part)
		}
		sizes = append(sizes, z)
	}
	return sizes, nil
}

// parseLifetimes reads exponential (0) or log-uniform:RATIO.
func parseLifetimes(text string) (float64, error) {
	if text == "exponential" {
		return 0, nil
	}
	ratio := 0.0
	rest := ""
	if n, _ := fmt.Sscanf(text+" .", "log-uniform:%g %s", &ratio, &rest); n != 2 || rest != "." || !(ratio >= 1 && ratio <= 1e9) {
		return 0, wrongUse("--lifetimes %s: give exponential, or log-uniform:RATIO with a ratio of at least 1, such as log-uniform:100", text)
	}
	return ratio, nil
}
