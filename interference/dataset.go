package interference

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

// ErrNoSamples is returned by Fit where there is nothing to learn from.
var ErrNoSamples = errors.New("no samples: measure some with `cotenant profile` or read some with `cotenant import`")

// metrics fixes the order in which arrays over metrics are laid out, in
// memory and in model files.
var metrics = []history.Metric{history.Rate, history.P50, history.P99}

// member is one workload of a co-location: its index in space.workloads and
// its number of tasks.
type member struct{ workload, count int }

// observation is what was measured of one cell: the mean ratio to alone and
// the standard deviation of that mean's error.
type observation struct {
	value, std float64
	measured   bool
}

// row is one co-location on one class, with an observation per metric and
// member. Members are sorted by workload.
type row struct {
	class   int
	members []member
	obs     [][]observation // by metric, nil where nothing was measured
}

func (r row) tasks() int {
	n := 0
	for _, m := range r.members {
		n += m.count
	}
	return n
}

// dataset is the samples of one Fit, pooled by cell. Rows are in the order in
// which their co-location first appears, so that results depend on the order
// of the samples but on nothing else.
type dataset struct {
	space
	rows  []row
	index []map[string]int // by class: key -> row
}

// atFault is an error about one sample; it implements history.Culprits.
type atFault struct {
	sample history.Sample
	error
}

func (a atFault) Unwrap() error              { return a.error }
func (a atFault) Culprits() []history.Sample { return []history.Sample{a.sample} }

// usable says whether a sample describes tasks that share one node or device.
// The rate of a job of several workers is set by all places that they sit in.
func usable(s history.Sample) bool {
	return s.Scope != history.ScopeRack && s.Span != cluster.SpanRack && s.Span != cluster.SpanApart && s.Workers <= 1
}

// cells validates samples and merges the repeats of each cell, of the given
// metrics or of all. Samples over more than a node are left out: a co-location
// here is what one node or device holds, whatever the task's role, and its
// batch size is part of the workload's name.
func cells(samples []history.Sample, want []history.Metric) ([]history.Sample, error) {
	if len(samples) == 0 {
		return nil, ErrNoSamples
	}
	kept := make([]history.Sample, 0, len(samples))
	for i, s := range samples {
		if err := s.Validate(); err != nil {
			return nil, fmt.Errorf("sample %d: %w", i, atFault{s, fmt.Errorf("%s: %w", s.Cell(), err)})
		}
		if s.Colocation.Tasks() > maxCount {
			return nil, fmt.Errorf("sample %d: colocation: %d tasks on one node; at most %d", i, s.Colocation.Tasks(), maxCount)
		}
		// A latency of 0 is how files write "not measured".
		if !usable(s) || s.Metric != history.Rate && s.Value == 0 || len(want) > 0 && !slices.Contains(want, s.Metric) {
			continue
		}
		s.Scope, s.Span, s.Role, s.Job, s.BatchSize = history.ScopeNode, "", "", "", 0
		kept = append(kept, s)
	}
	if len(kept) == 0 {
		if len(want) > 0 {
			return nil, fmt.Errorf("none of %d samples has metric %s on a single node or device: %w", len(samples), want[0], ErrNoSamples)
		}
		return nil, fmt.Errorf("none of %d samples was measured on a single node or device: %w", len(samples), ErrNoSamples)
	}
	sum := history.Summarise(kept)
	if n := len(sum.Contradictions); n == 1 {
		return nil, fmt.Errorf("contradictory samples: %w", sum.Contradictions[0])
	} else if n > 1 {
		return nil, fmt.Errorf("contradictory samples: %w (and %d more cells)", sum.Contradictions[0], n-1)
	}
	alone := aloneOf(sum.Samples)
	for _, s := range kept {
		if s.Alone == 0 && !s.Colocation.Alone() {
			if err := s.CheckAgainst(alone[s.Cell().AloneCell()]); err != nil {
				return nil, atFault{s, fmt.Errorf("%s: %w", s.Cell(), err)}
			}
		}
	}
	return sum.Samples, withAlone(sum.Samples, alone)
}

// aloneOf are the values of single tasks.
func aloneOf(cells []history.Sample) map[history.Cell]float64 {
	alone := map[history.Cell]float64{}
	for _, s := range cells {
		if s.Colocation.Alone() {
			alone[s.Cell()] = s.Value
		}
	}
	return alone
}

// withAlone fills in Alone from the samples of single tasks.
func withAlone(cells []history.Sample, alone map[history.Cell]float64) error {
	for i, s := range cells {
		measured := false
		if s.Alone == 0 {
			cells[i].Alone, measured = alone[s.Cell().AloneCell()]
		}
		if cells[i].Alone == 0 && measured {
			still := history.Sample{Class: s.Class, Colocation: cluster.Colocation{s.Workload: 1}, Workload: s.Workload, Metric: s.Metric}
			return atFault{still, fmt.Errorf("%s: the %s of %s alone was measured as 0, from which no performance can be reckoned: measure %s alone again, or remove its samples",
				s.Cell(), s.Metric, s.Workload, s.Workload)}
		}
		if cells[i].Alone == 0 {
			return fmt.Errorf("%s: its %s alone is unknown: measure %s alone, or give the field \"alone\"", s.Cell(), s.Metric, s.Workload)
		}
	}
	return nil
}

// newDataset arranges samples, each a cell of its own with Alone known.
func newDataset(cells []history.Sample) *dataset {
	d := &dataset{space: namesOf(cells)}
	d.index = make([]map[string]int, len(d.classes))
	for c := range d.index {
		d.index[c] = map[string]int{}
	}
	for _, s := range cells {
		class, _ := slices.BinarySearch(d.classes, s.Class)
		metric := slices.Index(metrics, s.Metric)
		ms, _ := d.members(s.Colocation)
		r := &d.rows[d.row(class, ms)]
		if r.obs[metric] == nil {
			r.obs[metric] = make([]observation, len(ms))
		}
		w, _ := slices.BinarySearch(d.workloads, s.Workload)
		i := slices.IndexFunc(ms, func(m member) bool { return m.workload == w })
		r.obs[metric][i] = observation{s.Value / s.Alone, s.Spread / math.Sqrt(float64(max(s.Repeats, 1))) / s.Alone, true}
		d.known[class][metric][w] = true
	}
	d.implyAlone()
	return d
}

// gather is what Fit learns from.
func gather(samples []history.Sample, want []history.Metric) (*dataset, error) {
	cells, err := cells(samples, want)
	if err != nil {
		return nil, err
	}
	return newDataset(cells), nil
}

func namesOf(samples []history.Sample) space {
	var classes, workloads []string
	seenClass, seenWorkload := map[string]bool{}, map[string]bool{}
	for _, s := range samples {
		if !seenClass[s.Class] {
			seenClass[s.Class] = true
			classes = append(classes, s.Class)
		}
		for w := range s.Colocation {
			if !seenWorkload[w] {
				seenWorkload[w] = true
				workloads = append(workloads, w)
			}
		}
	}
	slices.Sort(classes)
	slices.Sort(workloads)
	return newSpace(classes, workloads)
}

// row finds or adds the row of a co-location.
func (d *dataset) row(class int, ms []member) int {
	k := key(ms)
	if r, ok := d.index[class][k]; ok {
		return r
	}
	d.index[class][k] = len(d.rows)
	r := row{class: class, members: ms, obs: make([][]observation, len(metrics))}
	d.rows, d.most[class] = append(d.rows, r), max(d.most[class], r.tasks())
	return len(d.rows) - 1
}

// shared counts the co-locations of several tasks that were measured by a metric
// (its number in metrics).
func (d *dataset) shared(metric int) int {
	n := 0
	for _, r := range d.rows {
		if r.obs[metric] != nil && r.tasks() > 1 {
			n++
		}
	}
	return n
}

// implyAlone adds the rows of single tasks that no sample states by itself:
// whoever measured a ratio to alone measured alone, and that ratio is 1.
func (d *dataset) implyAlone() {
	for c := range d.classes {
		for w := range d.workloads {
			for m := range metrics {
				if !d.known[c][m][w] {
					continue
				}
				r := &d.rows[d.row(c, []member{{w, 1}})]
				if r.obs[m] == nil {
					r.obs[m] = []observation{{value: 1, measured: true}}
				}
			}
		}
	}
}
