package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
)

// maxSeeds bounds --seeds.
const maxSeeds = 10_000

// planInput is all that was read for a plan, checked against each other.
type planInput struct {
	source    *source
	snapshot  *cluster.Snapshot
	batch     *batch
	objective place.Objective
	policies  []opened
	seeds     []uint64
	unsure    float64 // doubt of the belief, where policies search
	// recommended: no policy was named for pods that wait; left are those of them
	// of workloads that nobody knows.
	recommended bool
	left        []cluster.Task
}

// opened is a policy ready to be asked.
type opened struct {
	name   string
	policy place.Policy
	close  func()
}

// plan is what one policy made of the batch with one seed.
type plan struct {
	Policy         string       `json:"policy"`
	Seed           uint64       `json:"seed"`
	Nodes          int          `json:"nodes"`
	Tasks          int          `json:"tasks"`
	Objective      string       `json:"objective"`
	ValuePredicted number       `json:"value_predicted"`
	ValueTrue      number       `json:"value_true"`
	Bound          number       `json:"bound"`
	BoundOn        string       `json:"bound_on"`
	Proven         bool         `json:"proven"`
	Share          number       `json:"share"`
	Traffic        *number      `json:"traffic,omitempty"` // where the objective counts it
	Seconds        number       `json:"seconds"`
	Placement      []nodePlan   `json:"placement"`
	Held           []place.Hold `json:"held,omitempty"`
	Unknown        []string     `json:"unknown,omitempty"` // co-locations about which the judge is silent
	Why            []whyTask    `json:"why,omitempty"`
	// Of pods that wait in a cluster: where each goes, and what the plan is held
	// against where one policy is asked.
	Pods           []podPlan      `json:"pods,omitempty"`
	ValueRival     *number        `json:"value_spread,omitempty"`
	RunningNow     *number        `json:"running_now,omitempty"`
	RunningPlanned *number        `json:"running_planned,omitempty"`
	rival          *plan          // of ValueRival
	limit          limitOf        // what Bound was taken from
	decision       place.Decision // as the policy returned it
	request        place.Request  // as it was given
}

// nodePlan is what a node runs in the end; nodes that run nothing are left out.
type nodePlan struct {
	Node       string             `json:"node"`
	Colocation cluster.Colocation `json:"colocation"`
}

func planServices(cmd *cobra.Command, f *planFlags) error {
	in := &inputs{stdin: cmd.InOrStdin(), ctx: cmd.Context()}
	log := cmd.ErrOrStderr()
	p, err := f.read(in, log)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	if err := p.open(ctx, f, log); err != nil {
		return err
	}
	bar := newProgress(log, "plan services", len(p.seeds)*len(p.policies)+1)
	defer bar.end()
	bar.at(0, "the bound")
	limit, infeasible, err := p.bound(ctx)
	if err != nil {
		return err
	}
	plans, failures := p.run(ctx, f, limit, bar)
	if p.batch.waiting != nil && len(plans) == 1 {
		if err := p.againstRival(ctx, f, &plans[0], limit); err != nil && ctx.Err() == nil {
			fmt.Fprintf(log, "not held against another policy: %s\n", err)
		}
	}
	bar.end()
	if err := ctx.Err(); err != nil {
		return stopped("nothing was written")
	}
	if infeasible != nil {
		fmt.Fprintf(log, "no bound: %s\n", infeasible)
	}
	if err := f.write(cmd, in, p, plans); err != nil {
		return err
	}
	return p.outcome(log, plans, failures)
}

// read reads and checks all that the flags name.
func (f *planFlags) read(in *inputs, log io.Writer) (*planInput, error) {
	p := &planInput{}
	err := errors.Join(checkOutput(f.output), oneOf("order", f.order, orders))
	if err != nil {
		return nil, err
	}
	if p.objective, err = place.ParseObjective(f.objective); err != nil {
		return nil, wrongUse("--%s%s", err, objectiveHint(f.objective))
	}
	if f.seeds < 1 || f.seeds > maxSeeds {
		return nil, wrongUse("--seeds %d: give 1 to %d", f.seeds, maxSeeds)
	}
	if f.seed > math.MaxUint64-maxSeeds {
		return nil, wrongUse("--seed %d: too large", f.seed)
	}
	if f.limit < 0 {
		return nil, wrongUse("--time-limit %s: negative", f.limit)
	}
	for i := range f.seeds {
		p.seeds = append(p.seeds, f.seed+uint64(i))
	}
	if f.out != "" {
		if err := checkRunFolder(f.out); err != nil {
			return nil, err
		}
	}
	policies := f.policies
	switch {
	case len(policies) > 0:
	case f.batch == "":
		policies, p.recommended = []string{recommended}, true
	default:
		policies = []string{strings.Join(shownPolicies(), ",")}
	}
	if f.specs, err = parsePolicies(policies); err != nil {
		return nil, err
	}
	if err := loadPolicies(in, f.specs); err != nil {
		return nil, err
	}
	if f.batch == "" && f.cluster+f.kubeconfig+f.context+f.namespace == "" {
		return nil, wrongUse("what to place? give --batch FILE[:row], a CSV with a column a workload")
	}
	if f.batch != "" {
		if p.batch, err = readBatch(in, f.batch); err != nil {
			return nil, err
		}
	}
	if p.source, err = f.sourceFlags.load(in, log); err != nil {
		return nil, err
	}
	c, err := f.clusterFlags.load(in, log, p.source, f.strict)
	if err != nil {
		return nil, err
	}
	switch {
	case p.batch == nil && len(c.Pending) == 0:
		of := ""
		if f.namespace != "" {
			of = " of namespace " + f.namespace
		}
		return nil, wrongUse("what to place? no pod%s waits in --cluster %s; give --batch FILE[:row]", of, f.cluster)
	case p.batch == nil:
		p.batch, p.left = pendingBatch(f.cluster, c.Pending), f.left
	case len(c.Pending) > 0:
		fmt.Fprintf(log, "--cluster: %s that wait in %s are left out: --batch is placed\n", count(len(c.Pending), "group"), f.cluster)
	}
	return p, p.check(f, log, c.Spec)
}

// objectiveHint says what a mistyped objective likely was.
func objectiveHint(text string) string {
	known := place.Measures()
	for part := range strings.SplitSeq(text, ",") {
		if name, _, _ := strings.Cut(part, "="); !slices.Contains(known, name) {
			return didYouMean(name, known)
		}
	}
	return ""
}

// check holds what was read against each other.
func (p *planInput) check(f *planFlags, log io.Writer, spec cluster.Spec) error {
	classes := classesOf(spec.Nodes)
	if err := p.source.checkClasses(classes); err != nil {
		return err
	}
	f.warnDeclared(log, p.source, classes)
	if err := p.source.checkWorkloads(p.batch, classes); err != nil {
		return err
	}
	if err := checkRuleNames(f.constraints, spec.Constraints, p.known(spec, classes)); err != nil {
		return err
	}
	var err error
	if p.snapshot, err = cluster.NewSnapshot(spec); err != nil {
		return fmt.Errorf("%s: %w", f.origin(err), err)
	}
	if err := checkRoom(p.snapshot, p.batch, f.constraints, p.source.most); err != nil {
		if p.batch.waiting == nil {
			return err
		}
		// Pods that wait in a cluster often do so since there is no room: the others
		// are placed all the same.
		fmt.Fprintf(log, "not all can be placed: %s\n", err)
	}
	if len(f.policies) == 0 && !p.source.measured(p.batch, classes) {
		f.specs = slices.DeleteFunc(f.specs, func(s policySpec) bool { return s.name == "measured" })
		fmt.Fprintf(log, "policy measured is left out: %s holds no measurements to plan on\n", p.source.beliefName)
	}
	if p.objective.Traffic != 0 {
		if err := p.checkTraffic(log); err != nil {
			return err
		}
	}
	return p.checkLatency(log)
}

// checkTraffic refuses an objective that edges would have to fill, and names
// those that lead nowhere.
func (p *planInput) checkTraffic(log io.Writer) error {
	there := map[string]int{}
	for i, w := range p.batch.workloads {
		there[w] += p.batch.counts[i]
	}
	for _, r := range p.snapshot.Running() {
		there[r.Workload]++
	}
	return checkEdges(log, p.snapshot.Workloads(), func(w string) int { return there[w] }, p.batch.name)
}

// known lists the workloads that a rule may name.
func (p *planInput) known(spec cluster.Spec, classes []string) []string {
	names := slices.Concat(p.batch.workloads, knownWorkloads(p.source.belief, classes))
	for _, w := range spec.Workloads {
		names = append(names, w.Name)
	}
	for _, r := range spec.Running {
		names = append(names, r.Workload)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// checkLatency names the workloads that p99 leaves out, on every model in
// play, and refuses a batch of nothing else.
func (p *planInput) checkLatency(log io.Writer) error {
	if p.objective.P99 == 0 {
		return nil
	}
	judge, _ := p.source.judge()
	req := p.request(p.batch.groups("workload", 0), 0)
	var left []string
	for _, w := range place.NewTrial(req, judge, 0).Values.WithoutLatency() {
		if i := slices.Index(p.batch.workloads, w); i >= 0 && p.batch.counts[i] > 0 {
			left = append(left, w)
		}
	}
	some := false
	for i, w := range p.batch.workloads {
		some = some || p.batch.counts[i] > 0 && !slices.Contains(left, w)
	}
	if !some {
		return fmt.Errorf("objective p99: no workload of %s has a measured latency; use --objective mean, or samples with latencies", p.batch.name)
	}
	if len(left) > 0 {
		fmt.Fprintf(log, "objective p99: left out for lack of measured latency: %s\n", strings.Join(left, ", "))
	}
	return nil
}

func (p *planInput) request(groups []cluster.Group, seed uint64) place.Request {
	return place.Request{
		View: p.snapshot, Pending: groups, Objective: p.objective,
		Rand: rand.New(rand.NewPCG(seed, streamPolicy)),
	}
}

// bound computes the bound once: it does not depend on the order of tasks.
func (p *planInput) bound(ctx context.Context) (limit limitOf, infeasible, err error) {
	judge, _ := p.source.judge()
	req := p.request(p.batch.groups("workload", 0), p.seeds[0])
	req.Stop = func() bool { return ctx.Err() != nil }
	type result struct {
		limit limitOf
		err   error
	}
	r, err := await(ctx, func() result {
		limit, err := computeBound(req, judge)
		return result{limit, err}
	})
	if err != nil {
		return limitOf{value: math.NaN()}, nil, stopped("nothing was written")
	}
	if isInfeasible(r.err) {
		return limitOf{value: math.NaN()}, r.err, nil
	}
	return r.limit, nil, r.err
}

// failure is a policy that gave no valid plan.
type failure struct {
	policy string
	seed   uint64
	err    error
}

// open makes the policies. Programs start when they are first asked.
func (p *planInput) open(ctx context.Context, f *planFlags, log io.Writer) error {
	options := policyOptions{model: p.source.belief, timeLimit: f.limit, explain: f.explain, pessimism: p.careful(log, f.specs)}
	for _, spec := range f.specs {
		policy, closePolicy, err := openPolicy(ctx, spec, options)
		if err != nil {
			return err
		}
		p.policies = append(p.policies, opened{spec.text, policy, closePolicy})
	}
	return nil
}

func (p *planInput) run(ctx context.Context, f *planFlags, limit limitOf, bar *progress) (plans []plan, failures []failure) {
	for i, o := range p.policies {
		for j, seed := range p.seeds {
			bar.at(1+i*len(p.seeds)+j, o.name)
			req := p.request(p.batch.groups(f.order, seed), seed)
			r, err := p.plan(ctx, f, o, req, limit)
			if err != nil {
				failures = append(failures, failure{o.name, seed, err})
				break
			}
			r.Seed = seed
			plans = append(plans, r)
		}
		o.close()
		if ctx.Err() != nil {
			return nil, nil
		}
	}
	return plans, failures
}

// plan asks one policy and judges what it says.
func (p *planInput) plan(ctx context.Context, f *planFlags, o opened, req place.Request, limit limitOf) (plan, error) {
	d, seconds, err := decide(ctx, o.policy, req, f.limit)
	if err != nil {
		return plan{}, err
	}
	judge, on := p.source.judge()
	r := plan{
		Policy: o.name, Nodes: len(p.snapshot.Nodes()), Tasks: p.batch.tasks(), Objective: p.objective.String(),
		ValueTrue: number(math.NaN()), Bound: number(limit.value), BoundOn: on, Proven: limit.proven,
		Seconds: number(seconds), Held: d.Hold, limit: limit, decision: d, request: req,
	}
	predicted, err := place.Evaluate(req, d, p.source.belief)
	if err != nil {
		return plan{}, fmt.Errorf("its decision is invalid: %w", err)
	}
	judged := predicted
	if judge != p.source.belief {
		if judged, err = place.Evaluate(req, d, judge); err != nil {
			return plan{}, fmt.Errorf("its decision is invalid: %w", err)
		}
	}
	r.ValuePredicted = number(predicted.Value)
	if p.source.truth != nil {
		r.ValueTrue = number(judged.Value)
	}
	r.Share = number(p.objective.Share(judged.Value, limit.value))
	if p.objective.Traffic != 0 {
		near := number(judged.Near)
		r.Traffic = &near
	}
	r.Unknown = judged.Unknown
	nodes, workloads := p.snapshot.Nodes(), judged.Placement.Workloads()
	r.Placement = []nodePlan{}
	for i := range nodes {
		c := cluster.Colocation{}
		for w, n := range judged.Placement.Counts(i) {
			if n > 0 {
				c[workloads[w]] = n
			}
		}
		if len(c) > 0 {
			r.Placement = append(r.Placement, nodePlan{nodes[i].Name, c})
		}
	}
	if f.explain {
		r.Why = p.explain(&r)
	}
	if p.batch.waiting != nil {
		r.Pods = p.podsOf(&r)
	}
	return r, nil
}

// decide runs the policy, and gives up on it when ctx is done.
func decide(ctx context.Context, policy place.Policy, req place.Request, limit time.Duration) (place.Decision, float64, error) {
	type result struct {
		d       place.Decision
		seconds float64
		err     error
	}
	begin := time.Now()
	req.Stop = func() bool {
		return ctx.Err() != nil || limit > 0 && time.Since(begin) > limit
	}
	r, err := await(ctx, func() result {
		d, err := policy.Place(req)
		return result{d, time.Since(begin).Seconds(), err}
	})
	if err != nil {
		return place.Decision{}, 0, err
	}
	return r.d, r.seconds, r.err
}

// outcome says on log what went wrong, and is an error if anything did.
func (p *planInput) outcome(log io.Writer, plans []plan, failures []failure) error {
	held := 0
	for _, r := range plans {
		p.warnLarger(log, &r)
		if len(r.Unknown) > 0 {
			fmt.Fprintf(log, "%s, seed %d: no value: nobody measured %s; %s\n", r.Policy, r.Seed, some(r.Unknown, 3), p.source.unmeasured())
		}
		if len(r.Held) == 0 {
			continue
		}
		held++
		byWhy := map[string][]string{}
		var whys []string
		for _, h := range r.Held {
			if byWhy[h.Why] == nil {
				whys = append(whys, h.Why)
			}
			byWhy[h.Why] = append(byWhy[h.Why], string(h.Task))
		}
		for _, why := range whys {
			fmt.Fprintf(log, "%s, seed %d: %d of %s not placed: %s: %s\n", r.Policy, r.Seed, len(byWhy[why]), count(r.Tasks, "task"), some(byWhy[why], 8), why)
		}
	}
	for at := 0; at < len(plans); {
		same := samePolicy(plans[at:])
		at += len(same)
		silent := 0
		for _, r := range same {
			if len(r.Unknown) > 0 {
				silent++
			}
		}
		if silent > 0 && silent < len(same) {
			fmt.Fprintf(log, "%s: the mean value is over %d of %d seeds: the others have none\n", same[0].Policy, len(same)-silent, len(same))
		}
	}
	for _, f := range failures {
		fmt.Fprintf(log, "%s, seed %d: failed: %s\n", f.policy, f.seed, f.err)
	}
	switch {
	case len(failures) > 0:
		return fmt.Errorf("%d of the policies failed", len(failures))
	case held == 1 && len(plans) == 1:
		return errors.New("the plan had to leave tasks unplaced")
	case held > 0:
		return fmt.Errorf("%d of %d plans leave tasks unplaced", held, len(plans))
	}
	return nil
}

// some lists the first names and counts the others.
func some(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
