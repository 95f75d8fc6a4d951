package main

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"

	"github.com/cotenant/cotenant/sim/compare"
)

// score is how one run did.
type score struct {
	spread, greedyWait float64 // mean over test streams of mean JCT / theirs
	closed             float64 // of the gap from spread to greedy:truth, mean over loads
	wait               float64 // mean over test streams of the longest wait / greedy-wait's
	differ             float64 // share of choices in which the warm start differs
	gain               float64 // 1 - validation JCT / that of the warm start, at the look kept
	seconds, cpu       float64 // until 95 % of that; NaN where there was no gain
}

// scoreOf holds a run against the rules, stream by stream.
func scoreOf(r, rules *record) score {
	s := score{seconds: math.NaN(), cpu: math.NaN()}
	n := float64(len(r.Streams))
	gained, gap := map[float64]float64{}, map[float64]float64{}
	choices, differ := 0, 0
	for i := range r.Streams {
		x, ref := &r.Streams[i], &rules.Streams[i]
		jct := x.JCT[r.Variant]
		s.spread += jct / ref.JCT[compare.Spread] / n
		s.greedyWait += jct / ref.JCT[greedyWait] / n
		s.wait += x.Wait[r.Variant] / ref.Wait[greedyWait] / n
		gained[x.Load] += ref.JCT[compare.Spread] - jct
		gap[x.Load] += ref.JCT[compare.Spread] - ref.JCT[oracle]
		choices += x.Choices
		differ += x.Differ
	}
	for _, load := range loads {
		s.closed += gained[load] / gap[load] / float64(len(loads))
	}
	if choices > 0 {
		s.differ = float64(differ) / float64(choices)
	}
	s.speed(r)
	return s
}

// speed reads off the curve when 95 % of the gain was reached.
func (s *score) speed(r *record) {
	if len(r.Curve) == 0 {
		return
	}
	first, best := r.Curve[0].GreedyWait, math.Inf(1)
	for _, l := range r.Curve {
		best = min(best, l.GreedyWait)
	}
	s.gain = 1 - best/first
	if s.gain <= 0 {
		return
	}
	for _, l := range r.Curve {
		if 1-l.GreedyWait/first >= 0.95*s.gain {
			s.seconds, s.cpu = l.Seconds, l.CPUSeconds
			return
		}
	}
}

// print writes the table.
func print(out io.Writer, results []record) error {
	var reference *record
	of := map[string]map[uint64]score{}
	for i := range results {
		if results[i].Variant == rules {
			reference = &results[i]
		}
	}
	if reference == nil {
		_, err := fmt.Fprintln(out, "no table yet: the run named rules is missing, which all are held against")
		return err
	}
	for i := range results {
		r := &results[i]
		if r.Variant == rules {
			continue
		}
		if of[r.Variant] == nil {
			of[r.Variant] = map[uint64]score{}
		}
		of[r.Variant][r.Seed] = scoreOf(r, reference)
	}
	t := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	fmt.Fprintln(t, "| variant\t| seeds\t| JCT / spread\t| JCT / greedy-wait\t| less that of full\t| gap closed\t| longest wait / greedy-wait\t| differs\t| validation gain\t| s of CPU to 95 %\t|")
	fmt.Fprintln(t, "| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t|")
	for _, v := range variants {
		if len(of[v.name]) > 0 {
			row(t, v, of)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return rivals(out, reference)
}

// row writes a variant: means and standard deviations over the seeds; the
// difference to full is paired by seed, with its standard error.
func row(t io.Writer, v variant, of map[string]map[uint64]score) {
	var spread, wait, closed, longest, differ, gain, cpu, less []float64
	for seed := range uint64(1 << 16) {
		s, ok := of[v.name][seed]
		if !ok {
			continue
		}
		spread, wait, closed = append(spread, s.spread), append(wait, s.greedyWait), append(closed, 100*s.closed)
		longest = append(longest, s.wait)
		differ, gain = append(differ, 100*s.differ), append(gain, 100*s.gain)
		if !math.IsNaN(s.cpu) {
			cpu = append(cpu, s.cpu)
		}
		if other, ok := of[full][seed]; ok {
			less = append(less, s.greedyWait-other.greedyWait)
		}
	}
	difference := "-"
	if v.name != full && len(less) > 1 {
		mean, sd := meanSpread(less)
		difference = fmt.Sprintf("%+.3f (%.3f)", mean, sd/math.Sqrt(float64(len(less))))
	}
	fmt.Fprintf(t, "| %s: %s\t| %d\t| %s\t| %s\t| %s\t| %s\t| %s\t| %s\t| %s\t| %s\t|\n", v.name, v.what, len(spread),
		cell("%.3f", spread), cell("%.3f", wait), difference, cell("%.0f %%", closed), cell("%.2f", longest),
		cell("%.1f %%", differ), cell("%.1f %%", gain), cell("%.0f", cpu))
}

// rivals writes what the rules are worth by themselves.
func rivals(out io.Writer, r *record) error {
	ratios := map[string][]float64{}
	for _, s := range r.Streams {
		for _, name := range []string{greedyWait, oracle} {
			ratios[name] = append(ratios[name], s.JCT[name]/s.JCT[compare.Spread])
		}
	}
	_, err := fmt.Fprintf(out, "\nOver %d test streams, JCT / spread: %s %s, %s %s.\n", len(r.Streams),
		greedyWait, cell("%.3f", ratios[greedyWait]), oracle, cell("%.3f", ratios[oracle]))
	return err
}

// cell is mean +- standard deviation.
func cell(format string, values []float64) string {
	if len(values) == 0 {
		return "-"
	}
	mean, sd := meanSpread(values)
	if len(values) == 1 {
		return fmt.Sprintf(format, mean)
	}
	return fmt.Sprintf(format+" +- "+format, mean, sd)
}

// meanSpread is the mean and the sample standard deviation.
func meanSpread(values []float64) (mean, sd float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		sd += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(sd / float64(max(1, len(values)-1)))
}
