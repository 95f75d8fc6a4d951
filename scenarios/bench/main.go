package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/sim/compare"
)

// bench holds what the scenarios of one run share.
type bench struct {
	ctx    context.Context
	data   string
	smoke  bool
	log    io.Writer
	live   bool // log is a terminal: show what is at work
	truths map[string]*truth
	bounds map[string]limit
	worlds map[string]*compare.World
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, out, log io.Writer) int {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(log)
	folder := flags.String("scenarios", "scenarios", "folder of the scenarios' YAML files")
	data := flags.String("data", "../shared/data", "folder of the measurements that do not ship; scenarios over them are skipped where it is absent")
	smoke := flags.Bool("smoke", false, "run the quick part: scenarios with smoke, with so many seeds")
	only := flags.String("only", "", "run the scenarios whose name contains this")
	format := flags.String("o", "table", "table or json")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if flags.NArg() > 0 || *format != "table" && *format != "json" {
		fmt.Fprintf(log, "bench: unknown argument or format: %v -o %s; see -help\n", flags.Args(), *format)
		return 2
	}
	scenarios, err := load(*folder)
	if err != nil {
		fmt.Fprintln(log, "bench:", err)
		return 2
	}
	b := &bench{
		ctx: ctx, data: *data, smoke: *smoke, log: log, live: isTerminal(log), truths: map[string]*truth{}, bounds: map[string]limit{},
		worlds: map[string]*compare.World{},
	}
	var outcomes []outcome
	missed, skipped := 0, 0
	begin := time.Now()
	for i := range scenarios {
		s := &scenarios[i]
		if *smoke && s.Smoke == 0 || !strings.Contains(s.Name, *only) {
			continue
		}
		if ctx.Err() != nil {
			fmt.Fprintln(log, "bench: interrupted")
			return 1
		}
		o := b.outcome(s)
		if o.failed() {
			missed++
		}
		if o.Skipped != "" {
			skipped++
		}
		if *format == "table" {
			printRow(out, s, &o)
		}
		outcomes = append(outcomes, o)
	}
	if *format == "json" {
		e := json.NewEncoder(out)
		e.SetIndent("", " ")
		if err := e.Encode(outcomes); err != nil {
			fmt.Fprintln(log, "bench:", err)
			return 1
		}
	}
	fmt.Fprintf(log, "%d scenarios in %s: %d kept their bounds, %d missed or failed, %d skipped\n",
		len(outcomes), time.Since(begin).Round(time.Second), len(outcomes)-missed-skipped, missed, skipped)
	switch {
	case len(outcomes) == 0:
		fmt.Fprintf(log, "bench: no scenario's name contains %q\n", *only)
		return 2
	case missed > 0:
		return 1
	}
	return 0
}

// outcome runs a scenario over its seeds.
func (b *bench) outcome(s *scenario) outcome {
	o := outcome{Scenario: s.Name, File: s.file, Metrics: map[string][]number{}}
	seeds := s.Seeds
	if b.smoke {
		seeds = s.Smoke
	}
	for seed := range seeds {
		if b.live {
			fmt.Fprintf(b.log, "\r\033[K%s: seed %d of %d ", s.Name, seed+1, seeds)
		}
		var metrics map[string]float64
		var err error
		switch {
		case s.Plan != nil:
			metrics, err = b.plan(s.Plan, uint64(seed))
		case s.Jobs != nil:
			metrics, err = b.jobs(s.Jobs, uint64(seed))
		case s.Stream != nil:
			metrics, err = b.stream(s.Stream, uint64(seed))
		default:
			metrics, err = b.fit(s.Fit, uint64(seed))
		}
		switch {
		case errors.Is(err, errAbsent):
			o.Skipped = err.Error()
		case err != nil:
			o.Error = fmt.Sprintf("seed %d: %v", seed, err)
		}
		if err != nil {
			break
		}
		for name, v := range metrics {
			o.Metrics[name] = append(o.Metrics[name], number(v))
		}
	}
	if b.live {
		fmt.Fprint(b.log, "\r\033[K")
	}
	if o.Skipped == "" && o.Error == "" {
		o.judge(s)
	}
	return o
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// limit is a bound that was computed, and how long that took.
type limit struct {
	value   float64
	proven  bool
	seconds float64
}

// stop is the policies' deadline: the run's own, so that Ctrl-C ends a search.
func (b *bench) stop(req *place.Request) {
	req.Stop = func() bool { return b.ctx.Err() != nil }
}
