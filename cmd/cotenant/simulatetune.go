package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/cotenant/cotenant/sim/compare"
	"github.com/cotenant/cotenant/train/tune"
)

// maxTune bounds --tune.
const maxTune = 100_000

// readTuning reads what is to be tuned, and on what.
func (f *simulateFlags) readTuning(s *simulation) error {
	if f.tune == 0 {
		return nil
	}
	first, count, ok := strings.Cut(f.tuneSeeds, ":")
	from, err1 := strconv.ParseUint(first, 10, 64)
	n, err2 := strconv.Atoi(count)
	switch {
	case f.tune < 0 || f.tune > maxTune:
		return wrongUse("--tune %d: give 1 to %d sets of values for each policy", f.tune, maxTune)
	case !ok || err1 != nil || err2 != nil || n < 1 || n > maxSeeds || from > math.MaxUint64-maxSeeds:
		return wrongUse("--tune-seeds %s: give FIRST:N, such as 1000:6", f.tuneSeeds)
	}
	s.tune = tune.Options{Budget: f.tune, Seed: from, Load: s.draw}
	for i := range n {
		seed := from + uint64(i)
		if slices.Contains(s.Seeds, seed) {
			return wrongUse("--tune-seeds %s: seed %d is one of the comparison's; tune on others", f.tuneSeeds, seed)
		}
		s.tune.Seeds = append(s.tune.Seeds, seed)
	}
	if s.trace != nil {
		s.tune.Load = s.World.Like(s.trace.Jobs)
		s.tune.Load.Priorities, s.tune.Load.Elastic = f.priorities, s.draw.Elastic
	}
	return nil
}

func (s *simulation) tuneAll(ctx context.Context, stage *stages) error {
	if s.tune.Budget == 0 {
		return nil
	}
	var done atomic.Int64
	s.tune.Done = func(spec compare.Spec, runs int) {
		stage.at("tune", int(done.Add(1)), runs, spec.Text)
	}
	var err error
	s.tuned, err = tune.Policies(ctx, &s.Setting, s.tune)
	if ctx.Err() != nil {
		return stopped("nothing was written")
	}
	if err != nil {
		return err
	}
	s.Tuned = map[string]map[string]float64{}
	for _, t := range s.tuned {
		s.Tuned[t.Spec.Text] = t.Best
	}
	return nil
}

// writeTuned says what tuning found, and what it cost.
func (s *simulation) writeTuned(w io.Writer) error {
	if len(s.tuned) == 0 {
		return nil
	}
	var cells [][]string
	calls := int64(0)
	for _, t := range s.tuned {
		var values []string
		for _, p := range t.Params {
			values = append(values, fmt.Sprintf("%s=%g", p.Key, t.Best[p.Key]))
		}
		where := "what it believes"
		if t.Spec.Truth {
			where = "the truth"
		} else {
			calls += t.TruthCalls
		}
		cells = append(cells, []string{t.Spec.Text, strings.Join(values, " "), number(t.Score).text(3), where, strconv.Itoa(t.Trials)})
	}
	if err := writeTable(w, []string{"tuned", "values", " JCT / default", "on", " tried"}, cells); err != nil {
		return err
	}
	seeds := s.tune.Seeds
	_, err := fmt.Fprintf(w, "Tuned on seeds %d to %d, %d jobs each at load %g; calls of the truth by policies that learn: %d.\n\n",
		seeds[0], seeds[len(seeds)-1], s.tune.Load.Jobs, s.tune.Load.Load, calls)
	return err
}
