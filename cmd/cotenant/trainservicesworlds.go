package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/sim/generated"
	"github.com/cotenant/cotenant/train/metis"
)

// trainServicesWorld is where `train services` learns.
type trainServicesWorld struct {
	list []metis.World
	// data is a hash of what is learned from, source says whose it is.
	data, source string
}

// The bounds of the slots of a node in the worlds that need no file.
var (
	embeddedSlots  = [2]int{4, 8}
	generatedSlots = [2]int{4, 10}
)

func (f *trainServicesFlags) worlds(ctx context.Context, in *inputs, log io.Writer) (w trainServicesWorld, err error) {
	w.source = f.credit
	var m interference.Model
	switch {
	case f.source.model != "":
		if m, err = readModel(in, f.source.model); err != nil {
			return w, err
		}
		w.data = "sha256:" + in.hashes[0].SHA256
		f.slots = cmp.Or(f.slots, modelSlots)
	case f.source.samples != "":
		samples, err := f.source.readSamples(in, log)
		if err != nil {
			return w, err
		}
		if w.data, err = samplesHash(samples); err != nil {
			return w, err
		}
		if f.slots == 0 {
			f.slots = min(max(2, mostTogether(samples)), maxTrainSlots)
		}
		if m, err = f.believe(ctx, log, samples); err != nil {
			return w, fmt.Errorf("--samples %s: %w", f.source.samples, f.source.located(err))
		}
	default:
		return f.anyWorlds(ctx, log)
	}
	model := func(uint64) (interference.Model, error) { return m, nil }
	w.list = []metis.World{metis.Batches("batches", model, [2]int{f.slots, f.slots})}
	return w, nil
}

// anyWorlds are those that need no file: what is learned there holds for any
// workloads.
func (f *trainServicesFlags) anyWorlds(ctx context.Context, log io.Writer) (w trainServicesWorld, err error) {
	samples, name, err := shippedSamples()
	if err != nil {
		return w, err
	}
	if w.data, err = samplesHash(samples); err != nil {
		return w, err
	}
	w.source = name + ", and made-up truths"
	// The world is the same for every seed of training.
	m, err := fitRates(ctx, log, samples, 1)
	if err != nil {
		return w, err
	}
	w.list = []metis.World{
		metis.Batches("embedded", func(uint64) (interference.Model, error) { return m, nil }, embeddedSlots),
		metis.Batches("generated", func(seed uint64) (interference.Model, error) {
			return generated.New(4+int(seed/7%12), seed), nil
		}, generatedSlots),
	}
	return w, nil
}

// believe is the table of samples that hold every co-location, and else a model
// fitted on them.
func (f *trainServicesFlags) believe(ctx context.Context, log io.Writer, samples []history.Sample) (interference.Model, error) {
	table, err := interference.Fit(interference.KindTable, samples, interference.Options{Metrics: []history.Metric{history.Rate}})
	if err != nil {
		return nil, err
	}
	if complete(table, f.slots) {
		return table, nil
	}
	fmt.Fprintf(log, "not every co-location of up to %d tasks was measured: a neural model is fitted\n", f.slots)
	return fitRates(ctx, log, samples, f.seed)
}

// fitRates fits a neural model of rates, by which policies place.
func fitRates(ctx context.Context, log io.Writer, samples []history.Sample, seed uint64) (interference.Model, error) {
	type fitted struct {
		interference.Model
		err error
	}
	bar := newProgress(log, "fit", 100)
	r, ended := await(ctx, func() fitted {
		m, err := interference.Fit(interference.KindNeural, samples, interference.Options{
			Seed: seed, Metrics: []history.Metric{history.Rate}, Parallel: parallel,
			Progress: func(done, total int) { bar.at(100*done/max(total, 1), "") },
		})
		return fitted{m, err}
	})
	bar.end()
	if ended != nil {
		return nil, stopped("nothing was written")
	}
	return r.Model, r.err
}

// maxComplete bounds how many co-locations are looked at to find out whether
// all were measured; nobody measures more.
const maxComplete = 200_000

// complete reports whether every co-location of up to so many tasks was
// measured, on every class.
func complete(m interference.Model, slots int) bool {
	for _, class := range m.Classes() {
		workloads := m.Workloads(class)
		looked, known := 0, true
		var add func(c cluster.Colocation, from, left int)
		add = func(c cluster.Colocation, from, left int) {
			for i := from; i < len(workloads) && left > 0 && known; i++ {
				c[workloads[i]]++
				looked++
				for _, e := range m.Predict(class, history.Rate, []cluster.Colocation{c})[0] {
					known = known && e.Measured
				}
				known = known && looked <= maxComplete
				add(c, i, left-1)
				if c[workloads[i]]--; c[workloads[i]] == 0 {
					delete(c, workloads[i])
				}
			}
		}
		if add(cluster.Colocation{}, 0, slots); !known {
			return false
		}
	}
	return true
}

// samplesHash identifies samples, whatever the file that they came from.
func samplesHash(samples []history.Sample) (string, error) {
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(samples); err != nil {
		return "", fmt.Errorf("hash of the samples: %w", err)
	}
	sum := sha256.Sum256(b.Bytes())
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}
