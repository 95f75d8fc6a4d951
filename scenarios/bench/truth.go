package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/cotenant/cotenant/data"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/sim/generated"
)

// truth is what judges plans and models.
type truth struct {
	model     interference.Model
	samples   []history.Sample // nil where generated
	generated *generated.Model
}

// workloads lists what can be placed under the truth.
func (t *truth) workloads() []string { return t.model.Workloads(t.model.Classes()[0]) }

// errAbsent says that data is not there, which skips a scenario.
var errAbsent = errors.New("absent")

// truthOf opens a truth, once for all scenarios.
func (b *bench) truthOf(s truthSpec) (*truth, error) {
	key := fmt.Sprintf("%+v %v", s, s.Generated)
	if s.Generated != nil {
		key = fmt.Sprintf("generated %+v", *s.Generated)
	}
	if t, ok := b.truths[key]; ok {
		return t, nil
	}
	t, err := b.openTruth(s)
	if err == nil {
		b.truths[key] = t
	}
	return t, err
}

func (b *bench) openTruth(s truthSpec) (*truth, error) {
	if g := s.Generated; g != nil {
		t := generated.New(g.Workloads, g.Seed)
		return &truth{model: t, generated: t}, nil
	}
	samples, err := b.samples(s)
	if err != nil {
		return nil, err
	}
	model, err := interference.Fit(interference.KindTable, samples, interference.Options{})
	if err != nil {
		return nil, err
	}
	return &truth{model: model, samples: samples}, nil
}

func (b *bench) samples(s truthSpec) ([]history.Sample, error) {
	if s.Embedded {
		return data.Samples()
	}
	path := filepath.Join(b.data, s.File)
	read := formats.ReadMetisCSV
	if filepath.Ext(path) == ".json" {
		read = formats.ReadGavel
	}
	samples, _, err := formats.ReadFile(path, formats.Options{Strict: true, Exclude: s.Exclude}, read)
	samples, _ = history.SplitMisfits(samples)
	samples = slices.DeleteFunc(samples, func(x history.Sample) bool { return s.Class != "" && x.Class != s.Class || x.Workers > 1 })
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is %w", path, errAbsent)
	}
	return samples, err
}
