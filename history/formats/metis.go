package formats

import (
	"fmt"
	"math"
	"strings"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

// metis turns rows of Metis's tables into samples, for both forms of the
// file. A row is a co-location: tasks by workload, and each workload's rate
// (normalised: 1 = alone) and latencies (s), NaN where there is none.
type metis struct {
	*reporter
	workloads []string
	// zeros and measured count latencies of 0 and others, by latency metric and
	// workload: a program that was never measured has 0 everywhere.
	zeros, measured [2][]int
	// empty counts rows without tasks, stalled rates of 0.
	empty, stalled int
	// gaps counts latencies missing where tasks run.
	gaps int
}

// latencies are the metrics of row's latency arguments.
var latencies = [2]history.Metric{history.P50, history.P99}

func newMetis(r *reporter, workloads []string) (*metis, error) {
	if err := checkColumns(workloads); err != nil {
		return nil, r.fatal("columns: %w", err)
	}
	if r.Source == "" {
		r.Source = "metis"
	}
	m := &metis{reporter: r, workloads: workloads}
	for i := range latencies {
		m.zeros[i], m.measured[i] = make([]int, len(workloads)), make([]int, len(workloads))
	}
	return m, nil
}

// checkColumns refuses names that can't be those of workloads, a header that
// is a row of numbers among them.
func checkColumns(names []string) error {
	seen := map[string]bool{}
	for i, name := range names {
		probe := history.Sample{Colocation: cluster.Colocation{name: 1}, Workload: name, Metric: history.Rate}
		if err := probe.Validate(); err != nil {
			return fmt.Errorf("column %d: %w", i+1, err)
		}
		if _, _, err := parseNumber(name); err == nil {
			return fmt.Errorf("column %d: %q is a number, where the name of a workload belongs", i+1, name)
		}
		if seen[name] {
			return fmt.Errorf("column %d: workload %q comes a second time", i+1, name)
		}
		seen[name] = true
	}
	return nil
}

// row takes in one co-location, or reports it as bad. tasks and rate have an
// entry a workload; the latencies too, or are nil. raw is equal for equal rows.
func (m *metis) row(n int, raw []byte, tasks, rate []float64, latency [2][]float64) error {
	c, err := m.colocation(tasks)
	if err == nil {
		err = m.check(tasks, rate, latency)
	}
	if err == nil {
		err = m.sound(c, tasks, rate)
	}
	if err != nil {
		return m.bad(n, err)
	}
	m.Read++
	m.duplicate(raw)
	if len(c) == 0 {
		m.empty++
	}
	for w, name := range m.workloads {
		if tasks[w] == 0 {
			continue
		}
		s := history.Sample{Colocation: c, Workload: name, Role: cluster.Replica, Metric: history.Rate, Value: rate[w], Alone: 1}
		if s.Value == 0 {
			m.stalled++
		}
		if err := m.add(n, s); err != nil {
			return err
		}
		for i, metric := range latencies {
			if latency[i] == nil {
				continue
			}
			switch v := latency[i][w]; {
			case math.IsNaN(v):
				m.gaps++
			case v == 0:
				m.zeros[i][w]++
			default:
				m.measured[i][w]++
				s.Metric, s.Value, s.Alone = metric, v, 0
				if err := m.add(n, s); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (m *metis) colocation(tasks []float64) (cluster.Colocation, error) {
	c := cluster.Colocation{}
	for w, name := range m.workloads {
		k, err := wholeCount(tasks[w], maxCount)
		if err != nil {
			return nil, &fieldError{name, fmt.Sprint(tasks[w]), err}
		}
		if k > 0 {
			c[name] = k
		}
	}
	return c, nil
}

// check holds the measurements of a row against its tasks.
func (m *metis) check(tasks, rate []float64, latency [2][]float64) error {
	for w, name := range m.workloads {
		for i, values := range [3][]float64{rate, latency[0], latency[1]} {
			if values == nil {
				continue
			}
			field := [3]string{"rps", "rt50", "rt99"}[i] + "_" + name
			v := values[w]
			switch {
			case math.IsInf(v, 0) || v < 0:
				return badField(field, fmt.Sprint(v), "must be finite and not negative")
			case tasks[w] == 0 && v != 0 && !math.IsNaN(v):
				return badField(field, fmt.Sprint(v), "is a measurement where no task of %s runs", name)
			case tasks[w] > 0 && i == 0 && math.IsNaN(v):
				return badField(field, "NaN", "is no measurement, where %g tasks of %s run", tasks[w], name)
			}
		}
	}
	return nil
}

// sound refuses rates that can't be beside the 1 of a task alone.
func (m *metis) sound(c cluster.Colocation, tasks, rate []float64) error {
	for w, name := range m.workloads {
		if tasks[w] == 0 {
			continue
		}
		s := history.Sample{Colocation: c, Workload: name, Metric: history.Rate, Value: rate[w], Alone: 1}
		if err := s.CheckAgainst(s.Alone); err != nil {
			return fmt.Errorf("rps_%s: %w", name, err)
		}
	}
	return nil
}

// finish fills in the latencies alone and says what was left out.
func (m *metis) finish() ([]history.Sample, Report, error) {
	m.fillAlone()
	for i, metric := range latencies {
		var never, sometimes []string
		for w, name := range m.workloads {
			switch {
			case m.zeros[i][w] > 0 && m.measured[i][w] == 0:
				never = append(never, name)
			case m.zeros[i][w] > 0:
				sometimes = append(sometimes, fmt.Sprintf("%s (%d)", name, m.zeros[i][w]))
			}
		}
		if len(never) > 0 {
			m.warn("%s is 0 throughout for %s: not measured, left out", metric, strings.Join(never, ", "))
		}
		if len(sometimes) > 0 {
			m.warn("%s is 0 now and then for %s: no latency is 0, those are left out", metric, strings.Join(sometimes, ", "))
		}
	}
	if m.empty > 0 {
		m.warn("rows without a task: %d; nothing to take from them", m.empty)
	}
	if m.stalled > 0 {
		m.warn("rates of 0: %d; kept as measured", m.stalled)
	}
	if m.gaps > 0 {
		m.warn("latencies missing where tasks run: %d; left out", m.gaps)
	}
	if m.Duplicates > 0 {
		m.warn("rows equal to an earlier row: %d; kept as repeats", m.Duplicates)
	}
	return m.doneSamples()
}

// fillAlone gives each latency the mean of its workload's latencies alone,
// where it can be beside that: of rows alone that contradict each other none can,
// and who pools them says so.
func (m *metis) fillAlone() {
	type key struct {
		workload string
		metric   history.Metric
	}
	sum, n := map[key]float64{}, map[key]float64{}
	for _, s := range m.samples {
		if s.Metric != history.Rate && s.Colocation.Alone() {
			k := key{s.Workload, s.Metric}
			sum[k] += s.Value
			n[k]++
		}
	}
	unknown, odd := map[string]bool{}, 0
	for i := range m.samples {
		s := &m.samples[i]
		if s.Metric == history.Rate {
			continue
		}
		k := key{s.Workload, s.Metric}
		if n[k] == 0 {
			unknown[s.Workload] = true
			continue
		}
		if mean := sum[k] / n[k]; s.CheckAgainst(mean) == nil {
			s.Alone = mean
		} else {
			odd++
		}
	}
	if odd > 0 {
		m.warn("latencies that can't be beside the mean of those alone: %d; they have no value alone", odd)
	}
	if len(unknown) > 0 {
		m.warn("no row has %s alone: their latencies have no value alone", strings.Join(sortedKeys(unknown), ", "))
	}
}
