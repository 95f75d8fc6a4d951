package bench

import (
	"math"
	"strings"

	dto "github.com/prometheus/client_model/go"
)

// quantile is the q-quantile of a histogram over all its labels: the straight
// line within the bucket that holds it, as histogram_quantile of Prometheus
// has it. It is at most the upper end of the last finite bucket, and 0 where
// nothing was observed.
func quantile(f *dto.MetricFamily, q float64) float64 {
	var ends []float64
	var counts []float64 // cumulative
	total := 0.0
	for _, m := range f.GetMetric() {
		h := m.GetHistogram()
		total += float64(h.GetSampleCount())
		for i, b := range h.GetBucket() {
			if i == len(ends) {
				ends, counts = append(ends, b.GetUpperBound()), append(counts, 0)
			}
			counts[i] += float64(b.GetCumulativeCount())
		}
	}
	from, before := 0.0, 0.0
	for i, end := range ends {
		if total == 0 || math.IsInf(end, 1) {
			break
		}
		if counts[i] >= q*total && counts[i] > before {
			return from + (end-from)*(q*total-before)/(counts[i]-before)
		}
		from, before = end, counts[i]
	}
	return from
}

// ByLabel sums a counter by the values of a label.
func ByLabel(f *dto.MetricFamily, label string) map[string]float64 {
	sums := map[string]float64{}
	for _, m := range f.GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == label {
				sums[l.GetValue()] += m.GetCounter().GetValue()
			}
		}
	}
	return sums
}

// totals are the counters and gauges whose names begin so, summed over labels.
func totals(all map[string]*dto.MetricFamily, prefix string) map[string]float64 {
	sums := map[string]float64{}
	for name, f := range all {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		for _, m := range f.GetMetric() {
			switch {
			case m.Counter != nil:
				sums[name] += m.Counter.GetValue()
			case m.Gauge != nil:
				sums[name] += m.Gauge.GetValue()
			}
		}
	}
	return sums
}
