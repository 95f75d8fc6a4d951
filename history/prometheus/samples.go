package prometheus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

// Span is a time to read samples of.
type Span struct{ From, To time.Time }

// Aligned moves the ends to whole windows inside the span.
func (s Span) Aligned(c Config) Span {
	w := time.Duration(c.Window)
	from := s.From.Truncate(w)
	if from.Before(s.From) {
		from = from.Add(w)
	}
	return Span{from, s.To.Truncate(w)}
}

// pieceSteps is how many steps are asked for at a time: Prometheus refuses more
// than 11,000 for each series, and loads all of a query into memory.
const pieceSteps = 720

// Pieces cuts an aligned span into parts that are read one at a time, each a
// number of whole windows.
func (s Span) Pieces(c Config) []Span {
	w := time.Duration(c.Window)
	length := max(1, pieceSteps*time.Duration(c.Step)/w) * w
	var out []Span
	for from := s.From; from.Before(s.To); from = from.Add(length) {
		to := from.Add(length)
		if to.After(s.To) {
			to = s.To
		}
		out = append(out, Span{from, to})
	}
	return out
}

// Samples reads the samples of an aligned span. warnings are the server's and of
// what is missing. A server that can't answer for so long a time is asked for
// halves of it.
func Samples(ctx context.Context, client *Client, c Config, s Span) (samples []history.Sample, counts Counts, warnings []string, err error) {
	samples, counts, warnings, err = read(ctx, client, &c, s)
	var said *Error
	half := s.To.Sub(s.From) / 2 / time.Duration(c.Window) * time.Duration(c.Window)
	if !errors.As(err, &said) || !said.tooMuch() || half <= 0 {
		return samples, counts, warnings, err
	}
	counts = Counts{}
	samples, warnings = nil, nil
	for _, part := range []Span{{s.From, s.From.Add(half)}, {s.From.Add(half), s.To}} {
		more, n, warned, err := Samples(ctx, client, c, part)
		if err != nil {
			return nil, counts, warned, err
		}
		samples = append(samples, more...)
		warnings = append(warnings, warned...)
		counts.Add(n)
	}
	return samples, counts, warnings, nil
}

func read(ctx context.Context, client *Client, c *Config, s Span) (samples []history.Sample, counts Counts, warnings []string, err error) {
	step := time.Duration(c.Step)
	// What was before the span says whether its first windows had settled.
	lead := int((time.Duration(c.Settle)+step-1)/step) + 1
	g := grid{from: s.From.Add(-time.Duration(lead) * step), step: step, n: lead + int(s.To.Sub(s.From)/step)}
	a := &asker{client: client, grid: g, warn: func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); !slices.Contains(warnings, text) {
			warnings = append(warnings, text)
		}
	}}
	p, err := readPlacement(ctx, a, c)
	if err != nil {
		return nil, counts, warnings, err
	}
	if !slices.Contains(p.known, true) {
		a.warn("kube_pod_info tells of no pod from %s to %s: is kube-state-metrics scraped, and was it then?", g.from.Format(time.RFC3339), s.To.Format(time.RFC3339))
		counts.Blind = g.n - lead
		return nil, counts, warnings, nil
	}
	var ms []measured
	for i := range c.Workloads {
		m, err := ask(ctx, a, &c.Workloads[i], p, &counts)
		if err != nil {
			return nil, counts, warnings, fmt.Errorf("workloads[%d]%s: %w", i, quoted(c.Workloads[i].Name), err)
		}
		ms = append(ms, m)
	}
	return p.windows(c, ms, lead, &counts), counts, warnings, nil
}

// ask measures a workload.
func ask(ctx context.Context, a *asker, w *Workload, p *placement, counts *Counts) (measured, error) {
	m := measured{workload: w, by: map[history.Metric]values{}}
	for _, q := range []struct {
		metric history.Metric
		text   string
	}{{history.Rate, w.Rate}, {history.P99, w.P99}} {
		if q.text == "" {
			continue
		}
		if err := mig(ctx, a, q.text); err != nil {
			return m, fmt.Errorf("%s: %w", q.metric, err)
		}
		series, err := a.ask(ctx, q.text)
		if err != nil {
			return m, fmt.Errorf("%s: %w", q.metric, err)
		}
		if m.by[q.metric], err = valuesOf(series, p.grid, counts); err != nil {
			return m, fmt.Errorf("%s: %w", q.metric, err)
		}
		var lost []string
		for _, id := range sorted(m.by[q.metric]) {
			if p.places[id] == nil {
				lost = append(lost, id)
			}
		}
		counts.Unplaced += len(lost)
		if len(lost) > 0 && len(lost) == len(m.by[q.metric]) {
			a.warn("%s: %s: none of its pods is one of kube_pod_info's, such as %s: are these the exporter's? then aggregate by (exported_namespace, exported_pod)",
				w.Name, q.metric, lost[0])
		}
	}
	return m, nil
}

// mig refuses the utilisation that DCGM does not have where GPUs are cut into
// instances.
func mig(ctx context.Context, a *asker, query string) error {
	if !strings.Contains(query, "DCGM_FI_DEV_GPU_UTIL") {
		return nil
	}
	instances, err := a.ask(ctx, `count({__name__=~"DCGM_FI_.*", GPU_I_ID!=""})`)
	if err != nil {
		return err
	}
	if len(instances) > 0 {
		return errors.New("DCGM_FI_DEV_GPU_UTIL does not work on GPUs that are cut into instances (MIG), as here; use DCGM_FI_PROF_GR_ENGINE_ACTIVE, which is 0 to 1")
	}
	a.warn("DCGM_FI_DEV_GPU_UTIL says how busy a GPU is, in percent, not how fast a workload is: give a rate of the workload where there is one")
	return nil
}

// WithAlone puts the rates alone of the configuration in place of those that were
// measured: samples of the workload alone on each class that has samples of it.
func WithAlone(samples []history.Sample, c Config) []history.Sample {
	type cell struct{ workload, class string }
	given := map[cell]history.Sample{}
	for _, w := range c.Workloads {
		for _, s := range samples {
			at := cell{w.Name, s.Class}
			rate, ok := w.Alone[s.Class]
			if !ok {
				rate, ok = w.Alone[""]
			}
			if old, twice := given[at]; !ok || s.Workload != w.Name || twice && !s.Start.Before(old.Start) {
				continue
			}
			given[at] = history.Sample{
				Source: source + " configuration", Start: s.Start, End: s.End, Class: s.Class, Scope: s.Scope, Role: s.Role,
				Colocation: cluster.Colocation{w.Name: 1}, Workload: w.Name, Metric: history.Rate, Value: rate, Repeats: 1,
			}
		}
	}
	out := make([]history.Sample, 0, len(samples)+len(given))
	for _, at := range slices.SortedFunc(maps.Keys(given), func(a, b cell) int {
		return strings.Compare(a.workload+"\n"+a.class, b.workload+"\n"+b.class)
	}) {
		out = append(out, given[at])
	}
	for _, s := range samples {
		_, ok := given[cell{s.Workload, s.Class}]
		if ok && s.Metric == history.Rate && s.Colocation.Alone() {
			continue
		}
		out = append(out, s)
	}
	return out
}
