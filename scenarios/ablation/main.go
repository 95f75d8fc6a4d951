package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, out, log io.Writer) int {
	flags := flag.NewFlagSet("ablation", flag.ContinueOnError)
	flags.SetOutput(log)
	var s settings
	only := flags.String("only", "", "comma-separated variants to run: rules, full, forget, unaware, unlearned, progress, imitation; none prints the table alone (default: all)")
	seedsText := flags.String("seeds", "0-4", "seeds of training, such as 0-4,7")
	path := flags.String("out", "scenarios/ablation/results.jsonl", "file of the results, appended to; what it has is not run again")
	flags.IntVar(&s.Updates, "updates", 12, "updates of each training")
	flags.IntVar(&s.Episodes, "episodes", 24, "episodes of each update")
	flags.IntVar(&s.Jobs, "jobs", 120, "jobs in an episode")
	flags.IntVar(&s.Servers, "servers", 6, "servers of the true world; training has from 3/4 to 3/2 as many")
	flags.IntVar(&s.Profile, "profile", 3000, "co-locations that the profiler measures there")
	flags.IntVar(&s.TestJobs, "test-jobs", 250, "jobs in each test stream")
	flags.IntVar(&s.TestSeeds, "test-seeds", 5, "test streams at each load")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	list, err := chosen(*only)
	seeds, err2 := seedsOf(*seedsText)
	if err == nil {
		err = err2
	}
	if flags.NArg() > 0 && err == nil {
		err = fmt.Errorf("unknown argument %q; see -help", flags.Arg(0))
	}
	if s.Updates < 1 || s.Episodes < 1 || s.Jobs < 1 || s.TestJobs < 1 || s.TestSeeds < 1 || s.Profile < 1 {
		err = fmt.Errorf("%+v: all of these are at least 1", s)
	}
	if err != nil {
		fmt.Fprintln(log, "ablation:", err)
		return 2
	}
	if err := all(ctx, s, list, seeds, *path, log); err != nil {
		fmt.Fprintln(log, "ablation:", err)
		return 1
	}
	results, err := read(*path, s)
	if err == nil {
		err = print(out, results)
	}
	if err != nil {
		fmt.Fprintln(log, "ablation:", err)
		return 1
	}
	return 0
}

// all does the runs that are missing, all variants of a seed before the next
// seed, so that what there is can be compared.
func all(ctx context.Context, s settings, list []variant, seeds []uint64, path string, log io.Writer) error {
	if len(list) == 0 {
		return nil
	}
	var l *lab
	for _, seed := range seeds {
		for _, v := range list {
			if v.name == rules && seed != seeds[0] {
				continue
			}
			if v.name == rules {
				seed = 0
			}
			// Another process may have added to them.
			results, err := read(path, s)
			if err != nil {
				return err
			}
			if done(results, v.name, seed) {
				continue
			}
			if l == nil {
				if l, err = newLab(s); err != nil {
					return err
				}
			}
			begin := time.Now()
			r, err := l.run(ctx, v, seed)
			if err != nil {
				return fmt.Errorf("%s, seed %d: %w", v.name, seed, err)
			}
			if err := add(path, r); err != nil {
				return err
			}
			fmt.Fprintf(log, "%s, seed %d: %.0f s, of which %.0f s of training\n", v.name, seed, time.Since(begin).Seconds(), r.Seconds)
		}
	}
	return nil
}
