package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/history/prometheus"
)

// prometheusFlags are the flags of `import prometheus`, as given.
type prometheusFlags struct {
	config, server              string
	since, from, to             string
	step, window, settle, class string
	out, output                 string
	merge, strict               bool
	now                         func() time.Time
}

func importPrometheus() *cobra.Command {
	f := &prometheusFlags{now: time.Now}
	cmd := &cobra.Command{
		Use: "prometheus", Short: "a cluster's own measurements: a PromQL query for each workload, placement from kube-state-metrics", Args: cobra.NoArgs,
		Long: `Read samples from a Prometheus server: how fast each workload's pods were, by the
queries of --config, and with whom they shared their node, by kube-state-metrics. A
sample is a window of time in which the pods on a node stayed the same, and had for
a while before.

Work that is broken off goes on where it was: what was read is kept in OUT.partial
until all of it is in OUT. docs/formats.md ("Prometheus") describes the
configuration, and what is left out.`,
		Example: `  cotenant import prometheus --config queries.yaml --server http://127.0.0.1:9090 --since 7d --out samples.jsonl
  cotenant import prometheus --config queries.yaml --from 2026-01-02T00:00:00Z --to 2026-01-03T00:00:00Z --out history.db`,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.config, "config", "", "`FILE` with the queries (YAML or JSON)")
	fl.StringVar(&f.server, "server", "", "`address` of Prometheus (default: as --config says)")
	fl.StringVar(&f.since, "since", "", "read the `time` until now, such as 24h or 7d (default 24h)")
	fl.StringVar(&f.from, "from", "", "`time` from which to read, such as 2026-01-02T00:00:00Z")
	fl.StringVar(&f.to, "to", "", "`time` until which to read (default: now)")
	fl.StringVar(&f.step, "step", "", "`time` between two values (default: as --config says, else 30s)")
	fl.StringVar(&f.window, "window", "", "`time` of a sample (default: as --config says, else 5m)")
	fl.StringVar(&f.settle, "settle", "", "`time` for which a node's pods must have been the same before (default: as --config says, else 5m)")
	fl.StringVar(&f.class, "class", "", "class of all nodes (default: by their labels)")
	fl.BoolVar(&f.merge, "merge", false, "write one sample a cell: the mean of its windows, their number and spread")
	fl.BoolVar(&f.strict, "strict", false, "fail on the first warning, such as that of an incomplete answer")
	fl.StringVar(&f.out, "out", "", "write the samples to `FILE`: .jsonl or .csv (with .gz packed), .db for an SQLite store, - for JSON Lines on stdout")
	outputFlag(cmd, &f.output)
	return cmd
}

func (f *prometheusFlags) run(cmd *cobra.Command) error {
	if err := checkOutput(f.output); err != nil {
		return err
	}
	c, text, err := f.readConfig(&inputs{stdin: cmd.InOrStdin()})
	if err != nil {
		return err
	}
	span, err := f.span()
	if err != nil {
		return err
	}
	write, err := sampleWriter(cmd, f.out)
	if err != nil {
		return err
	}
	client, err := prometheus.Open(c)
	if err != nil {
		or := ""
		if c.Server == "" {
			or = " (or --server)"
		}
		return wrongUse("--config %s: %s%s", f.config, err, or)
	}
	kept, err := openPartial(f.out, f.fingerprint(c, text), span)
	if err != nil {
		return err
	}
	defer kept.close()
	log := cmd.ErrOrStderr()
	if len(kept.parts) > 0 {
		fmt.Fprintf(log, "going on with %s: %d parts are read, of %s to %s\n", kept.path, len(kept.parts), kept.span.From.Format(time.RFC3339), kept.span.To.Format(time.RFC3339))
	}
	if whole := kept.span.Aligned(c); !whole.From.Before(whole.To) {
		kept.remove()
		return wrongUse("no whole window of %s is between %s and %s", time.Duration(c.Window), span.From.Format(time.RFC3339), span.To.Format(time.RFC3339))
	}
	samples, counts, warnings, err := f.read(cmd, log, client, c, kept)
	if err != nil {
		return err
	}
	return f.finish(cmd, c, write, kept, samples, counts, warnings)
}

// read reads what is not yet kept, piece by piece.
func (f *prometheusFlags) read(cmd *cobra.Command, log io.Writer, client *prometheus.Client, c prometheus.Config, kept *partial) (samples []history.Sample, counts prometheus.Counts, warnings []string, err error) {
	pieces := kept.span.Aligned(c).Pieces(c)
	bar := newProgress(log, "import prometheus", len(pieces))
	defer bar.end()
	for i, piece := range pieces {
		bar.at(i, piece.From.Format(time.RFC3339))
		part, done := kept.part(i)
		if !done {
			part.Samples, part.Counts, part.Warnings, err = prometheus.Samples(cmd.Context(), client, c, piece)
			if err != nil && cmd.Context().Err() != nil {
				return nil, counts, nil, kept.broken()
			}
			if err != nil {
				if len(kept.parts) == 0 {
					kept.remove()
				}
				return nil, counts, nil, fmt.Errorf("--config %s: %w", f.config, err)
			}
			if err := kept.add(part); err != nil {
				return nil, counts, nil, err
			}
		}
		samples = append(samples, part.Samples...)
		counts.Add(part.Counts)
		for _, w := range part.Warnings {
			if slices.Contains(warnings, w) {
				continue
			}
			if f.strict {
				return nil, counts, nil, fmt.Errorf("--strict: %s", w)
			}
			bar.say("%s", w)
			warnings = append(warnings, w)
		}
	}
	return samples, counts, warnings, nil
}

func (f *prometheusFlags) finish(cmd *cobra.Command, c prometheus.Config, write func([]history.Sample) error, kept *partial, samples []history.Sample, counts prometheus.Counts, warnings []string) error {
	if len(samples) == 0 {
		kept.remove()
		return fmt.Errorf("--config %s: no samples: %s", f.config, counts.Words())
	}
	if f.class != "" {
		for i := range samples {
			samples[i].Class = f.class
		}
	}
	samples = prometheus.WithAlone(samples, c)
	sum := history.Summarise(history.Joined(samples))
	row := importRow{
		Format: "prometheus", File: c.Server, Read: counts.Windows, Skipped: counts.Left(), Warnings: append(warnings, alone(sum.Samples)...),
	}
	if text := counts.Words(); text != "" {
		row.Warnings = append(row.Warnings, text)
	}
	for _, w := range row.Warnings[len(warnings):] {
		fmt.Fprintln(cmd.ErrOrStderr(), w)
	}
	written := func(samples []history.Sample) error {
		if err := write(samples); err != nil {
			return err
		}
		kept.remove()
		return nil
	}
	return (&importFlags{out: f.out, output: f.output, merge: f.merge}).finish(cmd, row, samples, sum, written)
}

// alone names the workloads of which nobody knows how fast they are alone:
// nothing can be learned of them.
func alone(samples []history.Sample) []string {
	var without []string
	for _, s := range samples {
		if s.Alone == 0 && s.Metric == history.Rate {
			name := s.Workload
			if s.Class != "" {
				name += " on " + s.Class
			}
			without = append(without, name)
		}
	}
	slices.Sort(without)
	if without = slices.Compact(without); len(without) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("never alone on a node, so that a model cannot learn of them: %s; give alone: in the configuration, or let one run alone for a while", some(without, 8))}
}

func (f *prometheusFlags) readConfig(in *inputs) (c prometheus.Config, text []byte, err error) {
	if f.config == "" {
		return c, nil, wrongUse("--config is missing: a file with a query for each workload (docs/formats.md, \"Prometheus\")")
	}
	if text, err = in.text("config", f.config); err != nil {
		return c, nil, err
	}
	if c, err = prometheus.ReadConfig(text, f.config); err != nil {
		return c, nil, fmt.Errorf("--config: %w", err)
	}
	if f.server != "" {
		c.Server = f.server
	}
	for _, d := range []struct {
		name, text string
		into       *prometheus.Duration
	}{{"step", f.step, &c.Step}, {"window", f.window, &c.Window}, {"settle", f.settle, &c.Settle}} {
		if d.text == "" {
			continue
		}
		v, err := prometheus.ParseDuration(d.text)
		if err != nil {
			return c, nil, wrongUse("--%s: %s", d.name, err)
		}
		*d.into = prometheus.Duration(v)
	}
	if err := c.Check(); err != nil {
		return c, nil, wrongUse("--config %s, with --server, --step, --window and --settle as given: %s", f.config, err)
	}
	return c, text, nil
}

// maxSpan bounds what is read at once, the longest that makes sense.
const maxSpan = 2 * 366 * 24 * time.Hour

func (f *prometheusFlags) span() (s prometheus.Span, err error) {
	s.To = f.now().UTC()
	if f.to != "" {
		if s.To, err = time.Parse(time.RFC3339, f.to); err != nil {
			return s, wrongUse("--to %s: no time such as 2026-01-02T00:00:00Z", f.to)
		}
	}
	switch {
	case f.since != "" && f.from != "":
		return s, wrongUse("--since and --from are both given; keep one")
	case f.from != "":
		if s.From, err = time.Parse(time.RFC3339, f.from); err != nil {
			return s, wrongUse("--from %s: no time such as 2026-01-02T00:00:00Z", f.from)
		}
	default:
		since := 24 * time.Hour
		if f.since != "" {
			if since, err = prometheus.ParseDuration(f.since); err != nil {
				return s, wrongUse("--since: %s", err)
			}
		}
		s.From = s.To.Add(-since)
	}
	s.From, s.To = s.From.UTC(), s.To.UTC()
	if !s.From.Before(s.To) || s.To.Sub(s.From) > maxSpan {
		return s, wrongUse("from %s to %s: give a time of at most two years that begins before it ends", s.From.Format(time.RFC3339), s.To.Format(time.RFC3339))
	}
	return s, nil
}
