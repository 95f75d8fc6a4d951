package data

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/cotenant/cotenant/history"
)

//go:embed samples.jsonl
var lines []byte

// Machine is machine.json: the machine, its programs and the date.
//
//go:embed machine.json
var Machine []byte

var repeats = sync.OnceValues(func() ([]history.Sample, error) {
	var out []history.Sample
	in := bufio.NewScanner(bytes.NewReader(lines))
	for number := 1; in.Scan(); number++ {
		var s history.Sample
		err := json.Unmarshal(in.Bytes(), &s)
		if err == nil {
			err = s.Validate()
		}
		if err != nil {
			return nil, fmt.Errorf("data/samples.jsonl: line %d: %w", number, err)
		}
		out = append(out, s)
	}
	return out, in.Err()
})

var aggregated = sync.OnceValues(func() ([]history.Sample, error) {
	raw, err := repeats()
	return history.Aggregate(raw), err
})

// Repeats returns the raw record: a sample per workload, metric and window, in
// the order of measuring, without the rate alone.
func Repeats() ([]history.Sample, error) {
	out, err := repeats()
	return append([]history.Sample(nil), out...), err
}

// Samples returns one sample per co-location, workload and metric: the mean of
// its repeats with their number and spread, and the mean alone
// (history.Aggregate).
func Samples() ([]history.Sample, error) {
	out, err := aggregated()
	return append([]history.Sample(nil), out...), err
}
