package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"math"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/sim/services"
)

// servicesRun is what one policy did with one seed.
type servicesRun struct {
	policy    string
	seed      uint64
	result    services.Result
	verdict   services.Verdict
	seconds   float64
	decisions bytes.Buffer // CSV without a header
	err       error
	kept      *keptRun // in place of result and verdict, where an earlier command ran it
}

func (f *servicesFlags) run(cmd *cobra.Command) error {
	in := &inputs{stdin: cmd.InOrStdin()}
	ctx, log := cmd.Context(), cmd.ErrOrStderr()
	var d *dynamic
	failed, err := await(ctx, func() (err error) { d, err = f.read(cmd, in, log); return err })
	if err != nil {
		return stopped("nothing was written")
	}
	if failed != nil {
		return failed
	}
	m := newManifest(cmd, d.seeds, in)
	before, err := d.readKept(f.out, m, log)
	if err != nil {
		return err
	}
	if err := d.checkPolicies(ctx); err != nil {
		return err
	}
	runs := d.runAll(ctx, log, f.out != "", before.runs)
	m.Unfinished = len(d.specs)*len(d.seeds) - len(runs)
	if len(runs) == 0 {
		return stopped("nothing was written")
	}
	write := f.out != "" && (m.Unfinished == 0 || !before.other)
	if write {
		files, err := servicesFiles(d, runs)
		if err != nil {
			return err
		}
		if err := writeRun(f.out, m, files); err != nil {
			return err
		}
	}
	if err := d.write(cmd, f.output, runs); err != nil {
		return err
	}
	err = servicesVerdict(log, runs)
	if m.Unfinished == 0 {
		return err
	}
	said := fmt.Sprintf("%d of %d runs finished", len(runs), len(runs)+m.Unfinished)
	switch {
	case write:
		return stopped("%s and are in %s; the same command goes on from there", said, f.out)
	case f.out != "":
		return stopped("%s and are shown, not written: %s keeps the other run in it", said, f.out)
	}
	return stopped("%s and are shown; with --out DIR, the same command would go on from there", said)
}

// checkPolicies makes every policy once: what is wrong with a parameter is said
// before anything was simulated. Programs start when they are first asked.
func (d *dynamic) checkPolicies(ctx context.Context) error {
	for _, spec := range d.specs {
		_, closePolicy, err := openPolicy(ctx, spec, policyOptions{model: d.source.belief})
		if err != nil {
			return err
		}
		closePolicy()
	}
	if d.replan == nil {
		return nil
	}
	_, _, err := openPolicy(ctx, *d.replan, policyOptions{model: d.config.Truth})
	return underFlag("replan", err)
}

// runAll runs every policy with every seed, policy by policy, with the seeds
// side by side, but for those that were run before. When interrupted, it returns
// those that finished.
func (d *dynamic) runAll(ctx context.Context, log io.Writer, record bool, before map[runKey]*servicesRun) []*servicesRun {
	bar := newProgress(log, "simulate services", len(d.specs)*len(d.seeds))
	defer bar.end()
	bar.at(len(before), "the first")
	var mu sync.Mutex
	runs := maps.Clone(before)
	over := false // what still runs is left behind
	play := func(i int) {
		judge := &services.Judge{Cluster: d.spec, Truth: d.config.Truth, Stop: func() bool { return ctx.Err() != nil }}
		for _, spec := range d.specs {
			key := runKey{spec.text, d.seeds[i]}
			if before[key] != nil {
				continue
			}
			r := &servicesRun{policy: spec.text, seed: d.seeds[i]}
			r.err = d.play(ctx, spec, judge, r, record)
			mu.Lock()
			// A run may have been cut short, though it ended: a search that is
			// told to stop decides by what it has.
			if over = over || ctx.Err() != nil; !over {
				runs[key] = r
				bar.at(len(runs), fmt.Sprintf("%s, seed %d", spec.text, r.seed))
			}
			mu.Unlock()
		}
	}
	// Without the interruption there is no error.
	_, _ = await(ctx, func() any { parallel(len(d.seeds), play); return nil })
	mu.Lock()
	defer mu.Unlock()
	over = true
	var finished []*servicesRun
	for _, spec := range d.specs {
		for _, seed := range d.seeds {
			if r := runs[runKey{spec.text, seed}]; r != nil {
				finished = append(finished, r)
			}
		}
	}
	return finished
}

// timed adds up the seconds that a policy takes.
type timed struct {
	place.Policy
	seconds float64
}

func (t *timed) Place(req place.Request) (place.Decision, error) {
	begin := time.Now()
	d, err := t.Policy.Place(req)
	t.seconds += time.Since(begin).Seconds()
	return d, err
}

// play runs a policy with a seed and judges it.
func (d *dynamic) play(ctx context.Context, spec policySpec, judge *services.Judge, r *servicesRun, record bool) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	options := policyOptions{model: d.source.belief, timeLimit: d.limit}
	policy, closePolicy, err := openPolicy(ctx, spec, options)
	if err != nil {
		return err
	}
	defer closePolicy()
	if d.replan != nil && judge.Replan == nil {
		options.model = d.config.Truth
		if judge.Replan, _, err = openPolicy(ctx, *d.replan, options); err != nil {
			return err
		}
	}
	c := d.config
	watch := &timed{Policy: policy}
	c.Policy, c.Name, c.Seed = watch, spec.text, r.seed
	c.Stop = func() bool { return ctx.Err() != nil }
	if c.Arrivals, err = d.stream.Draw(r.seed); err != nil {
		return err
	}
	if record {
		lines := csv.NewWriter(&r.decisions)
		c.Decided = func(req place.Request, decision place.Decision) {
			// A buffer fails at nothing.
			_ = lines.Write(decisionCells(spec.text, r.seed, req, decision))
			lines.Flush()
		}
	}
	r.result, err = services.Run(c)
	r.seconds = watch.seconds
	if err != nil {
		return err
	}
	r.verdict, err = judge.Judge(&r.result)
	return err
}

// servicesVerdict says on log what went wrong, and is an error if anything did.
func servicesVerdict(log io.Writer, runs []*servicesRun) error {
	failed := 0
	for _, r := range runs {
		if r.err != nil {
			failed++
			fmt.Fprintf(log, "%s, seed %d: failed: %s\n", r.policy, r.seed, r.err)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d runs failed", failed, len(runs))
	}
	return nil
}

// servicesRow is an object of -o json.
type servicesRow struct {
	Policy         string  `json:"policy"`
	Seed           uint64  `json:"seed"`
	Nodes          int     `json:"nodes"`
	Slots          int     `json:"slots"`
	Load           float64 `json:"load"`
	Performance    number  `json:"performance"`
	Wanted         number  `json:"performance_wanted"`
	Value          number  `json:"value"`
	Bound          number  `json:"bound"`
	BoundOn        string  `json:"bound_on"`
	Proven         bool    `json:"proven"`
	Share          number  `json:"share"`
	Served         number  `json:"share_wanted"`
	Replanned      number  `json:"share_replanned"`
	Traffic        *number `json:"traffic,omitempty"` // where the objective counts it
	Running        number  `json:"mean_running"`
	Waiting        number  `json:"mean_waiting"`
	MostWaiting    int     `json:"most_waiting"`
	Arrived        int     `json:"tasks_arrived"`
	Waited         int     `json:"tasks_waited"`
	MeanWait       number  `json:"mean_wait_s"`
	MaxWait        number  `json:"max_wait_s"`
	Decisions      int     `json:"decisions"`
	Placed         int     `json:"placed"`
	Moved          int     `json:"moved"`
	Failures       int     `json:"failures"`
	Displaced      int     `json:"displaced"`
	Skewed         number  `json:"skewed"`
	Violations     int     `json:"violations"`
	SecondsPlacing number  `json:"seconds"`
	Error          string  `json:"error,omitempty"`
}

// emptyRow is a row with what all have in common.
func (d *dynamic) emptyRow() servicesRow {
	_, on := d.source.judge()
	none := number(math.NaN())
	return servicesRow{
		Nodes: len(d.spec.Nodes), Slots: d.stream.Capacity, Load: d.stream.Load, BoundOn: on,
		Performance: none, Wanted: none, Value: none, Bound: none, Share: none, Served: none, Replanned: none, Running: none, Waiting: none,
		MeanWait: none, MaxWait: none, Skewed: none,
	}
}

func (d *dynamic) rows(runs []*servicesRun) []servicesRow {
	rows := make([]servicesRow, len(runs))
	none := number(math.NaN())
	for i, r := range runs {
		if r.kept != nil {
			rows[i] = r.kept.row
			continue
		}
		row := d.emptyRow()
		row.Policy, row.Seed, row.SecondsPlacing = r.policy, r.seed, number(r.seconds)
		if d.config.Objective.Traffic != 0 {
			near := none
			if r.err == nil {
				near = number(r.result.Near())
			}
			row.Traffic = &near
		}
		if r.err != nil {
			row.Error = r.err.Error()
			rows[i] = row
			continue
		}
		x, v := &r.result, &r.verdict
		row.Performance, row.Wanted = number(x.Performance), number(x.Served)
		row.Value, row.Bound, row.Proven = number(v.Value), number(v.Bound), v.Proven
		row.Share, row.Served, row.Replanned = number(v.Share), number(v.Served), number(v.Replanned/v.Bound)
		if d.replan == nil {
			row.Replanned = none
		}
		row.Running, row.Waiting, row.MostWaiting = number(x.Running), number(x.Waiting), x.MostWaiting
		row.Arrived, row.Waited, row.MeanWait, row.MaxWait = x.Arrived, x.Waited, number(x.MeanWait), number(x.MaxWait)
		row.Decisions, row.Placed, row.Moved = x.Decisions, x.Placed, x.Moved
		row.Failures, row.Displaced, row.Skewed, row.Violations = x.Failures, x.Displaced, number(x.Skewed), x.Violations
		rows[i] = row
	}
	return rows
}
