package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/profile"
)

// Policies that search find first what a model over-predicts. Where it is as
// unsure as doubtful, the median of the predicted standard deviations over the
// values, they take predictions lower by carefully standard deviations unless
// told otherwise; docs/services.md has the measurements: with models of .25 and
// more it gains up to 5 hundredths of the bound, with those of .11 and less it
// costs up to 3.
const (
	doubtful  = .2
	carefully = 1
)

// maxDoubted bounds how many co-locations are looked at to find how unsure a
// model is.
const maxDoubted = 2000

// searches reports whether a policy does, by default or as it is told.
func (s policySpec) searches() bool {
	divided := s.params["divide"] == "flat" || s.params["divide"] == "even"
	return s.name == "bound" || s.name == "greedy-search" ||
		s.name == metisName && (s.params["search"] == "on" || s.params["search"] == "" && !divided)
}

// doubt is how unsure a model is of what it predicts: the median of standard
// deviation over value, over the workloads of co-locations of up to slots
// tasks, fewer where those are many; 0 where all is measured.
func doubt(m interference.Model, classes, workloads []string, slots int) float64 {
	for slots > 1 && multisets(len(workloads), slots) > maxDoubted {
		slots--
	}
	every := profile.Colocations(workloads, max(slots, 1))
	var all []float64
	for _, class := range classes {
		for _, row := range m.Predict(place.ModelClass(m, class), history.Rate, every) {
			for _, e := range row {
				if e.Known && !e.Measured && e.Value > 0 {
					all = append(all, e.Std/e.Value)
				}
			}
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// doubt of the model that the policies of a plan see.
func (p *planInput) doubt() float64 {
	var classes, workloads []string
	slots := 0
	for _, n := range p.snapshot.Nodes() {
		slots = max(slots, n.Slots)
		if !slices.Contains(classes, n.Class) {
			classes = append(classes, n.Class)
		}
	}
	for i, w := range p.batch.workloads {
		if p.batch.counts[i] > 0 {
			workloads = append(workloads, w)
		}
	}
	if p.source.most > 0 {
		slots = min(slots, p.source.most)
	}
	return doubt(p.source.belief, classes, workloads, min(slots, 8))
}

// careful is by how many standard deviations policies that search take
// predictions lower unless told otherwise, and says so on log where any does.
func (p *planInput) careful(log io.Writer, specs []policySpec) float64 {
	var names []string
	for _, s := range specs {
		if _, given := s.params[pessimismParam]; s.searches() && !given {
			names = append(names, s.text)
		}
	}
	if len(names) == 0 {
		return 0
	}
	if p.unsure = p.doubt(); p.unsure < doubtful {
		return 0
	}
	take := "take"
	if len(names) == 1 {
		take = "takes"
	}
	fmt.Fprintf(log, "%s is unsure of its predictions by %.0f %% (median): %s %s them lower by %d standard deviation; pessimism=0 turns that off\n",
		p.source.beliefName, 100*p.unsure, strings.Join(names, ", "), take, carefully)
	return carefully
}
