package bench

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/data"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/interference"
)

// Truth is a table of measured co-locations by which placements are judged.
type Truth struct {
	// Name says where it comes from.
	Name string
	// Workloads that it knows, sorted, and Slots, the largest number of tasks on
	// a node up to which every co-location of them was measured.
	Workloads []string
	Slots     int

	model interference.Model
}

// ReadTruth reads samples in any format that `cotenant fit` reads; "" is the
// samples that ship with Cotenant.
func ReadTruth(path string) (*Truth, error) {
	name := path
	var samples []history.Sample
	var err error
	if path == "" {
		name = "data/samples.jsonl"
		samples, err = data.Samples()
	} else {
		samples, _, err = formats.ReadFile(path, formats.Options{}, formats.ReadSamples)
		samples = history.Joined(samples)
	}
	if err != nil {
		return nil, err
	}
	return NewTruth(name, samples)
}

// NewTruth makes a table of samples. There must be one class of nodes, since
// the nodes of a plane are alike, and all co-locations of two tasks at least.
func NewTruth(name string, samples []history.Sample) (*Truth, error) {
	model, err := interference.Fit(interference.KindTable, samples, interference.Options{Metrics: []history.Metric{history.Rate}})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	classes := model.Classes()
	if len(classes) != 1 {
		return nil, fmt.Errorf("%s: measured on classes %q, want one", name, classes)
	}
	t := &Truth{Name: name, Workloads: model.Workloads(classes[0]), model: model}
	for t.complete(classes[0], t.Slots+1) {
		t.Slots++
	}
	if t.Slots < 2 {
		return nil, fmt.Errorf("%s: not all co-locations of two of %q were measured", name, t.Workloads)
	}
	return t, nil
}

// complete tells whether every co-location of that many tasks was measured.
func (t *Truth) complete(class string, tasks int) bool {
	const most = 100_000
	var all []cluster.Colocation
	var add func(from, left int, c cluster.Colocation)
	add = func(from, left int, c cluster.Colocation) {
		if left == 0 {
			all = append(all, c)
		}
		for w := from; left > 0 && w < len(t.Workloads) && len(all) <= most; w++ {
			add(w, left-1, c.With(t.Workloads[w]))
		}
	}
	add(0, tasks, cluster.Colocation{})
	if len(all) > most {
		return false
	}
	for _, row := range t.model.Predict(class, history.Rate, all) {
		if slices.ContainsFunc(row, func(e interference.Estimate) bool { return !e.Known }) {
			return false
		}
	}
	return true
}

// Save writes the table as a model file, for schedulers that place by it.
func (t *Truth) Save(path string) error {
	var file bytes.Buffer
	if err := interference.Save(&file, t.model); err != nil {
		return fmt.Errorf("%s: %w", t.Name, err)
	}
	return os.WriteFile(path, file.Bytes(), 0o600)
}

// Shared is a file of the data that the project is measured on, found from the
// root of the repository; "" where it is absent, as it is in most copies.
func Shared(name string) string {
	here, err := os.Getwd()
	if err != nil {
		return ""
	}
	for at := here; at != filepath.Dir(at); at = filepath.Dir(at) {
		path := filepath.Join(at, "..", "shared", "data", name)
		_, root := os.Stat(filepath.Join(at, "kubernetes", "go.mod"))
		if _, err := os.Stat(path); err == nil && root == nil {
			return path
		}
	}
	return ""
}
