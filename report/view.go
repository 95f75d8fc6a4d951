package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
)

// view is Data in the words, numbers and shapes of the page.
type view struct {
	Title, Created, Command string
	CSS                     template.CSS
	Tiles                   []tile
	Facts                   []fact
	Classes                 []classView
	Models                  modelsView
	Plan                    planView
	Maps                    mapsView
	Jobs                    *simulationView
	Steps                   []legend
}

// tile is one figure worth knowing first.
type tile struct{ Figure, Words string }

type fact struct{ Name, Text string }

// legend is a step of the performance palette, by its class.
type legend struct{ Class, Text string }

// heat is one coloured cell of a table.
type heat struct{ Class, Text, Small, Title string }

type classView struct {
	Name      string
	HasRates  bool
	Workloads []workloadRow
	Columns   []name
	Pairs     []heatRow
	Tails     []heatRow
	Sizes     []string
	Falls     []heatRow
}

type workloadRow struct {
	Name                      name
	Note, Alone, Spread, Tail string
}

type heatRow struct {
	Name  name
	Cells []heat
}

func newView(d Data) view {
	v := view{
		Title: d.Title, Command: d.Command, CSS: template.CSS(pageCSS + simulationCSS + paletteCSS()),
		Facts: facts(d.Measured), Models: newModelsView(d), Plan: newPlanView(d.Plan),
		Maps: newMapsView(d), Steps: stepLegend(),
	}
	if v.Title == "" {
		v.Title = "Co-located workloads"
	}
	if !d.Created.IsZero() {
		v.Created = d.Created.UTC().Format("2 January 2006 15:04 MST")
	}
	for _, c := range d.Measured.Classes {
		v.Classes = append(v.Classes, newClassView(c, d.Measured.Notes, d.Measured.Units))
	}
	v.Tiles = tiles(d)
	if d.Jobs != nil {
		jobs := newSimulationView(*d.Jobs)
		v.Jobs = &jobs
		v.Tiles = append(v.Tiles, jobs.Tiles[:min(1, len(jobs.Tiles))]...)
	}
	return v
}

func tiles(d Data) []tile {
	var out []tile
	if n := d.Measured.Colocations; n > 0 {
		out = append(out, tile{count(n), "co-locations measured"})
	}
	if c, text := worstPair(d.Measured); known(c) {
		out = append(out, tile{fixed(c, 2), text})
	}
	best, kind := math.NaN(), ""
	for _, m := range d.Models {
		if e, _ := meanAndSpread(runValues(m, func(r Run) float64 { return r.Mean })); answersAll(m) && !(e >= best) {
			best, kind = e, m.Kind
		}
	}
	if kind != "" {
		out = append(out, tile{percent(best, 1), "mean error of the best model, " + kind})
	}
	share, name := math.NaN(), ""
	for _, p := range d.Plan.Policies {
		if known(p.Share) && !(p.Share <= share) {
			share, name = p.Share, p.Name
		}
	}
	if name != "" {
		out = append(out, tile{percent(share, 1), "of the bound, by the best policy, " + name})
	}
	for _, p := range d.Plan.Policies {
		if p.Name == "spread" && name != "spread" && known(p.Share) {
			out = append(out, tile{percent(p.Share, 1), "of the bound, by spread, the default of Kubernetes"})
		}
	}
	return out
}

func worstPair(m Measured) (worst float64, text string) {
	worst = math.NaN()
	for _, c := range m.Classes {
		for i, row := range c.Pairs {
			for j, cell := range row {
				if known(cell.Value) && !(cell.Value >= worst) {
					worst = cell.Value
					text = fmt.Sprintf("of its speed alone is left to %s beside %s", c.Workloads[i].Name, beside(c, i, j))
				}
			}
		}
	}
	return worst, text
}

func beside(c Class, i, j int) string {
	if i == j {
		return "another " + c.Workloads[j].Name
	}
	return c.Workloads[j].Name
}

func facts(m Measured) []fact {
	var out []fact
	add := func(name, text string) {
		if text != "" {
			out = append(out, fact{name, text})
		}
	}
	add("Source", m.Source)
	add("Machine", m.Machine)
	add("When", between(m.From, m.To))
	if m.Cells == 0 {
		return out
	}
	most, sizes := 0, ""
	for _, c := range m.Classes {
		most = max(most, len(c.Sizes))
	}
	for k := range most {
		n := 0
		for _, c := range m.Classes {
			if k < len(c.Sizes) {
				n += c.Sizes[k].Colocations
			}
		}
		if k > 0 {
			sizes += ", "
		}
		sizes += fmt.Sprintf("%s of %d", count(n), k+1)
	}
	add("Co-locations", fmt.Sprintf("%s (%s tasks)", count(m.Colocations), sizes))
	add("Cells", plural(m.Cells, "workload and metric in a co-location", "workloads and metrics in co-locations"))
	repeats := plural(m.Repeats[0], "measurement a cell", "measurements a cell")
	if m.Repeats[1] > m.Repeats[0] {
		repeats = fmt.Sprintf("%d to %d measurements a cell", m.Repeats[0], m.Repeats[1])
	}
	add("Repeats", repeats)
	if known(m.Spread) {
		add("Spread", fmt.Sprintf("standard deviation of a repeated rate: %s of its mean in the median cell, %s in the 95th percentile", percent(m.Spread, 1), percent(m.SpreadP95, 1)))
	}
	return out
}

func newClassView(c Class, notes, units map[string]string) classView {
	v := classView{Name: c.Name}
	for _, w := range c.Workloads {
		row := workloadRow{Name: breakable(w.Name), Note: notes[w.Name], Alone: quantity(w.Alone, units[w.Name]), Spread: percent(w.Spread, 1), Tail: unknown}
		if known(w.Tail) {
			row.Tail = fixed(1000*w.Tail, 2) + " ms"
		}
		v.HasRates = v.HasRates || known(w.Alone)
		v.Workloads = append(v.Workloads, row)
		v.Columns = append(v.Columns, breakable(w.Name))
	}
	v.Pairs = pairRows(c, c.Pairs, "performance", level)
	v.Tails = pairRows(c, c.Tails, "p99 / p99 alone", func(x float64) int { return level(1 / x) })
	v.Sizes, v.Falls = fallRows(c)
	return v
}

func pairRows(c Class, cells [][]Cell, what string, step func(float64) int) []heatRow {
	var out []heatRow
	for i, row := range cells {
		r := heatRow{Name: breakable(c.Workloads[i].Name)}
		for j, cell := range row {
			h := heat{Class: stepClass(step(cell.Value)), Text: fixed(cell.Value, 2)}
			h.Title = fmt.Sprintf("%s beside %s: %s %s", c.Workloads[i].Name, beside(c, i, j), what, plusMinus(cell.Value, cell.Spread, fixed, 2))
			if !known(cell.Value) {
				h.Title = fmt.Sprintf("%s beside %s: not measured", c.Workloads[i].Name, beside(c, i, j))
			}
			r.Cells = append(r.Cells, h)
		}
		out = append(out, r)
	}
	return out
}

// fallRows has a row per workload and one for all; a column per number of
// tasks on the node.
func fallRows(c Class) (columns []string, rows []heatRow) {
	rows = make([]heatRow, len(c.Workloads)+1)
	names := make([]string, len(rows))
	for i, w := range c.Workloads {
		names[i] = w.Name
	}
	names[len(c.Workloads)] = "all"
	for i := range rows {
		rows[i].Name = breakable(names[i])
	}
	for _, s := range c.Sizes {
		if s.Tasks == 1 {
			columns = append(columns, "alone")
		} else {
			columns = append(columns, fmt.Sprintf("%d tasks", s.Tasks))
		}
		for i, r := range append(slices.Clone(s.ByWorkload), s.All) {
			h := heat{Class: stepClass(level(r.Mean)), Text: fixed(r.Mean, 2)}
			h.Title = fmt.Sprintf("%s in co-locations of %d: not measured", names[i], s.Tasks)
			if r.Cells > 0 {
				h.Title = fmt.Sprintf("%s in co-locations of %d: mean performance %s over %s", names[i], s.Tasks, fixed(r.Mean, 2), plural(r.Cells, "cell", "cells"))
			}
			if r.Cells > 1 && r.High > r.Low {
				h.Small = fixed(r.Low, 2) + "–" + fixed(r.High, 2)
			}
			rows[i].Cells = append(rows[i].Cells, h)
		}
	}
	return columns, rows
}

func stepClass(step int) string {
	if step < 0 {
		return "none"
	}
	return fmt.Sprintf("p%d", step)
}

func stepLegend() []legend {
	out := []legend{{Class: stepClass(0), Text: fmt.Sprintf("< %g", levels[0])}}
	for i, end := range levels {
		text := fmt.Sprintf("≥ %g", end)
		if i+1 < len(levels) {
			text = fmt.Sprintf("%g–%g", end, levels[i+1])
		}
		out = append(out, legend{Class: stepClass(i + 1), Text: text})
	}
	return out
}
