package report

import (
	"fmt"
	"math"
)

// shareView is one policy's shared time by the performance of the pairs.
type shareView struct {
	Name  name
	Hours string
	Parts []sharePart
	Mean  string
}

type sharePart struct{ X, Width, Class, Title string }

// besideView is who ran beside whom under one policy: a triangle of squares.
type besideView struct {
	Name, Label string
	W, H        int
	Rows        []besideLabel
	Columns     []besideLabel
	Squares     []besideSquare
}

type besideLabel struct{ X, Y, Text string }

type besideSquare struct{ X, Y, Size, Class, Title string }

// shared fills in the part on who ran beside whom.
func (v *simulationView) shared(s Simulation) {
	most := 0.0
	for _, p := range s.Policies {
		for _, b := range p.Beside {
			most = max(most, b.Hours)
		}
	}
	if most == 0 {
		return
	}
	for _, p := range s.Policies {
		if len(p.Beside) > 0 {
			v.Shares = append(v.Shares, newShare(s, p))
			v.Heats = append(v.Heats, newBeside(s, p, most))
		}
	}
}

// pairPerformance is the mean performance of the two of a pair.
func pairPerformance(table [][]float64, a, b int) float64 {
	if table == nil {
		return math.NaN()
	}
	return (table[a][b] + table[b][a]) / 2
}

// truest is what is known of a pair: how it is, or else how it was believed.
func (s Simulation) truest() [][]float64 {
	if s.True != nil {
		return s.True
	}
	return s.Believed
}

func newShare(s Simulation, p Simulated) shareView {
	byStep := make([]float64, len(levels)+2) // the last is unknown
	total, sum, weight := 0.0, 0.0, 0.0
	for _, b := range p.Beside {
		performance := pairPerformance(s.truest(), b.A, b.B)
		step := level(performance)
		if step < 0 {
			step = len(byStep) - 1
		} else {
			sum += performance * b.Hours
			weight += b.Hours
		}
		byStep[step] += b.Hours
		total += b.Hours
	}
	v := shareView{Name: breakable(p.Name), Hours: quantity(total, "h"), Mean: fixed(sum/weight, 3)}
	at := 0.0
	for step, hours := range byStep {
		if hours == 0 {
			continue
		}
		class, text := stepClass(step), "unknown performance"
		if step == len(byStep)-1 {
			class = "none"
		} else {
			text = "performance " + stepLegend()[step].Text
		}
		v.Parts = append(v.Parts, sharePart{
			fixed(100*at/total, 2), fixed(100*hours/total, 2), class, fmt.Sprintf("%s: %s of the shared time", text, percent(hours/total, 1)),
		})
		at += hours
	}
	return v
}

// cellSize is the room of a pair in the triangle, in pixels.
const cellSize = 15

func newBeside(s Simulation, p Simulated, most float64) besideView {
	const labels = 128 // room for the names on the left
	n := len(s.Workloads)
	v := besideView{
		Name: p.Name, Label: fmt.Sprintf("hours of each pair of workloads beside each other under %s", p.Name),
		W: labels + n*cellSize + 84, H: n*cellSize + 84,
	}
	const top = 78
	px := func(i int) float64 { return float64(i * cellSize) }
	for i, w := range s.Workloads {
		short := w
		if r := []rune(w); len(r) > 19 {
			short = string(r[:18]) + "…"
		}
		v.Rows = append(v.Rows, besideLabel{fmt.Sprint(labels - 6), fixed(top+px(i)+cellSize*.75, 1), short})
		v.Columns = append(v.Columns, besideLabel{fixed(labels+px(i)+cellSize*.7, 1), fixed(top+px(i)-3, 1), short})
	}
	for _, b := range p.Beside {
		row, column := max(b.A, b.B), min(b.A, b.B)
		size := (cellSize - 1) * math.Sqrt(b.Hours/most)
		if size < .4 {
			continue
		}
		title := fmt.Sprintf("%s beside %s: %s h", s.Workloads[b.A], s.Workloads[b.B], fixed(b.Hours, 1))
		for _, t := range []struct {
			name  string
			table [][]float64
		}{{"performance", s.True}, {"believed", s.Believed}} {
			if t.table != nil {
				title += fmt.Sprintf("; %s %s and %s", t.name, fixed(t.table[b.A][b.B], 2), fixed(t.table[b.B][b.A], 2))
			}
		}
		v.Squares = append(v.Squares, besideSquare{
			fixed(labels+px(column)+(cellSize-size)/2, 2), fixed(top+px(row)+(cellSize-size)/2, 2), fixed(size, 2),
			stepClass(level(pairPerformance(s.truest(), b.A, b.B))), title,
		})
	}
	return v
}
