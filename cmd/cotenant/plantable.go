package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
)

// write prints the plans and, with --out, writes them.
func (f *planFlags) write(cmd *cobra.Command, in *inputs, p *planInput, plans []plan) error {
	var text bytes.Buffer
	var err error
	switch f.output {
	case "json":
		err = writeJSON(&text, plans)
	case "yaml":
		err = writeYAML(&text, plans)
	case "csv":
		header, rows := planRows(plans)
		err = writeCSV(&text, header, rows)
	default:
		if p.batch.waiting != nil && len(plans) == 1 {
			err = p.writePods(&text, &plans[0], f.explain)
			break
		}
		err = p.writeTables(&text, plans, f.explain)
		if p.batch.waiting != nil {
			fmt.Fprintln(&text, "where the pods go: name one policy, or -o json, which has it of all")
		}
	}
	if err != nil {
		return err
	}
	if f.out != "" {
		if err := f.writeFiles(cmd, in, p, plans); err != nil {
			return err
		}
	}
	_, err = cmd.OutOrStdout().Write(text.Bytes())
	return err
}

func (f *planFlags) writeFiles(cmd *cobra.Command, in *inputs, p *planInput, plans []plan) error {
	header, rows := planRows(plans)
	summary, err := csvFile("plans.csv", header, rows)
	if err != nil {
		return err
	}
	header, rows = decisionRows(plans)
	decisions, err := csvFile("decisions.csv", header, rows)
	if err != nil {
		return err
	}
	return writeRun(f.out, newManifest(cmd, p.seeds, in), []outFile{summary, decisions})
}

// planRows is the plans as a flat table, a row a plan.
func planRows(plans []plan) (header []string, rows [][]string) {
	header = []string{"policy", "seed", "nodes", "tasks", "held", "objective", "value_predicted", "value_true", "bound", "bound_on", "proven", "share", "seconds"}
	for _, r := range plans {
		rows = append(rows, []string{
			r.Policy, strconv.FormatUint(r.Seed, 10), strconv.Itoa(r.Nodes), strconv.Itoa(r.Tasks), strconv.Itoa(len(r.Held)), r.Objective,
			r.ValuePredicted.exact(), r.ValueTrue.exact(), r.Bound.exact(), r.BoundOn, strconv.FormatBool(r.Proven), r.Share.exact(), r.Seconds.exact(),
		})
	}
	if len(plans) > 0 && plans[0].Traffic != nil {
		header = append(header, "traffic")
		for i := range rows {
			rows[i] = append(rows[i], plans[i].Traffic.exact())
		}
	}
	return header, rows
}

// decisionRows has a row for each task of each plan; node is empty where it
// was held.
func decisionRows(plans []plan) (header []string, rows [][]string) {
	header = []string{"policy", "seed", "task", "workload", "node", "why"}
	for i := range plans {
		r := &plans[i]
		node := map[cluster.TaskID]string{}
		why := map[cluster.TaskID]string{}
		for _, b := range r.decision.Bind {
			node[b.Task] = b.Node
			why[b.Task] = r.decision.Why[b.Task].Words
		}
		for _, h := range r.decision.Hold {
			why[h.Task] = h.Why
		}
		for _, t := range r.request.Tasks() {
			rows = append(rows, []string{r.Policy, strconv.FormatUint(r.Seed, 10), string(t.ID), t.Workload, node[t.ID], why[t.ID]})
		}
	}
	return header, rows
}

// writeTables prints a line a policy, and with explain the reasons.
func (p *planInput) writeTables(w io.Writer, plans []plan, explain bool) error {
	if len(plans) == 0 {
		return nil
	}
	first := plans[0]
	better := "higher is better"
	if p.objective.Minimises() {
		better = "lower is better"
	}
	running := ""
	switch n := len(p.snapshot.Running()); n {
	case 0:
	case 1:
		running = " and 1 that runs"
	default:
		running = fmt.Sprintf(" and %d that run", n)
	}
	fmt.Fprintf(w, "%s of %s%s on %s, %s; the bound is on the %s\n%s",
		measureWords(p.objective), count(first.Tasks, "task"), running, count(first.Nodes, "node"), better, first.BoundOn, first.leftOut())
	if len(p.seeds) > 1 {
		fmt.Fprintf(w, "mean +- standard deviation over %d seeds, %d to %d\n", len(p.seeds), p.seeds[0], p.seeds[len(p.seeds)-1])
	}
	decimals := 4
	if p.objective.Or() == place.NodesUsed && len(p.seeds) == 1 {
		decimals = 0
	}
	both := p.source.truth != nil && p.source.truth != p.source.belief
	header := []string{"policy", " value", " bound", "proven", " share", " seconds"}
	if both {
		header = slices.Insert(header, 1, " predicted")
	}
	if p.objective.Traffic != 0 {
		header = append(header, " traffic")
	}
	var rows [][]string
	for at := 0; at < len(plans); {
		same := samePolicy(plans[at:])
		at += len(same)
		judged := func(r plan) number {
			if r.BoundOn == "truth" {
				return r.ValueTrue
			}
			return r.ValuePredicted
		}
		row := []string{
			same[0].Policy, spreadOf(same, judged, decimals), same[0].Bound.text(decimals), yesNo(same[0]),
			spreadOf(same, func(r plan) number { return r.Share }, 4),
			spreadOf(same, func(r plan) number { return r.Seconds }, 4),
		}
		if both {
			row = slices.Insert(row, 1, spreadOf(same, func(r plan) number { return r.ValuePredicted }, decimals))
		}
		if p.objective.Traffic != 0 {
			row = append(row, spreadOf(same, func(r plan) number { return *r.Traffic }, 4))
		}
		rows = append(rows, row)
	}
	if err := writeTable(w, header, rows); err != nil {
		return err
	}
	if explain {
		for i := range plans {
			p.writeReasons(w, &plans[i])
		}
	}
	return nil
}

// leftOut says what the bound is silent about: where samples hold a part of
// what nodes could hold, a placement beyond it may be better than proven.
func (r *plan) leftOut() string {
	if !r.Bound.known() || r.limit.silent == 0 {
		return ""
	}
	who := "nobody measured"
	if r.BoundOn != "truth" {
		who = "the model is silent about"
	}
	return fmt.Sprintf("%s %d of the %d co-locations that nodes could hold; a plan with one of them may be better than the bound\n", who, r.limit.silent, r.limit.options)
}

func measureWords(o place.Objective) string {
	switch o.Or() {
	case place.MeanPerformance:
		return "mean performance (1 = alone)"
	case place.WorstPerformance:
		return "worst performance (1 = alone)"
	case place.TailLatency:
		return "mean p99 latency (1 = alone)"
	case place.NodesUsed:
		return "nodes used"
	case place.NearTraffic:
		return "near traffic (1 = all of every task's stays on its node)"
	}
	return "objective " + o.String()
}

func yesNo(r plan) string {
	switch {
	case !r.Bound.known():
		return "-"
	case r.Proven:
		return "yes"
	}
	return "no"
}

// samePolicy is the plans at the beginning that are of one policy.
func samePolicy(plans []plan) []plan {
	n := slices.IndexFunc(plans, func(r plan) bool { return r.Policy != plans[0].Policy })
	if n < 0 {
		return plans
	}
	return plans[:n]
}

// spreadOf is a number over the plans that have it: itself for one, mean +- sd
// for more, "-" where none has.
func spreadOf(plans []plan, of func(plan) number, decimals int) string {
	var known []float64
	sum := 0.0
	for _, r := range plans {
		if v := of(r); v.known() {
			known = append(known, float64(v))
			sum += float64(v)
		}
	}
	n := float64(len(known))
	mean := sum / n
	switch len(known) {
	case 0:
		return "-"
	case 1:
		return number(mean).text(decimals)
	}
	square := 0.0
	for _, v := range known {
		d := v - mean
		square += d * d
	}
	return number(mean).text(decimals) + " +- " + number(math.Sqrt(square/(n-1))).text(decimals)
}

// whyTask is the account of one task of a plan.
type whyTask struct {
	Task   cluster.TaskID    `json:"task"`
	Node   string            `json:"node,omitempty"`
	Words  string            `json:"words"`
	Scores map[string]number `json:"scores,omitempty"`
}

// explain accounts for every task of a plan, in the order in which they came.
// Where the policy gave no reason, what the task ends up with is said.
func (p *planInput) explain(r *plan) []whyTask {
	node := map[cluster.TaskID]string{}
	for _, b := range r.decision.Bind {
		node[b.Task] = b.Node
	}
	held := map[cluster.TaskID]string{}
	for _, h := range r.decision.Hold {
		held[h.Task] = h.Why
	}
	with := map[string]cluster.Colocation{}
	for _, n := range r.Placement {
		with[n.Node] = n.Colocation
	}
	out := make([]whyTask, 0, r.Tasks)
	for _, t := range r.request.Tasks() {
		w := whyTask{Task: t.ID, Node: node[t.ID], Words: held[t.ID]}
		if w.Node != "" {
			why := r.decision.Why[t.ID]
			w.Words = why.Words
			if w.Words == "" {
				w.Words = p.endsUp(w.Node, t.Workload, with[w.Node])
			}
			for name, s := range why.Scores {
				if w.Scores == nil {
					w.Scores = map[string]number{}
				}
				w.Scores[name] = number(s)
			}
		}
		out = append(out, w)
	}
	return out
}

// endsUp says what a task ends up with, as the policy believed.
func (p *planInput) endsUp(node, workload string, c cluster.Colocation) string {
	i, _ := p.snapshot.NodeIndex(node)
	words := p.performances(p.source.belief, p.snapshot.Nodes()[i].Class, c)[workload]
	return fmt.Sprintf("part of a plan made as a whole: in %s it has performance %s", c.Key(), words)
}

func (p *planInput) writeReasons(w io.Writer, r *plan) {
	fmt.Fprintf(w, "\n%s, seed %d: why\n", r.Policy, r.Seed)
	for _, t := range r.Why {
		where := "held"
		if t.Node != "" {
			where = t.Node
		}
		fmt.Fprintf(w, "  %s: %s: %s\n", t.Task, where, t.Words)
	}
	fmt.Fprintf(w, "%s, seed %d: co-locations\n", r.Policy, r.Seed)
	judge, _ := p.source.judge()
	type line struct {
		nodes int
		text  string
	}
	lines := map[string]*line{}
	for _, n := range r.Placement {
		i, _ := p.snapshot.NodeIndex(n.Node)
		class := p.snapshot.Nodes()[i].Class
		key := class + " " + n.Colocation.Key()
		if lines[key] == nil {
			by := p.performances(judge, class, n.Colocation)
			var parts []string
			for _, name := range n.Colocation.Workloads() {
				parts = append(parts, name+" "+by[name])
			}
			lines[key] = &line{text: strings.TrimSpace(key) + ": " + strings.Join(parts, ", ")}
		}
		lines[key].nodes++
	}
	sorted := make([]*line, 0, len(lines))
	for _, l := range lines {
		sorted = append(sorted, l)
	}
	slices.SortFunc(sorted, func(a, b *line) int {
		if a.nodes != b.nodes {
			return b.nodes - a.nodes
		}
		return strings.Compare(a.text, b.text)
	})
	for _, l := range sorted {
		fmt.Fprintf(w, "  %d x %s\n", l.nodes, l.text)
	}
	if empty := r.Nodes - len(r.Placement); empty > 0 {
		fmt.Fprintf(w, "  %d x nothing\n", empty)
	}
}

// performances is the performance of each workload of a co-location in words.
func (p *planInput) performances(m interference.Model, class string, c cluster.Colocation) map[string]string {
	out := map[string]string{}
	for w, e := range estimates(m, class, c) {
		switch {
		case !e.Known:
			out[w] = "unknown"
		case e.Measured:
			out[w] = number(e.Value).text(3)
		default:
			out[w] = number(e.Value).text(3) + " (predicted)"
		}
	}
	return out
}
