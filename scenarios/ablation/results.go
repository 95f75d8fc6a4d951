package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// settings are what all runs of one file of results have in common.
type settings struct {
	Updates  int `json:"updates"`
	Episodes int `json:"episodes"` // an update
	Jobs     int `json:"jobs"`     // an episode
	// Servers of the true world, and Profile the co-locations measured there.
	Servers int `json:"servers"`
	Profile int `json:"profile"`
	// TestJobs are in each of the streams, TestSeeds at each of the loads.
	TestJobs  int `json:"test_jobs"`
	TestSeeds int `json:"test_seeds"`
}

// record is one run: a line of the results.
type record struct {
	Variant  string   `json:"variant"`
	Seed     uint64   `json:"seed"`
	Settings settings `json:"settings"`
	// Cores that the run could use, and what it took, looks at the validation
	// seeds included, the judging not.
	Cores      int     `json:"cores"`
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpu_seconds,omitempty"`
	// Curve has a look at the validation seeds before the first update, every few
	// and after the last.
	Curve []look `json:"curve,omitempty"`
	// Best is after how many updates the network that is judged was; it did best
	// on the validation seeds.
	Best int `json:"best"`
	// Streams are the test streams.
	Streams []stream `json:"streams"`
	// TruthCalls is how often training asked the truth.
	TruthCalls int64 `json:"truth_calls"`
}

type look struct {
	Update     int     `json:"update"`
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpu_seconds,omitempty"`
	Spread     float64 `json:"jct_over_spread"`
	GreedyWait float64 `json:"jct_over_greedy_wait"`
}

// stream is what came of one test stream: the mean JCT in seconds by policy.
type stream struct {
	Load float64            `json:"load"`
	Seed uint64             `json:"seed"`
	JCT  map[string]float64 `json:"mean_jct"`
	Wait map[string]float64 `json:"max_wait"`
	// Choices counts decisions with more than one way, Differ those of them in
	// which the untrained network would have taken another.
	Choices int `json:"choices,omitempty"`
	Differ  int `json:"differ,omitempty"`
}

// read reads results, of which there may be none yet. A last line that was cut
// short is a run that was lost.
func read(path string, want settings) ([]record, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []record
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var r record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w: a run that was cut short; delete the line", path, n, err)
		}
		if r.Settings != want {
			return nil, fmt.Errorf("%s, line %d: a run with %+v, now %+v: give the same, or another -out", path, n, r.Settings, want)
		}
		out = append(out, r)
	}
	return out, lines.Err()
}

func done(list []record, name string, seed uint64) bool {
	for i := range list {
		if list[i].Variant == name && list[i].Seed == seed {
			return true
		}
	}
	return false
}

// add appends a run in one write, so that processes may share the file.
func add(path string, r *record) (err error) {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.Write(append(line, '\n'))
	return err
}
