package prometheus

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

// notAvailable is from where on a value is none. DCGM says 9223372036854775794
// and its neighbours for what it can't tell; a mean over some of them is still
// far above any rate.
const notAvailable = 1e15

// Counts say what became of what was asked.
type Counts struct {
	// Windows are those of nodes in which something measured ran; Samples what they
	// gave.
	Windows int `json:"windows"`
	Samples int `json:"samples"`
	// What was left out: windows in which pods came or went or had not settled, or
	// for which too little is known; of a workload without values, with values that
	// vary too much, or all 0.
	Unsettled int `json:"unsettled"`
	NoValue   int `json:"no_value"`
	Unsteady  int `json:"unsteady"`
	Idle      int `json:"idle"`
	// Values that are no numbers or infinite, and those that say "not available".
	NotFinite    int `json:"not_finite"`
	NotAvailable int `json:"not_available"`
	// Unplaced are series of pods that were on no node.
	Unplaced int `json:"unplaced"`
	// Blind are steps at which kube-state-metrics said nothing.
	Blind int `json:"blind_steps"`
}

// Left is how many windows, and workloads in windows, gave no sample.
func (c Counts) Left() int { return c.Unsettled + c.NoValue + c.Unsteady + c.Idle }

// Words say what was left out; "" where nothing was.
func (c Counts) Words() string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{
		{c.Unsettled, "windows in which pods came, went or had not settled"},
		{c.NoValue, "workloads in windows without values"},
		{c.Unsteady, "that varied too much"},
		{c.Idle, "that did nothing"},
		{c.NotFinite, "values that are NaN, infinite or negative"},
		{c.NotAvailable, "values that say not available"},
		{c.Unplaced, "series of pods that were on no node"},
		{c.Blind, "steps at which kube-state-metrics said nothing"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("of %d windows left out: %s", c.Windows, strings.Join(parts, ", "))
}

// Add adds up what became of several parts.
func (c *Counts) Add(o Counts) {
	c.Windows += o.Windows
	c.Samples += o.Samples
	c.Unsettled += o.Unsettled
	c.NoValue += o.NoValue
	c.Unsteady += o.Unsteady
	c.Idle += o.Idle
	c.NotFinite += o.NotFinite
	c.NotAvailable += o.NotAvailable
	c.Unplaced += o.Unplaced
	c.Blind += o.Blind
}

// values are what a query says of each pod, by step; NaN where nothing.
type values map[string][]float64

// valuesOf sorts the series of a query by pod.
func valuesOf(series []Series, g grid, counts *Counts) (values, error) {
	out, from := values{}, map[string]map[string]string{}
	for i := range series {
		s := &series[i]
		id, ok := s.pod()
		if !ok {
			return nil, fmt.Errorf("a series %s names no pod: aggregate by (namespace, pod), or (exported_namespace, exported_pod) where those are there", labels(s.Labels))
		}
		row := out[id]
		if row == nil {
			row = make([]float64, g.n)
			for k := range row {
				row[k] = math.NaN()
			}
			out[id] = row
		}
		for j, t := range s.Times {
			k := g.index(t)
			v := s.Values[j]
			switch {
			case k < 0:
			case math.IsNaN(v) || math.IsInf(v, 0) || v < 0:
				counts.NotFinite++
			case v >= notAvailable:
				counts.NotAvailable++
			case !math.IsNaN(row[k]):
				return nil, fmt.Errorf("two series of pod %s at %s: %s and %s; aggregate them, such as sum by (namespace, pod) (...)",
					id, t.Format(time.RFC3339), labels(from[id]), labels(s.Labels))
			default:
				row[k] = v
			}
		}
		from[id] = s.Labels
	}
	return out, nil
}

// measured are the values of a workload.
type measured struct {
	workload *Workload
	by       map[history.Metric]values
}

// windows makes the samples of the steps from lead on.
func (p *placement) windows(c *Config, ms []measured, lead int, counts *Counts) []history.Sample {
	per := int(c.Window / c.Step)
	need := int((time.Duration(c.Settle) + p.step - 1) / p.step)
	var out []history.Sample
	for k := lead; k < p.n; k++ {
		if !p.known[k] {
			counts.Blind++
		}
	}
	for _, node := range p.nodes() {
		since := p.settled(c, node)
		for first := lead; first+per <= p.n; first += per {
			steps := usable(since[first:first+per], need)
			for i := range steps {
				steps[i] += first
			}
			if !p.runs(ms, node, first, per) {
				continue
			}
			counts.Windows++
			if len(steps) < max(2, (per+1)/2) {
				counts.Unsettled++
				continue
			}
			out = append(out, p.window(c, ms, node, steps, counts)...)
		}
	}
	counts.Samples += len(out)
	return out
}

// usable are the steps of the longest stretch of a window in which the pods are
// the same and have settled.
func usable(since []int, need int) []int {
	var best, now []int
	for k, s := range since {
		if s < need {
			now = nil
			continue
		}
		if k > 0 && s != since[k-1]+1 {
			now = nil
		}
		if now = append(now, k); len(now) > len(best) {
			best = slices.Clone(now)
		}
	}
	return best
}

// runs reports whether something measured ran on the node in a window.
func (p *placement) runs(ms []measured, node string, first, per int) bool {
	for _, l := range p.on[node] {
		if !slices.ContainsFunc(ms, func(m measured) bool { return m.workload.Name == l.workload }) {
			continue
		}
		if slices.Contains(l.state[first:first+per], running) {
			return true
		}
	}
	return false
}

// window makes the samples of a node over steps at which its pods were the same.
func (p *placement) window(c *Config, ms []measured, node string, steps []int, counts *Counts) []history.Sample {
	on := cluster.Colocation{}
	pods := map[string][]string{} // by workload
	for _, l := range p.on[node] {
		if l.state[steps[0]] == running && !c.isBackground(l) {
			on[l.workload]++
			pods[l.workload] = append(pods[l.workload], l.id)
		}
	}
	var out []history.Sample
	for _, m := range ms {
		if on[m.workload.Name] == 0 {
			continue
		}
		for _, metric := range []history.Metric{history.Rate, history.P99} {
			of, asked := m.by[metric]
			if !asked {
				continue
			}
			mean, spread, n := of.over(pods[m.workload.Name], steps)
			switch {
			case n < max(2, (len(steps)+1)/2):
				counts.NoValue++
				continue
			case mean == 0:
				counts.Idle++
				continue
			case *c.Variation > 0 && spread > *c.Variation*mean:
				counts.Unsteady++
				continue
			}
			s := history.Sample{
				Source: source, Start: p.at(steps[0]), End: p.at(steps[len(steps)-1]), Class: p.class[node], Scope: history.ScopeNode,
				Colocation: on, Workload: m.workload.Name, Role: cluster.Replica, Metric: metric, Value: mean, Repeats: n, Spread: spread,
			}
			if s.Validate() != nil {
				counts.NoValue++ // a neighbour's name that a co-location can't hold
				continue
			}
			out = append(out, s)
		}
	}
	return out
}

// source is who measured, in samples.
const source = "prometheus"

// over is the mean over steps of the mean over the pods, where all of them have
// a value, with the standard deviation over the n steps that have.
func (of values) over(pods []string, steps []int) (mean, spread float64, n int) {
	var sum, squares float64
	for _, k := range steps {
		total := 0.0
		for _, id := range pods {
			row := of[id]
			if row == nil {
				return 0, 0, 0
			}
			total += row[k] // NaN stays
		}
		if math.IsNaN(total) {
			continue
		}
		v := total / float64(len(pods))
		sum += v
		squares += v * v
		n++
	}
	if n == 0 {
		return 0, 0, 0
	}
	mean = sum / float64(n)
	if n > 1 {
		spread = math.Sqrt(max(0, squares-sum*mean) / float64(n-1))
	}
	return mean, spread, n
}
