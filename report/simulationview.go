package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
)

// simulationView is a Simulation in the words, numbers and shapes of its page.
type simulationView struct {
	Title, Created, Command string
	CSS                     template.CSS
	Tiles                   []tile
	Facts                   []Fact
	Over, Unit              string
	Rows                    []simulatedRow
	Bound                   string
	JCT, Queue              *linesView
	Sharing                 string
	Shares                  []shareView
	Heats                   []besideView
	Steps                   []legend
}

type simulatedRow struct {
	Name                                          name
	Class, Words                                  string
	Ratio, Closed, Mean, Median, P95, Wait, Error string
	Bar                                           barView
}

// linesView is a plot with one line a policy.
type linesView struct {
	W, H, Left, Right, Top, Bottom int
	X, Y                           axisView
	XLabel                         string
	Lines                          []curveView
}

func (v *linesView) TickX() int   { return v.Bottom + 16 }
func (v *linesView) LabelX() int  { return v.H - 6 }
func (v *linesView) TickY() int   { return v.Left - 6 }
func (v *linesView) MiddleX() int { return (v.Left + v.Right) / 2 }

func newLines(label string) *linesView {
	return &linesView{W: 720, H: 330, Left: 46, Right: 696, Top: 10, Bottom: 288, XLabel: label}
}

// manySeries is how many policies have a colour and dash of their own.
const manySeries = 8

func lineClass(i int) string { return fmt.Sprintf("s%d", i%manySeries) }

func newSimulationView(s Simulation) simulationView {
	v := simulationView{
		Title: s.Title, Command: s.Command, CSS: template.CSS(pageCSS + simulationCSS + paletteCSS()),
		Facts: s.Facts, Over: "one seed", Sharing: s.Sharing, Steps: stepLegend(), Bound: fixed(s.Bound, 3),
	}
	if v.Title == "" {
		v.Title = "Jobs by several policies"
	}
	if v.Sharing == "" {
		v.Sharing = "a device"
	}
	if s.Seeds > 1 {
		v.Over = "mean ± standard error over " + plural(s.Seeds, "seed", "seeds")
	}
	if !s.Created.IsZero() {
		v.Created = s.Created.UTC().Format("2 January 2006 15:04 MST")
	}
	unit, per := timeUnit(s)
	v.Unit = unit
	top := 1.0
	for _, p := range s.Policies {
		if known(p.Ratio) {
			top = max(top, p.Ratio+orZero(p.RatioError))
		}
	}
	for i, p := range s.Policies {
		row := simulatedRow{
			Name: breakable(p.Name), Class: lineClass(i), Words: p.Words, Error: p.Error,
			Ratio: plusMinus(p.Ratio, p.RatioError, fixed, 3), Closed: plusMinus(p.Closed, p.ClosedError, percent, 0),
			Mean: fixed(p.Mean/per, 2), Median: fixed(p.Median/per, 2), P95: fixed(p.P95/per, 1), Wait: fixed(p.LongestWait/per, 1),
		}
		if known(p.Ratio) {
			row.Bar = bar(p.Ratio/top, orZero(p.RatioError)/top, lineClass(i))
		}
		v.Rows = append(v.Rows, row)
	}
	v.Tiles = simulationTiles(s)
	v.JCT = jctLines(s.Policies, unit, per)
	v.Queue = queueLines(s.Policies, unit, per)
	v.shared(s)
	return v
}

func timeUnit(s Simulation) (name string, seconds float64) {
	longest := 0.0
	for _, p := range s.Policies {
		if known(p.Mean) {
			longest = max(longest, p.Mean)
		}
	}
	switch {
	case longest >= 2*3600:
		return "h", 3600
	case longest >= 2*60:
		return "min", 60
	}
	return "s", 1
}

func simulationTiles(s Simulation) []tile {
	best := -1
	for i, p := range s.Policies {
		if known(p.Ratio) && (best < 0 || p.Ratio < s.Policies[best].Ratio) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	p := s.Policies[best]
	out := []tile{
		{percent(p.Ratio-1, 1), "mean JCT of the best policy, " + p.Name + ", against spread"},
		{percent(s.Bound-1, 1), "at the very best: nobody waits or is slowed"},
	}
	if known(p.Closed) {
		out = append(out, tile{percent(p.Closed, 0), "of that gap closed by " + p.Name})
	}
	return out
}

// jctLines draws the share of jobs that took at most so long, on a logarithmic
// axis: times of jobs differ a hundredfold.
func jctLines(policies []Simulated, unit string, per float64) *linesView {
	low, high := math.Inf(1), 0.0
	sorted := make([][]float64, len(policies))
	for i, p := range policies {
		for _, t := range p.JCTs {
			if known(t) && t > 0 {
				sorted[i] = append(sorted[i], t/per)
			}
		}
		slices.Sort(sorted[i])
		if n := len(sorted[i]); n > 0 {
			// The tails hold a few jobs, and would take half of the axis.
			low, high = min(low, quantile(sorted[i], .005)), max(high, quantile(sorted[i], .999))
		}
	}
	if !(high > 0) {
		return nil
	}
	if high <= low*1.01 {
		low, high = low/2, high*2
	}
	v := newLines("JCT, " + unit)
	x := scale{math.Log(high / low), float64(v.Left), float64(v.Right)}
	y := scale{1, float64(v.Bottom), float64(v.Top)}
	at := func(t float64) float64 { return math.Log(t / low) }
	for _, t := range logTicks(low, high) {
		v.X.Ticks = append(v.X.Ticks, tickView{x.px(at(t)), fmt.Sprintf("%g", t)})
	}
	v.Y = y.ticks(func(t float64) string { return fmt.Sprintf("%.0f %%", 100*t) })
	for i, p := range policies {
		if len(sorted[i]) == 0 {
			continue
		}
		var b strings.Builder
		const steps = 180
		for k := range steps + 1 {
			t := low * math.Exp(x.high*float64(k)/steps)
			below, _ := slices.BinarySearch(sorted[i], math.Nextafter(t, math.Inf(1)))
			fmt.Fprintf(&b, "%s,%s ", x.px(at(t)), y.px(float64(below)/float64(len(sorted[i]))))
		}
		v.Lines = append(v.Lines, curveView{p.Name, lineClass(i), strings.TrimSpace(b.String())})
	}
	return v
}

// logTicks are 1, 2 and 5 times powers of ten, or the powers alone where that
// would be too many.
func logTicks(low, high float64) []float64 {
	factors := []float64{1, 2, 5}
	if high/low > 3000 {
		factors = []float64{1}
	}
	var out []float64
	for power := math.Floor(math.Log10(low)); power <= math.Log10(high); power++ {
		for _, f := range factors {
			t := f * math.Pow(10, power)
			if t >= low && t <= high {
				out = append(out, math.Round(t*1e9)/1e9)
			}
		}
	}
	return out
}

// queueLines draws the number of jobs that wait: the highest in each part of
// the time axis, so that no peak is lost.
func queueLines(policies []Simulated, unit string, per float64) *linesView {
	end, most := 0.0, 0
	for _, p := range policies {
		for _, q := range p.Queue {
			end, most = max(end, q.From/per), max(most, q.Queued)
		}
	}
	if end == 0 || most == 0 {
		return nil
	}
	v := newLines("time, " + unit)
	x := scale{end, float64(v.Left), float64(v.Right)}
	step := max(1, roundStep(float64(most)/5))
	y := scale{math.Ceil(float64(most)/step) * step, float64(v.Bottom), float64(v.Top)}
	number := func(t float64) string { return fmt.Sprintf("%g", math.Round(t*1e6)/1e6) }
	v.X, v.Y = x.ticks(number), y.ticks(number)
	for i, p := range policies {
		if len(p.Queue) == 0 {
			continue
		}
		const parts = 240
		var b strings.Builder
		at, now := 0, 0
		for k := range parts {
			to := end * float64(k+1) / parts
			high := now
			for at < len(p.Queue) && p.Queue[at].From/per < to {
				now = p.Queue[at].Queued
				high = max(high, now)
				at++
			}
			fmt.Fprintf(&b, "%s,%s ", x.px(end*(float64(k)+.5)/parts), y.px(float64(high)))
		}
		v.Lines = append(v.Lines, curveView{p.Name, lineClass(i), strings.TrimSpace(b.String())})
	}
	return v
}
