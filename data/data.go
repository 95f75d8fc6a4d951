package data

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/cotenant/cotenant/history"
)

//go:embed samples.jsonl
var complete []byte

//go:embed extra.jsonl
var extra []byte

// Machine is machine.json: the machine, its programs and the date.
//
//go:embed machine.json
var Machine []byte

// Trace is example.trace: jobs in the layout of Gavel's traces, drawn for the
// world of sim/contention. The demo replays it.
//
//go:embed example.trace
var Trace []byte

var repeats = sync.OnceValues(func() ([]history.Sample, error) { return parse("samples.jsonl", complete) })

var samples = sync.OnceValues(func() ([]history.Sample, error) {
	raw, err := repeats()
	return history.Aggregate(raw), err
})

// Samples returns one sample per co-location, workload and metric of the six
// workloads whose co-locations of up to four tasks are complete: the mean of
// its repeats with their number and spread, and the mean alone
// (history.Aggregate).
func Samples() ([]history.Sample, error) {
	out, err := samples()
	return slices.Clone(out), err
}

// Repeats returns the raw record behind Samples: a sample per workload, metric
// and window, in the order of measuring, without the rate alone.
func Repeats() ([]history.Sample, error) {
	out, err := repeats()
	return slices.Clone(out), err
}

// Extra returns the samples of the suite's other workloads: alone, and in twos
// with each other and with the six. The six's own rates alone, measured in the
// same session, are among them.
func Extra() ([]history.Sample, error) {
	raw, err := parse("extra.jsonl", extra)
	return history.Aggregate(raw), err
}

func parse(name string, lines []byte) ([]history.Sample, error) {
	var out []history.Sample
	number := 0
	for line := range bytes.Lines(lines) {
		number++
		var s history.Sample
		err := json.Unmarshal(line, &s)
		if err == nil {
			err = s.Validate()
		}
		if err != nil {
			return nil, fmt.Errorf("data/%s: line %d: %w", name, number, err)
		}
		out = append(out, s)
	}
	return out, nil
}
