package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cotenant/cotenant/cluster"
	"sigs.k8s.io/yaml"
)

// scenario is one row of a file in scenarios/. Exactly one of Plan, Fit, Jobs
// and Stream says what is done.
type scenario struct {
	Name string `json:"name"`
	// Plan places a batch with a policy; Fit learns a model and looks at its
	// error on what it did not see; Jobs replays jobs by several policies; Stream
	// lets services come and go under several.
	Plan   *planSpec   `json:"plan,omitempty"`
	Fit    *fitSpec    `json:"fit,omitempty"`
	Jobs   *jobsSpec   `json:"jobs,omitempty"`
	Stream *streamSpec `json:"stream,omitempty"`
	// Seeds is how many: 0, 1, ... 0 means 1.
	Seeds int `json:"seeds,omitempty"`
	// Smoke is how many of the seeds the quick run takes; 0: it leaves the
	// scenario out.
	Smoke  int     `json:"smoke,omitempty"`
	Checks []check `json:"checks"`

	file string
}

// check bounds a metric. Exactly one of AtLeast and AtMost is set.
type check struct {
	Metric  string   `json:"metric"`
	AtLeast *float64 `json:"at_least,omitempty"`
	AtMost  *float64 `json:"at_most,omitempty"`
	// Over says which statistic over the seeds is bounded: mean (the default),
	// min or max.
	Over string `json:"over,omitempty"`
	// Measured is what the bound was set from.
	Measured measured `json:"measured"`
	// Reason says why the bound is where it is.
	Reason string `json:"reason"`
}

type measured struct {
	Mean   float64 `json:"mean"`
	Spread float64 `json:"spread"` // standard deviation over seeds
	Date   string  `json:"date"`
}

// truthSpec names what judges: a file of measurements below the data folder,
// the data set that ships ("embedded"), or a generated truth. Of rates of
// training jobs (.json), Class takes one class of devices and Exclude leaves
// families of workloads out; pairs that do not fit together are left out too.
type truthSpec struct {
	File      string         `json:"file,omitempty"`
	Class     string         `json:"class,omitempty"`
	Exclude   []string       `json:"exclude,omitempty"`
	Embedded  bool           `json:"embedded,omitempty"`
	Generated *generatedSpec `json:"generated,omitempty"`
}

type generatedSpec struct {
	Workloads int    `json:"workloads"`
	Seed      uint64 `json:"seed"`
}

// modelSpec is what the policies see where it is not the truth: a model fitted
// on Train random co-locations of it, drawn by the seed, with every workload
// alone always among them. What was measured overrides what is predicted.
type modelSpec struct {
	Kind  string `json:"kind"`
	Train int    `json:"train"`
}

type planSpec struct {
	Truth truthSpec `json:"truth"`
	// Batch is FILE:ROW below the data folder; Tasks gives the counts by
	// workload instead; Total draws so many tasks of a generated truth.
	Batch string         `json:"batch,omitempty"`
	Tasks map[string]int `json:"tasks,omitempty"`
	Total int            `json:"total,omitempty"`

	Nodes int `json:"nodes"`
	Slots int `json:"slots"`
	// Zones labels the nodes with so many zones in turn; 0 labels nothing.
	Zones int `json:"zones,omitempty"`
	// Occupied is the share of all slots that tasks which don't move hold
	// already: random workloads on random nodes, by the seed, within the
	// constraints.
	Occupied    float64             `json:"occupied,omitempty"`
	Constraints cluster.Constraints `json:"constraints,omitempty"`

	Policy    string     `json:"policy"`
	Objective string     `json:"objective,omitempty"`
	Model     *modelSpec `json:"model,omitempty"`
	// Versus are policies that do the same; "share_above:NAME" is the
	// difference of shares, paired by seed.
	Versus []string `json:"versus,omitempty"`
}

type fitSpec struct {
	Truth truthSpec `json:"truth"`
	Kind  string    `json:"kind"`
	Train int       `json:"train"`
}

// load reads the scenarios of all YAML files of a folder, by file name.
func load(folder string) ([]scenario, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no *.yaml in %q; run from the repository's root or give -scenarios", folder)
	}
	slices.Sort(files)
	var all []scenario
	seen := map[string]string{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var rows []scenario
		if err := yaml.UnmarshalStrict(data, &rows); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for i := range rows {
			rows[i].file = filepath.Base(file)
			if err := rows[i].validate(); err != nil {
				return nil, fmt.Errorf("%s: scenario %d %q: %w", file, i, rows[i].Name, err)
			}
			if seen[rows[i].Name] != "" {
				return nil, fmt.Errorf("%s: scenario %q: also in %s; names are unique", file, rows[i].Name, seen[rows[i].Name])
			}
			seen[rows[i].Name] = file
		}
		all = append(all, rows...)
	}
	return all, nil
}

func (s *scenario) validate() error {
	kinds := 0
	for _, given := range []bool{s.Plan != nil, s.Fit != nil, s.Jobs != nil, s.Stream != nil} {
		if given {
			kinds++
		}
	}
	switch {
	case s.Name == "":
		return errors.New("no name")
	case kinds != 1:
		return errors.New("give one of plan, fit, jobs and stream")
	case s.Seeds < 0 || s.Smoke < 0 || s.Smoke > max(s.Seeds, 1):
		return fmt.Errorf("seeds %d, smoke %d: smoke is a number of the seeds", s.Seeds, s.Smoke)
	case len(s.Checks) == 0:
		return errors.New("no checks; a scenario that nothing is held against measures nothing")
	}
	s.Seeds = max(s.Seeds, 1)
	known := fitMetrics
	switch {
	case s.Plan != nil:
		known = withAbove(planMetrics, s.Plan.Versus)
	case s.Jobs != nil:
		if err := s.Jobs.validate(); err != nil {
			return err
		}
		known = s.Jobs.metrics()
	case s.Stream != nil:
		if err := s.Stream.validate(); err != nil {
			return err
		}
		known = withAbove(streamMetrics, s.Stream.Versus)
	}
	for i, c := range s.Checks {
		if !slices.Contains(known, c.Metric) {
			return fmt.Errorf("check %d: metric %q is none of %s", i, c.Metric, strings.Join(known, ", "))
		}
		if err := c.validate(); err != nil {
			return fmt.Errorf("check %d: %w", i, err)
		}
	}
	return nil
}

// withAbove adds the paired differences to metrics.
func withAbove(metrics, versus []string) []string {
	known := slices.Clone(metrics)
	for _, v := range versus {
		known = append(known, aboveMetric+v)
	}
	return known
}

func (c check) validate() error {
	switch {
	case (c.AtLeast == nil) == (c.AtMost == nil):
		return errors.New("give either at_least or at_most")
	case !slices.Contains([]string{"", "mean", "min", "max"}, c.Over):
		return fmt.Errorf("over %q is none of mean, min, max", c.Over)
	case c.Measured.Date == "":
		return errors.New("measured has no date; a bound is set from a measurement")
	case c.Reason == "":
		return errors.New("no reason; say why the bound is where it is")
	}
	return nil
}

// holds tells whether the values of a metric over the seeds keep the bound.
// NaN keeps none.
func (c check) holds(values []float64) bool {
	v := c.statistic(values)
	if c.AtLeast != nil {
		return v >= *c.AtLeast
	}
	return v <= *c.AtMost
}

func (c check) statistic(values []float64) float64 {
	switch c.Over {
	case "min":
		return slices.Min(values)
	case "max":
		return slices.Max(values)
	}
	mean, _ := meanAndSpread(values)
	return mean
}

// bound is the check in words.
func (c check) bound() string {
	over := ""
	if c.Over != "" && c.Over != "mean" {
		over = " (" + c.Over + ")"
	}
	if c.AtLeast != nil {
		return fmt.Sprintf(">= %g%s", *c.AtLeast, over)
	}
	return fmt.Sprintf("<= %g%s", *c.AtMost, over)
}
