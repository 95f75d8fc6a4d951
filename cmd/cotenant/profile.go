package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/profile"
	"github.com/cotenant/cotenant/profile/drive"
	"github.com/cotenant/cotenant/profile/suite"
)

// profileFlags are the flags of `cotenant profile`.
type profileFlags struct {
	suite, out, class, limits, output, work, describe string
	workloads, colocations                            []string
	upTo, choose, verify                              int
	repeats, passes, aloneEvery                       int
	window, warmUp, maxDuration                       time.Duration
	seed                                              int64
}

func profileCommand() *cobra.Command {
	f := &profileFlags{}
	cmd := &cobra.Command{
		Use:   "profile",
		Short: "Measure what co-located programs do to each other on this machine",
		Long: `Runs real programs side by side on this machine and records each one's rate and
latency, alone and together, as samples (JSON Lines). Every finished repeat is
on disk at once: after Ctrl-C the same command goes on where it was. Until it is
done, FILE.unfinished stands beside the record and holds that command.

--verify ends with exit code 3 where a cell lies outside what its spread states,
and with 1 where more do than chance explains, or where nothing was repeated, so
that no cell can be judged.

The suite that ships needs the Debian packages of profile/suite/packages.txt;
docs/profile.md explains how to write another one.`,
		Example: `  cotenant profile --workloads redis,nginx,stream --up-to 3 --out samples.jsonl
  cotenant profile --workloads redis,nginx,stream --up-to 4 --choose 20 --out samples.jsonl
  cotenant profile --colocations redis+nginx,redis*2 --out samples.jsonl
  cotenant profile --out samples.jsonl --verify 10`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.suite, "suite", "", "YAML of workloads (default: the suite that ships)")
	fl.StringVar(&f.out, "out", "samples.jsonl", "the record: repeats are appended to it")
	fl.StringSliceVar(&f.workloads, "workloads", nil, "workloads to co-locate (default: all of the suite)")
	fl.IntVar(&f.upTo, "up-to", 2, "co-locations of at most that many tasks")
	fl.IntVar(&f.choose, "choose", 0, "measure only n of them, chosen to fill the space (0: all)")
	fl.StringSliceVar(&f.colocations, "colocations", nil, "measure exactly these: redis+nginx,redis*2")
	fl.IntVar(&f.verify, "verify", 0, "re-measure n recorded co-locations and hold them against their spread")
	fl.DurationVar(&f.window, "window", 0, "length of a repeat (default: the suite's)")
	fl.DurationVar(&f.warmUp, "warm-up", 0, "time before the first repeat (default: the suite's)")
	fl.IntVar(&f.repeats, "repeats", 0, "repeats in one start (default: the suite's)")
	fl.IntVar(&f.passes, "passes", 0, "times to go through all co-locations, with new starts (default: the suite's)")
	fl.IntVar(&f.aloneEvery, "alone-every", 0, "one more alone-run after that many co-locations, 0 for none (default: the suite's)")
	fl.DurationVar(&f.maxDuration, "max-duration", 0, "stop cleanly after that time; the same command goes on (0: no limit)")
	fl.StringVar(&f.class, "class", "", "name of this machine's class in the samples")
	fl.StringVar(&f.limits, "limits", "auto", "CPU and memory limits by cgroup: auto (warn where impossible), require, off")
	fl.StringVar(&f.work, "work", "", "folder for what workloads prepare and for running tasks (default: the user's cache)")
	fl.StringVar(&f.describe, "describe", "", "also write a JSON file that describes this machine and its programs")
	fl.Int64Var(&f.seed, "seed", 1, "seed of the order and of every choice")
	outputFlag(cmd, &f.output)
	cmd.Annotations = map[string]string{endsItself: "yes"}
	cmd.AddCommand(driveCommand())
	return cmd
}

func (f *profileFlags) run(cmd *cobra.Command) error {
	if err := errors.Join(checkOutput(f.output), oneOf("limits", f.limits, []string{"auto", "require", "off"})); err != nil {
		return err
	}
	ctx, errs := cmd.Context(), cmd.ErrOrStderr()
	work, err := f.workDir()
	if err != nil {
		return err
	}
	s, err := f.load(work)
	if err != nil {
		return err
	}
	measure, err := f.measure(cmd, s.Measure)
	if err != nil {
		return err
	}
	colocations, names, err := f.choice(s)
	if err != nil {
		return err
	}
	log, err := profile.OpenLog(f.out)
	if err != nil {
		return err
	}
	defer log.Close()
	if log.Dropped != "" {
		fmt.Fprintln(errs, log.Dropped)
	}
	if f.verify > 0 {
		names = s.Names()
	}
	if err := s.Check(names); err != nil {
		return err
	}
	session := &profile.Session{
		Suite: s, Measure: measure, Log: log, Class: f.class, MaxDuration: f.maxDuration,
		Cache: filepath.Join(work, "prepared", s.Name),
	}
	var bar *progress
	session.Progress = func(p profile.Progress) {
		if bar == nil {
			bar = newProgress(errs, "measuring", p.Total)
			if p.Recorded > 0 {
				bar.say("%d of %d starts are on record already", p.Recorded, p.Recorded+p.Total)
			}
		}
		bar.at(p.Done, p.Next.Key())
		if p.Next == nil {
			bar.end()
		}
	}
	session.Warn = func(text string) {
		if bar != nil {
			bar.clear()
		}
		fmt.Fprintln(errs, "warning:", text)
	}
	if session.Cgroups, err = f.cgroups(errs); err != nil {
		return err
	}
	if session.Cgroups != nil {
		defer session.Cgroups.Close()
	}
	if err := f.writeDescription(ctx, s, session.Cgroups); err != nil {
		return err
	}
	if err := os.MkdirAll(session.Cache, 0o755); err != nil {
		return err
	}
	if session.Work, err = runDir(work); err != nil {
		return err
	}
	defer os.RemoveAll(session.Work)
	if f.verify > 0 {
		checks, err := session.Verify(ctx, f.verify, f.seed)
		if err != nil {
			if ctx.Err() != nil {
				err = stopped("nothing is kept of a verification")
			}
			return err
		}
		return f.printChecks(cmd.OutOrStdout(), checks)
	}
	command := commandLine(cmd, "output", "max-duration")
	if err := writeFile(unfinishedMark(f.out), []byte(command+"\n")); err != nil {
		return err
	}
	err = session.Run(ctx, profile.Plan(colocations, measure, f.seed))
	if bar != nil {
		bar.end()
	}
	switch {
	case errors.Is(err, profile.ErrPaused):
		fmt.Fprintf(errs, "%s: %s\n", err, command)
		return nil
	case ctx.Err() != nil:
		return stopped("what was finished is on record; go on with: %s", command)
	case err != nil:
		return err
	}
	if err := os.Remove(unfinishedMark(f.out)); err != nil {
		return err
	}
	return f.print(cmd.OutOrStdout(), log.Samples())
}

// unfinishedMark is a file beside a record that holds the command which finishes
// it, for as long as that has not come to its end.
func unfinishedMark(record string) string { return record + ".unfinished" }

// warnUnfinished says so where measurements are those of a profile that was
// stopped before its end: what they lack would otherwise be a riddle.
func warnUnfinished(log io.Writer, record string) {
	if command, err := os.ReadFile(unfinishedMark(record)); err == nil {
		fmt.Fprintf(log, "--samples: %s: its profile was stopped before the end, so that measurements are missing; finish it with: %s\n", record, bytes.TrimSpace(command))
	}
}

func (f *profileFlags) workDir() (string, error) {
	dir := f.work
	if dir == "" {
		// Workloads of other users must reach it, which a home folder prevents.
		dir = filepath.Join(os.TempDir(), fmt.Sprintf("cotenant-profile-%d", os.Getuid()))
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return dir, os.MkdirAll(dir, 0o755)
}

// runDir makes the folder of this run's tasks, and removes those of runs that
// were killed.
func runDir(work string) (string, error) {
	old, err := filepath.Glob(filepath.Join(work, "run-*"))
	if err != nil {
		return "", err
	}
	for _, dir := range old {
		id, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), "run-"))
		if err == nil && (id == os.Getpid() || profile.Gone(id)) {
			if err := os.RemoveAll(dir); err != nil {
				return "", err
			}
		}
	}
	dir := filepath.Join(work, fmt.Sprintf("run-%d", os.Getpid()))
	return dir, os.MkdirAll(dir, 0o755)
}

func (f *profileFlags) load(work string) (*profile.Suite, error) {
	path := f.suite
	if path == "" {
		var err error
		if path, err = suite.Unpack(filepath.Join(work, "suite")); err != nil {
			return nil, err
		}
	}
	return profile.LoadSuite(path)
}

// measure is the suite's default where a flag was not given.
func (f *profileFlags) measure(cmd *cobra.Command, m profile.Measure) (profile.Measure, error) {
	changed := cmd.Flags().Changed
	if changed("window") {
		m.Window = f.window
	}
	if changed("warm-up") {
		m.WarmUp = f.warmUp
	}
	if changed("repeats") {
		m.Repeats = f.repeats
	}
	if changed("passes") {
		m.Passes = f.passes
	}
	if changed("alone-every") {
		m.AloneEvery = f.aloneEvery
	}
	switch {
	case m.Window <= 0:
		return m, wrongUse("--window %s: must be positive", m.Window)
	case m.WarmUp < 0:
		return m, wrongUse("--warm-up %s is negative", m.WarmUp)
	case m.Repeats < 1 || m.Passes < 1:
		return m, wrongUse("--repeats %d --passes %d: at least 1 each", m.Repeats, m.Passes)
	case m.AloneEvery < 0:
		return m, wrongUse("--alone-every %d is negative", m.AloneEvery)
	}
	return m, nil
}

// choice is the co-locations to measure and the workloads in them.
func (f *profileFlags) choice(s *profile.Suite) ([]cluster.Colocation, []string, error) {
	names := f.workloads
	if names == nil {
		names = s.Names()
	}
	if f.colocations != nil {
		var out []cluster.Colocation
		names = nil
		for _, text := range f.colocations {
			c, err := cluster.ParseColocation(text)
			if err != nil {
				return nil, nil, wrongUse("--colocations: %v", err)
			}
			if c.Tasks() == 0 {
				return nil, nil, wrongUse("--colocations: an empty co-location; write redis+nginx or redis*2")
			}
			for _, w := range c.Workloads() {
				if !slices.Contains(names, w) {
					names = append(names, w)
				}
			}
			out = append(out, c)
		}
		// Performance is a rate over the rate alone: the alone-runs belong to it.
		for _, w := range names {
			alone := cluster.Colocation{w: 1}
			if !slices.ContainsFunc(out, func(c cluster.Colocation) bool { return c.Key() == alone.Key() }) {
				out = append(out, alone)
			}
		}
		return out, names, f.known(s, names)
	}
	if f.upTo < 1 {
		return nil, nil, wrongUse("--up-to %d: at least 1 task", f.upTo)
	}
	if f.choose < 0 {
		return nil, nil, wrongUse("--choose %d is negative", f.choose)
	}
	if err := f.known(s, names); err != nil {
		return nil, nil, err
	}
	if f.choose > 0 {
		return profile.SpaceFilling(names, f.upTo, f.choose, f.seed), names, nil
	}
	return profile.Colocations(names, f.upTo), names, nil
}

func (f *profileFlags) known(s *profile.Suite, names []string) error {
	for i, n := range names {
		if _, err := s.Workload(n); err != nil {
			return wrongUse("%v%s", err, didYouMean(n, s.Names()))
		}
		if slices.Contains(names[:i], n) {
			return wrongUse("--workloads: %q is given twice", n)
		}
	}
	return nil
}

func (f *profileFlags) cgroups(warn io.Writer) (*profile.Cgroups, error) {
	if f.limits == "off" {
		return nil, nil
	}
	c, err := profile.FindCgroups()
	if err == nil {
		return c, nil
	}
	if f.limits == "require" {
		return nil, err
	}
	fmt.Fprintf(warn, "warning: tasks run without CPU and memory limits: %v\n", err)
	return nil, nil
}

func (f *profileFlags) writeDescription(ctx context.Context, s *profile.Suite, c *profile.Cgroups) error {
	if f.describe == "" {
		return nil
	}
	text, err := json.MarshalIndent(profile.Describe(ctx, s, c, time.Now()), "", "  ")
	if err != nil {
		return err
	}
	return writeFile(f.describe, append(text, '\n'))
}

// driveCommand is what the suite's workloads call; people don't.
func driveCommand() *cobra.Command {
	l := drive.Load{}
	c := &cobra.Command{
		Use: "memcached ADDRESS", Short: "Press on a memcached until killed", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return drive.Memcached(cmd.Context(), args[0], l, cmd.OutOrStdout())
		},
	}
	c.Flags().IntVar(&l.Clients, "clients", 4, "connections, each with one request in flight")
	c.Flags().IntVar(&l.Keys, "keys", 10000, "keys")
	c.Flags().IntVar(&l.Bytes, "bytes", 100, "bytes of a value")
	c.Flags().Float64Var(&l.Sets, "sets", .1, "share of writes, 0..1")
	c.Flags().Int64Var(&l.Seed, "seed", 1, "seed of the keys")
	c.Flags().DurationVar(&l.Every, "every", 250*time.Millisecond, "time between two lines")
	d := group("drive", "Press on a server that has no load generator of its own", c)
	d.Hidden = true
	return d
}
