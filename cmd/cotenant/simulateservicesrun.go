package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"sync/atomic"
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
}

func (f *servicesFlags) run(cmd *cobra.Command) error {
	in := &inputs{stdin: cmd.InOrStdin()}
	ctx, log := cmd.Context(), cmd.ErrOrStderr()
	d, err := f.read(cmd, in, log)
	if err != nil {
		return err
	}
	runs := d.runAll(ctx, log, f.out != "")
	if ctx.Err() != nil {
		return stopped("nothing was written")
	}
	if f.out != "" {
		files, err := servicesFiles(d, runs)
		if err != nil {
			return err
		}
		if err := writeRun(f.out, newManifest(cmd, d.seeds, in), files); err != nil {
			return err
		}
	}
	if err := d.write(cmd, f.output, runs); err != nil {
		return err
	}
	return servicesVerdict(log, runs)
}

// runAll runs every policy with every seed, policy by policy, with the seeds
// side by side.
func (d *dynamic) runAll(ctx context.Context, log io.Writer, record bool) []*servicesRun {
	bar := newProgress(log, "simulate services", len(d.specs)*len(d.seeds))
	defer bar.end()
	bar.at(0, "the first")
	runs := make([]*servicesRun, len(d.specs)*len(d.seeds))
	var done atomic.Int64
	parallel(len(d.seeds), func(i int) {
		judge := &services.Judge{Cluster: d.spec, Truth: d.config.Truth, Stop: func() bool { return ctx.Err() != nil }}
		for p, spec := range d.specs {
			r := &servicesRun{policy: spec.text, seed: d.seeds[i]}
			runs[p*len(d.seeds)+i] = r
			r.err = d.play(ctx, spec, judge, r, record)
			bar.at(int(done.Add(1)), fmt.Sprintf("%s, seed %d", spec.text, r.seed))
		}
	})
	return runs
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

func (d *dynamic) rows(runs []*servicesRun) []servicesRow {
	_, on := d.source.judge()
	rows := make([]servicesRow, len(runs))
	none := number(math.NaN())
	for i, r := range runs {
		row := servicesRow{
			Policy: r.policy, Seed: r.seed, Nodes: len(d.spec.Nodes), Slots: d.stream.Capacity, Load: d.stream.Load, BoundOn: on,
			Performance: none, Wanted: none, Value: none, Bound: none, Share: none, Served: none, Replanned: none, Running: none, Waiting: none,
			MeanWait: none, MaxWait: none, Skewed: none, SecondsPlacing: number(r.seconds),
		}
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
