package interference

import (
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

// table answers exactly what was measured and is silent elsewhere.
type table struct{ *dataset }

func (table) Kind() string { return KindTable }

// Predict implements Model.
func (t table) Predict(class string, metric history.Metric, cs []cluster.Colocation) [][]Estimate {
	out := make([][]Estimate, len(cs))
	c, okClass := slices.BinarySearch(t.classes, class)
	m := slices.Index(metrics, metric)
	for i, co := range cs {
		ms, ok := t.members(co)
		out[i] = make([]Estimate, len(co.Workloads()))
		if ok && okClass && m >= 0 {
			t.lookup(c, m, ms, out[i])
		}
	}
	return out
}

// lookup overwrites the estimates of the measured cells of one co-location.
func (t table) lookup(class, metric int, ms []member, out []Estimate) {
	r, ok := t.index[class][key(ms)]
	if !ok {
		return
	}
	for i, o := range t.rows[r].obs[metric] {
		if o.repeats > 0 {
			out[i] = Estimate{Value: o.value, Std: o.std, Known: true, Measured: true}
		}
	}
}
