package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

type modelsView struct {
	Split    string
	Noise    string
	Rows     []modelRow
	Curves   *curvesView
	Scatters []scatterView
}

type modelRow struct {
	Name                                                           name
	Seeds, Learned, Answered, Mean, Median, P95, Coverage, Seconds string
	Bar                                                            barView
	Silent                                                         bool
}

// barView is a bar from 0 to a value with a whisker of its spread, in
// percent of the room.
type barView struct {
	Shown          bool
	Width          string
	Whisker        bool
	From, WhiskerW string
	Middle         string
	Class          string
}

// meanAbsolute is the mean size of a normally distributed error of standard
// deviation 1: the square root of 2/pi.
const meanAbsolute = .7979

func runValues(m Model, f func(Run) float64) []float64 {
	out := make([]float64, len(m.Runs))
	for i, r := range m.Runs {
		out[i] = f(r)
	}
	return out
}

// answersAll tells a model with an error from one that is silent on what it
// has not seen: a small error on a few cells is no merit.
func answersAll(m Model) bool {
	a, _ := meanAndSpread(runValues(m, func(r Run) float64 { return r.Answered }))
	return a > .99
}

func newModelsView(d Data) modelsView {
	models := d.Models
	v := modelsView{Split: d.Split}
	if known(d.Measured.Noise) {
		v.Noise = fmt.Sprintf("The measurements themselves are noisy: the standard error of a cell's mean is %s of it on average, so that no model's error can be expected to be much below %s.",
			percent(d.Measured.Noise, 1), percent(meanAbsolute*d.Measured.Noise, 1))
	}
	top := 0.0
	for _, m := range models {
		mean, spread := meanAndSpread(runValues(m, func(r Run) float64 { return r.Mean }))
		if known(mean) {
			top = max(top, mean+orZero(spread))
		}
	}
	for i, m := range models {
		stat := func(f func(Run) float64) (float64, float64) { return meanAndSpread(runValues(m, f)) }
		mean, spread := stat(func(r Run) float64 { return r.Mean })
		median, medianSpread := stat(func(r Run) float64 { return r.Median })
		p95, p95Spread := stat(func(r Run) float64 { return r.P95 })
		answered, _ := stat(func(r Run) float64 { return r.Answered })
		coverage, coverageSpread := stat(func(r Run) float64 { return r.Coverage })
		took, _ := stat(func(r Run) float64 { return r.Seconds })
		row := modelRow{
			Name: breakable(m.Kind), Seeds: count(len(m.Runs)), Answered: percent(answered, 0), Seconds: seconds(took),
			Mean: plusMinus(mean, spread, percent, 1), Median: plusMinus(median, medianSpread, percent, 1),
			P95: plusMinus(p95, p95Spread, percent, 1), Coverage: plusMinus(coverage, coverageSpread, percent, 0),
			Silent: !(answered > 0),
		}
		if len(m.Runs) > 0 {
			row.Learned = fmt.Sprintf("%s / %s", count(m.Runs[0].Train), count(m.Runs[0].HeldOut))
		}
		if known(mean) && top > 0 {
			row.Bar = bar(mean/top, orZero(spread)/top, seriesClass(i))
		}
		v.Rows = append(v.Rows, row)
	}
	v.Curves = newCurves(models)
	limit := scatterLimit(models)
	for i, m := range models {
		if len(m.Points) > 0 {
			v.Scatters = append(v.Scatters, newScatter(m, limit, seriesClass(i)))
		}
	}
	return v
}

func orZero(v float64) float64 {
	if known(v) {
		return v
	}
	return 0
}

func bar(share, spread float64, class string) barView {
	room := func(x float64) string { return fixed(100*min(max(x, 0), 1), 2) }
	b := barView{Shown: true, Width: room(share), Class: class, Middle: room(share)}
	if spread > 0 {
		b.Whisker, b.From, b.WhiskerW = true, room(share-spread), room(min(share+spread, 1)-max(share-spread, 0))
	}
	return b
}

// seriesClass is the colour and dash of the i-th model.
func seriesClass(i int) string { return fmt.Sprintf("s%d", i%4) }

// Plots have fixed sizes that fit a phone, so that their text is never scaled.
const (
	plotW, plotH                 = 276, 264
	left, right, plotTop, bottom = 44, 24, 10, 42
)

type axisView struct{ Ticks []tickView }

type tickView struct{ At, Text string }

// scale maps 0..high onto lo..hi pixels.
type scale struct{ high, lo, hi float64 }

func (s scale) at(v float64) float64 { return s.lo + (s.hi-s.lo)*v/s.high }

func (s scale) px(v float64) string { return fixed(s.at(v), 1) }

// ticks are at most six round steps.
func (s scale) ticks(format func(float64) string) axisView {
	var a axisView
	step := roundStep(s.high / 5)
	for i := 0; float64(i)*step <= s.high*1.0001; i++ {
		v := float64(i) * step
		a.Ticks = append(a.Ticks, tickView{s.px(v), format(v)})
	}
	return a
}

// roundStep is the smallest 1, 2, 2.5 or 5 times a power of ten from v up.
func roundStep(v float64) float64 {
	if !(v > 0) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 2.5, 5} {
		if m*power >= v*.9999 {
			return m * power
		}
	}
	return 10 * power
}

func xScale(high float64) scale { return scale{high, left, plotW - right} }

func yScale(high float64) scale { return scale{high, plotH - bottom, plotTop} }

type scatterView struct {
	Kind, Class, Words string
	X, Y               axisView
	EndX, EndY         string // the end of the diagonal
	Dots               []dotView
}

type dotView struct{ X, Y, Title string }

// mostDots keeps a page of four plots under a megabyte.
const mostDots = 500

func scatterLimit(models []Model) float64 {
	high := 0.0
	for _, m := range models {
		for _, p := range m.Points {
			if known(p.Measured) && known(p.Predicted) {
				high = max(high, p.Measured, p.Predicted)
			}
		}
	}
	step := roundStep(high / 5)
	return max(step, math.Ceil(high/step-1e-9)*step)
}

func newScatter(m Model, limit float64, class string) scatterView {
	x, y := xScale(limit), yScale(limit)
	number := func(v float64) string { return fmt.Sprintf("%g", math.Round(v*1e6)/1e6) }
	v := scatterView{
		Kind: m.Kind, Class: class, X: x.ticks(number), Y: y.ticks(number),
		EndX: x.px(limit), EndY: y.px(limit), Words: plural(len(m.Points), "held-out cell", "held-out cells"),
	}
	n := len(m.Points)
	shown := min(n, mostDots)
	if shown < n {
		v.Words += fmt.Sprintf(", %d of them drawn", shown)
	}
	for i := range shown {
		p := m.Points[i*n/shown]
		if !known(p.Measured) || !known(p.Predicted) {
			continue
		}
		v.Dots = append(v.Dots, dotView{
			x.px(p.Measured), y.px(max(0, p.Predicted)),
			fmt.Sprintf("%s in %s: measured %s, predicted %s", p.Workload, p.Colocation.Key(), fixed(p.Measured, 2), fixed(p.Predicted, 2)),
		})
	}
	return v
}

// curvesView is the share of held-out cells (upwards) whose error is at most
// so large (to the right), one line a model.
type curvesView struct {
	X, Y  axisView
	Lines []curveView
}

type curveView struct{ Kind, Class, Points string }

func newCurves(models []Model) *curvesView {
	errors := make([][]float64, len(models))
	high := 0.0
	for i, m := range models {
		for _, p := range m.Points {
			if e := math.Abs(p.Predicted-p.Measured) / p.Measured; known(e) {
				errors[i] = append(errors[i], e)
			}
		}
		slices.Sort(errors[i])
		if len(errors[i]) > 0 {
			high = max(high, quantile(errors[i], .95))
		}
	}
	if high == 0 {
		return nil
	}
	step := roundStep(high / 5)
	high = math.Ceil(high/step-1e-9) * step
	x, y := xScale(high), yScale(1)
	v := &curvesView{
		X: x.ticks(func(v float64) string { return fmt.Sprintf("%g %%", math.Round(v*1e6)/1e4) }),
		Y: y.ticks(func(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }),
	}
	for i, m := range models {
		if len(errors[i]) > 0 {
			v.Lines = append(v.Lines, curveView{m.Kind, seriesClass(i), curve(errors[i], x, y)})
		}
	}
	return v
}

func curve(sorted []float64, x, y scale) string {
	const steps = 120
	var b strings.Builder
	for i := range steps + 1 {
		e := x.high * float64(i) / steps
		below, _ := slices.BinarySearchFunc(sorted, e, func(v, t float64) int {
			if v <= t {
				return -1
			}
			return 1
		})
		fmt.Fprintf(&b, "%s,%s ", x.px(e), y.px(float64(below)/float64(len(sorted))))
	}
	return strings.TrimSpace(b.String())
}

// Geometry that the page's plots share.
func (modelsView) PlotW() int   { return plotW }
func (modelsView) PlotH() int   { return plotH }
func (modelsView) Left() int    { return left }
func (modelsView) Right() int   { return plotW - right }
func (modelsView) Top() int     { return plotTop }
func (modelsView) Bottom() int  { return plotH - bottom }
func (modelsView) TickX() int   { return plotH - bottom + 16 }
func (modelsView) TickY() int   { return left - 6 }
func (modelsView) LabelX() int  { return plotH - 6 }
func (modelsView) MiddleX() int { return (left + plotW - right) / 2 }
func (modelsView) MiddleY() int { return (plotTop + plotH - bottom) / 2 }
