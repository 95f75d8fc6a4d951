package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/compare"
	"github.com/cotenant/cotenant/train/harmony"
	"github.com/cotenant/cotenant/train/worlds"
)

// readWorld reads the cluster, and what is known of speeds there.
func (f *trainFlags) readWorld(in *inputs, log io.Writer) (*compare.World, error) {
	if f.samples == "" {
		return f.world.load(in, log, f.strict, f.exclude)
	}
	switch {
	case f.world.throughputs != "" || f.world.contention != "":
		return nil, wrongUse("--samples and --throughputs or --contention are both given; keep one")
	case f.world.nodes == "":
		return nil, wrongUse("where do jobs run? give --nodes CLASS:N, such as v100:16")
	case f.world.share < 1 || f.world.share > 64:
		return nil, wrongUse("--share %d: give the most jobs on a device, 1 to 64", f.world.share)
	}
	source := sourceFlags{samples: f.samples, strict: f.strict}
	samples, err := source.readSamples(in, log)
	if err != nil {
		return nil, err
	}
	nodes, err := parseNodes(f.world.nodes, 0)
	if err != nil {
		return nil, err
	}
	for i := range nodes {
		for d := range nodes[i].Devices {
			nodes[i].Devices[d].Slots = f.world.share
		}
	}
	w, err := compare.Known(samples, nodes, nil)
	if err != nil {
		return nil, fmt.Errorf("--samples %s: %w", f.samples, source.located(err))
	}
	if len(w.Runnable()) == 0 {
		return nil, fmt.Errorf("--samples %s: no workload has a rate alone on every class of --nodes %s", f.samples, f.world.nodes)
	}
	return w, nil
}

// readLike reads the jobs that those of training resemble.
func (f *trainFlags) readLike(in *inputs, log io.Writer, w *compare.World) ([]sim.Job, error) {
	if f.trace == "" {
		return nil, nil
	}
	data, err := in.read("trace", f.trace)
	if err != nil {
		return nil, err
	}
	o := formats.Options{Name: f.trace, Strict: f.strict, Exclude: f.exclude}
	list, report, err := formats.ReadTrace(bytes.NewReader(data), o)
	warn(log, "trace", report)
	if err != nil {
		return nil, fmt.Errorf("--trace: %w", err)
	}
	t, err := w.FromTrace(list, compare.TraceOptions{Options: o, Draw: f.draw, Seed: f.seed})
	warn(log, "trace", t.Report)
	if err != nil {
		return nil, fmt.Errorf("--trace %s: %w", f.trace, err)
	}
	return t.Jobs, nil
}

// readLoads reads --load.
func (f *trainFlags) readLoads() (loads [2]float64, err error) {
	low, high, ok := strings.Cut(f.loads, ":")
	if !ok {
		high = low
	}
	var err1, err2 error
	loads[0], err1 = strconv.ParseFloat(low, 64)
	loads[1], err2 = strconv.ParseFloat(high, 64)
	if err1 != nil || err2 != nil || !(loads[0] > 0 && loads[0] <= loads[1] && loads[1] <= 100) {
		return loads, wrongUse("--load %s: give MIN:MAX, both above 0, such as 0.7:1.3", f.loads)
	}
	return loads, nil
}

// convert fits a model for each belief, and makes a world to train in of each.
func (f *trainFlags) convert(ctx context.Context, log io.Writer, w *compare.World, o worlds.Options) ([]harmony.World, error) {
	// Of --throughputs all pairs are known: there is nothing to predict.
	whole := f.observed == 1 && f.world.throughputs != ""
	n := f.beliefs
	if n == 0 {
		n = 4
		if f.observed == 1 {
			n = 1
		}
	}
	bar := newProgress(log, "fit", n)
	defer bar.end()
	var out []harmony.World
	for i := range n {
		if ctx.Err() != nil {
			return nil, stopped("nothing was written")
		}
		seed := f.modelSeed + uint64(i)
		bar.at(i, fmt.Sprintf("the model of belief %d", i+1))
		m := w.Table
		if !whole {
			b := compare.Belief{Observed: f.observed, Seed: seed, Kind: f.modelKind, Parallel: parallel}
			if f.noModel {
				b.Kind = interference.KindTable
			}
			var err error
			if m, err = w.Fit(b); err != nil {
				return nil, err
			}
		}
		world, err := worlds.Convert(fmt.Sprintf("belief-%d", seed), w, w.Speeds(m, 0), o)
		if err != nil {
			return nil, err
		}
		out = append(out, world)
	}
	return out, nil
}
