package main

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/report"
	"github.com/cotenant/cotenant/sim/compare"
)

// writeReport writes the page of --report.
func (f *simulateFlags) writeReport(cmd *cobra.Command, s *simulation, w *watched, outcomes []compare.Outcome) error {
	page := s.page(w, outcomes)
	page.Title, page.Created, page.Command, page.Facts = "Jobs by several policies", time.Now(), commandLine(cmd), s.facts(f)
	var b bytes.Buffer
	if err := report.WriteSimulation(&b, page); err != nil {
		return err
	}
	if err := writeFile(f.report, b.Bytes()); err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	return nil
}

// page is what came of the runs, for a page.
func (s *simulation) page(w *watched, outcomes []compare.Outcome) report.Simulation {
	rows := compare.Rows(outcomes)
	page := report.Simulation{Seeds: len(s.Seeds), Bound: rows[0].Bound, Sharing: "a device"}
	if s.World.Scope == history.ScopeNode {
		page.Sharing = "a node"
	}
	used := map[string]bool{}
	for _, r := range rows {
		if run := w.runs[runKey{r.Spec.Text, w.first}]; run != nil {
			for _, b := range run.beside.Pairs() {
				used[b.A], used[b.B] = true, true
			}
		}
	}
	for name := range used {
		page.Workloads = append(page.Workloads, name)
	}
	slices.Sort(page.Workloads)
	if s.World.Table != nil {
		page.True = s.matrix(s.World.Table, page.Workloads)
	}
	if m := s.believed(); m != nil && m != s.World.Table {
		page.Believed = s.matrix(m, page.Workloads)
	}
	for _, r := range rows {
		page.Policies = append(page.Policies, w.simulated(r, outcomes, page.Workloads, s.World.Scope))
	}
	return page
}

// commandLine is the command with the flags that were given, but for some.
func commandLine(cmd *cobra.Command, without ...string) string {
	line := cmd.CommandPath()
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if slices.Contains(without, f.Name) {
			return
		}
		value := f.Value.String()
		if list, ok := f.Value.(pflag.SliceValue); ok {
			value = strings.Join(list.GetSlice(), ",")
		}
		line += " --" + f.Name
		switch {
		case f.Value.Type() == "bool" && value == "true" || f.NoOptDefVal == value:
		case strings.ContainsAny(value, " \t'\"") || value == "":
			line += "=" + strconv.Quote(value)
		default:
			line += "=" + value
		}
	})
	return line
}

// believed is the model that the policies which learn believed with the first
// seed; nil where none did.
func (s *simulation) believed() interference.Model {
	for _, spec := range s.Specs {
		if m := s.Model(spec, s.Seeds[0]); m != nil && !spec.Truth && m.Kind() != interference.KindLinear {
			return m
		}
	}
	return nil
}

// matrix is the performance of each workload beside each other on the class of
// reference.
func (s *simulation) matrix(m interference.Model, names []string) [][]float64 {
	out := make([][]float64, len(names))
	class := place.ModelClass(m, s.World.Reference())
	for i, a := range names {
		out[i] = make([]float64, len(names))
		pairs := make([]cluster.Colocation, len(names))
		for j, b := range names {
			pairs[j] = cluster.Colocation{a: 1}
			pairs[j][b]++
		}
		for j, row := range m.Predict(class, history.Rate, pairs) {
			e := row[slices.Index(pairs[j].Workloads(), a)]
			out[i][j] = e.Value
			if !e.Known {
				out[i][j] = math.NaN()
			}
		}
	}
	return out
}

// facts say what was run.
func (s *simulation) facts(f *simulateFlags) []report.Fact {
	jobs := fmt.Sprintf("%d drawn at load %g, seeds %d to %d", f.jobs, f.load, s.Seeds[0], s.Seeds[len(s.Seeds)-1])
	if s.trace != nil {
		jobs = fmt.Sprintf("%d of the trace %s; skipped: %d; sizes scaled: %d", len(s.trace.Jobs), f.trace, s.skipped, s.trace.Scaled)
	}
	speeds := f.world.throughputs
	if speeds == "" {
		speeds = fmt.Sprintf("a model of contention (%s), strength %g", f.world.contention, f.world.strength)
	}
	rules := []string{"decisions at arrivals and completions"}
	if f.interval > 0 {
		rules[0] = "decisions every " + f.interval.String()
	}
	for _, o := range []struct {
		on   bool
		text string
	}{
		{f.backfill, "backfill"},
		{!f.backfill, "no backfill"},
		{f.priorities, "by priority"},
		{s.Options.Migrate.On, "moves at " + f.migrate.String()},
		{s.Options.Scale.On, "resizes at " + f.scale.String() + ", within " + f.elastic + " times the workers"},
		{f.stale > 0, "views " + f.stale.String() + " old"},
		{f.mtbf > 0, "a node fails every " + f.mtbf.String() + ", repaired in " + f.repair.String()},
		{f.jobFailures > 0, fmt.Sprintf("%g of the runs of jobs fail", f.jobFailures)},
		{f.online, "policies learn online"},
	} {
		if o.on {
			rules = append(rules, o.text)
		}
	}
	return []report.Fact{
		{Name: "Nodes", Text: cmp.Or(f.world.nodes, testbed)},
		{Name: "Jobs", Text: jobs},
		{Name: "Speeds", Text: speeds},
		{Name: "Known beforehand", Text: fmt.Sprintf("%.0f %% of the measured co-locations, and a %s model", 100*f.observed, f.modelKind)},
		{Name: "Rules", Text: strings.Join(rules, ", ")},
	}
}

// simulated is one policy's part of the page.
func (w *watched) simulated(r compare.Row, outcomes []compare.Outcome, workloads []string, scope history.Scope) report.Simulated {
	p := report.Simulated{
		Name: r.Spec.Text, Ratio: r.Ratio, RatioError: r.RatioError, Closed: r.Closed, ClosedError: r.ClosedError,
		Mean: r.MeanJCT, Median: r.MedianJCT, P95: r.P95JCT, LongestWait: r.MaxWait,
	}
	for _, o := range outcomes {
		if o.Spec.Text != r.Spec.Text {
			continue
		}
		if o.Err != nil {
			p.Error = o.Err.Error()
		}
		for i := range o.Result.Jobs {
			if t := o.Result.Jobs[i].JCT(); t > 0 {
				p.JCTs = append(p.JCTs, t.Seconds())
			}
		}
	}
	run := w.runs[runKey{r.Spec.Text, w.first}]
	if run == nil {
		return p
	}
	for _, q := range run.queue.Steps {
		p.Queue = append(p.Queue, report.QueueStep{From: q.From.Seconds(), Queued: q.Queued})
	}
	span := cluster.SpanDevice
	if scope == history.ScopeNode {
		span = cluster.SpanNode
	}
	for _, b := range run.beside.Pairs() {
		if b.Scope == span {
			p.Beside = append(p.Beside, report.BesideHours{A: slices.Index(workloads, b.A), B: slices.Index(workloads, b.B), Hours: b.Seconds / 3600})
		}
	}
	return p
}
