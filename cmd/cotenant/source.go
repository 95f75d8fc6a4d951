package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
)

// sourceFlags say what is known of interference.
type sourceFlags struct {
	samples, model string
	columns        []string
	strict         bool
	// raw is what readSamples read, places where each of it stands in the file.
	raw    []history.Sample
	places formats.Report
}

func (f *sourceFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.samples, "samples", "", "`FILE` of measurements: .jsonl, .csv (ours or Metis's), .npz; gzip too (default: those that ship)")
	cmd.Flags().StringVar(&f.model, "model", "", "model `FILE` by cotenant fit: all that the policies see")
	cmd.Flags().StringSliceVar(&f.columns, "columns", nil, "`workloads` of the columns of an .npz, which does not name them")
	cmd.Flags().BoolVar(&f.strict, "strict", false, "fail on the first bad record of --samples or --cluster instead of leaving it out")
}

// by names the files, as they were given.
func (f *sourceFlags) by() string {
	switch {
	case f.model == "":
		return "--samples " + f.samples
	case f.samples == "":
		return "--model " + f.model
	}
	return "--model " + f.model + " or --samples " + f.samples
}

// source is what is known of interference, and by whom.
type source struct {
	// belief is what the policies see.
	belief     interference.Model
	beliefName string
	// truth judges plans; nil where only a model was given.
	truth     interference.Model
	truthName string
	// most is the most tasks in a measured co-location; 0 where unknown.
	most int
}

// judge is the model under which bounds are computed.
func (s *source) judge() (m interference.Model, on string) {
	if s.truth != nil {
		return s.truth, "truth"
	}
	return s.belief, "model"
}

// unmeasured says what helps where the judge is silent.
func (s *source) unmeasured() string {
	switch {
	case s.truth == nil:
		return "fit a model that is no table (cotenant fit --model neural)"
	case s.belief != s.truth:
		return "leave --samples out, so that --model judges"
	}
	return "fit a model (cotenant fit) and give it as --model, without --samples"
}

func (f *sourceFlags) load(in *inputs, log io.Writer) (*source, error) {
	s := &source{}
	if f.samples != "" || f.model == "" {
		samples, name, err := f.given(in, log)
		if err != nil {
			return nil, err
		}
		s.most = mostTogether(samples)
		s.truthName = name
		if s.truth, err = interference.Fit(interference.KindTable, samples, interference.Options{}); err != nil {
			return nil, fmt.Errorf("%s: %w", name, f.located(err))
		}
		s.belief, s.beliefName = s.truth, name
	}
	if f.model != "" {
		m, err := readModel(in, f.model)
		if err != nil {
			return nil, err
		}
		s.belief, s.beliefName = m, "model "+f.model
		for _, class := range m.Classes() {
			s.most = max(s.most, interference.Most(m, class))
		}
	}
	return s, nil
}

// mostTogether is the most tasks in a co-location of the samples.
func mostTogether(samples []history.Sample) int {
	most := 0
	for _, s := range samples {
		most = max(most, s.Colocation.Tasks())
	}
	return most
}

func (f *sourceFlags) given(in *inputs, log io.Writer) ([]history.Sample, string, error) {
	if f.samples == "" {
		return shippedSamples()
	}
	samples, err := f.readSamples(in, log)
	return samples, "samples " + f.samples, err
}

// checkClasses refuses classes of nodes of which a source knows nothing.
func (s *source) checkClasses(classes []string) error {
	for _, m := range []struct {
		model interference.Model
		name  string
	}{{s.belief, s.beliefName}, {s.truth, s.truthName}} {
		if m.model == nil {
			continue
		}
		known := m.model.Classes()
		for _, c := range classes {
			switch {
			case slices.Contains(known, c) || c == "" && len(known) == 1:
			case c == "":
				return fmt.Errorf("the classes of %s are %s, but the nodes name none; give --nodes CLASS:N", m.name, strings.Join(known, ", "))
			default:
				return fmt.Errorf("nodes of class %q are not in %s, only those of %s; name a class that was measured, or measure this one",
					c, m.name, quotedList(known))
			}
		}
	}
	return nil
}

// checkWorkloads refuses workloads of the batch that nobody measured.
func (s *source) checkWorkloads(b *batch, classes []string) error {
	for _, m := range []struct {
		model interference.Model
		name  string
	}{{s.belief, s.beliefName}, {s.truth, s.truthName}} {
		if m.model == nil {
			continue
		}
		known := knownWorkloads(m.model, classes)
		var unknown []string
		for i, w := range b.workloads {
			if b.counts[i] > 0 && !slices.Contains(known, w) {
				var more []string
				if b.waiting == nil {
					more = append(more, fmt.Sprint("column ", i+1))
				}
				if n := nearest(w, known); n != "" {
					more = append(more, "perhaps "+n)
				}
				if len(more) > 0 {
					w += " (" + strings.Join(more, ", ") + ")"
				}
				unknown = append(unknown, w)
			}
		}
		if len(unknown) == 0 {
			continue
		}
		remedy := "measure them, or correct the names"
		if m.model == s.belief && s.belief != s.truth {
			remedy = "the model was fitted on other workloads; fit one on samples of these, or correct the names"
		}
		return fmt.Errorf("%s: unknown workloads: %s; those of %s: %s; %s",
			b.name, strings.Join(unknown, ", "), m.name, strings.Join(known, ", "), remedy)
	}
	return nil
}

// workloads lists what every source knows on any of the classes.
func (s *source) workloads(classes []string) []string {
	known := knownWorkloads(s.belief, classes)
	if s.truth == nil || s.truth == s.belief {
		return known
	}
	measured := knownWorkloads(s.truth, classes)
	return slices.DeleteFunc(known, func(w string) bool { return !slices.Contains(measured, w) })
}

// measured reports whether what the policies see holds measurements of the
// batch's workloads, at least alone.
func (s *source) measured(b *batch, classes []string) bool {
	for i, w := range b.workloads {
		if b.counts[i] == 0 {
			continue
		}
		alone := []cluster.Colocation{{w: 1}}
		if !slices.ContainsFunc(classes, func(class string) bool {
			return s.belief.Predict(place.ModelClass(s.belief, class), history.Rate, alone)[0][0].Measured
		}) {
			return false
		}
	}
	return true
}

// unnamedClass reports whether no source names a class.
func (s *source) unnamedClass() bool {
	unnamed := func(m interference.Model) bool { return slices.Equal(m.Classes(), []string{""}) }
	return unnamed(s.belief) && (s.truth == nil || unnamed(s.truth))
}

// knownWorkloads lists what a model knows on any of the classes.
func knownWorkloads(m interference.Model, classes []string) []string {
	var known []string
	for _, c := range classes {
		known = append(known, m.Workloads(place.ModelClass(m, c))...)
	}
	slices.Sort(known)
	return slices.Compact(known)
}

func quotedList(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(quoted, ", ")
}
