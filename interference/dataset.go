package interference

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

// ErrNoSamples is returned by Fit where there is nothing to learn from.
var ErrNoSamples = errors.New("no samples: measure some with `cotenant profile` or read some with `cotenant import`")

// metrics fixes the order in which arrays over metrics are laid out, in
// memory and in model files.
var metrics = []history.Metric{history.Rate, history.P50, history.P99}

// contradiction is, per metric, the factor between two measurements of one
// cell from which they cannot both be right unless their stated spread
// explains it. Tail latencies repeat worst.
var contradiction = map[history.Metric]float64{history.Rate: 1.5, history.P50: 3, history.P99: 5}

// member is one workload of a co-location: its index in space.workloads and
// its number of tasks.
type member struct{ workload, count int }

// observation is what was measured of one cell: the mean ratio to alone, the
// standard deviation of that mean's error, and over how many repeats.
// repeats 0 means not measured.
type observation struct {
	value, std float64
	repeats    int
}

// row is one co-location on one class, with an observation per metric and
// member. Members are sorted by workload.
type row struct {
	class   int
	members []member
	obs     [][]observation // by metric, nil where nothing was measured
}

func (r row) tasks() int {
	n := 0
	for _, m := range r.members {
		n += m.count
	}
	return n
}

// space holds the names that a model knows: everything else is an index.
type space struct {
	classes   []string // sorted
	workloads []string // sorted; the union over classes
	// known[class][metric][workload]: measured at least once, so that there is
	// something to predict from.
	known [][][]bool
}

func newSpace(classes, workloads []string) space {
	s := space{classes: classes, workloads: workloads, known: make([][][]bool, len(classes))}
	for c := range s.known {
		s.known[c] = make([][]bool, len(metrics))
		for m := range s.known[c] {
			s.known[c][m] = make([]bool, len(workloads))
		}
	}
	return s
}

// Classes implements Model for every kind.
func (s *space) Classes() []string { return slices.Clone(s.classes) }

// Workloads implements Model for every kind.
func (s *space) Workloads(class string) []string {
	c, ok := slices.BinarySearch(s.classes, class)
	if !ok {
		return nil
	}
	var names []string
	for w, name := range s.workloads {
		for m := range metrics {
			if s.known[c][m][w] {
				names = append(names, name)
				break
			}
		}
	}
	return names
}

// members turns a co-location into indices; ok is false where it holds a
// workload that was never seen.
func (s *space) members(c cluster.Colocation) (ms []member, ok bool) {
	ms = make([]member, 0, len(c))
	ok = true
	for name, n := range c {
		if n < 1 {
			continue
		}
		w, found := slices.BinarySearch(s.workloads, name)
		if !found {
			ok = false
			continue
		}
		ms = append(ms, member{w, n})
	}
	slices.SortFunc(ms, func(a, b member) int { return a.workload - b.workload })
	return ms, ok
}

func (s *space) colocation(ms []member) cluster.Colocation {
	c := make(cluster.Colocation, len(ms))
	for _, m := range ms {
		c[s.workloads[m.workload]] = m.count
	}
	return c
}

// key is equal for equal co-locations; shorter to build than Colocation.Key.
func key(ms []member) string {
	var buf [64]byte
	b := buf[:0]
	for _, m := range ms {
		b = append(b, byte(m.workload), byte(m.workload>>8), byte(m.count), byte(m.count>>8))
	}
	return string(b)
}

// dataset is the samples of one Fit, pooled by cell. Rows are in the order in
// which their co-location first appears, so that results depend on the order
// of the samples but on nothing else.
type dataset struct {
	space
	rows  []row
	index []map[string]int // by class: key -> row
}

// pool gathers the repeats of one cell.
type pool struct {
	weight, mean, m2 float64 // m2: sum of squared deviations, with those inside each sample
	low, high        ratio
}

type ratio struct{ value, spread float64 }

func (p *pool) add(value, spread float64, repeats int) {
	r := float64(repeats)
	if p.weight == 0 || value < p.low.value {
		p.low = ratio{value, spread}
	}
	if p.weight == 0 || value > p.high.value {
		p.high = ratio{value, spread}
	}
	delta := value - p.mean
	total := p.weight + r
	p.m2 += (r-1)*spread*spread + delta*delta*p.weight*r/total
	p.mean += delta * r / total
	p.weight = total
}

func (p *pool) observation() observation {
	o := observation{value: p.mean, repeats: int(p.weight)}
	if p.weight > 1 && p.m2 > 0 {
		o.std = math.Sqrt(p.m2 / (p.weight - 1) / p.weight)
	}
	return o
}

// usable says whether a sample describes tasks that share one node or device.
func usable(s history.Sample) bool {
	return s.Scope != history.ScopeRack && s.Span != cluster.SpanRack && s.Span != cluster.SpanApart
}

// newDataset validates and pools samples. Samples over more than a node are
// left out: a co-location here is what one node or device holds.
func newDataset(samples []history.Sample) (*dataset, error) {
	var kept []history.Sample
	for i, s := range samples {
		if err := s.Validate(); err != nil {
			return nil, fmt.Errorf("sample %d: %w", i, err)
		}
		// A latency of 0 is how files write "not measured".
		if usable(s) && (s.Metric == history.Rate || s.Value > 0) {
			kept = append(kept, s)
		}
	}
	if len(kept) == 0 {
		if len(samples) > 0 {
			return nil, fmt.Errorf("none of %d samples was measured on a single node or device: %w", len(samples), ErrNoSamples)
		}
		return nil, ErrNoSamples
	}
	d := &dataset{space: namesOf(kept)}
	d.index = make([]map[string]int, len(d.classes))
	for c := range d.index {
		d.index[c] = map[string]int{}
	}
	alone, err := d.aloneValues(kept)
	if err != nil {
		return nil, err
	}
	if err := d.poolSamples(kept, alone); err != nil {
		return nil, err
	}
	d.implyAlone()
	return d, nil
}

func namesOf(samples []history.Sample) space {
	var classes, workloads []string
	seenClass, seenWorkload := map[string]bool{}, map[string]bool{}
	for _, s := range samples {
		if !seenClass[s.Class] {
			seenClass[s.Class] = true
			classes = append(classes, s.Class)
		}
		for w := range s.Colocation {
			if !seenWorkload[w] {
				seenWorkload[w] = true
				workloads = append(workloads, w)
			}
		}
	}
	slices.Sort(classes)
	slices.Sort(workloads)
	return newSpace(classes, workloads)
}

type aloneKey struct {
	class, workload string
	metric          history.Metric
}

// aloneValues averages the samples of a single task, for the samples that
// carry no Alone of their own.
func (d *dataset) aloneValues(samples []history.Sample) (map[aloneKey]float64, error) {
	pools := map[aloneKey]*pool{}
	for _, s := range samples {
		if !s.Colocation.Alone() {
			continue
		}
		k := aloneKey{s.Class, s.Workload, s.Metric}
		if pools[k] == nil {
			pools[k] = &pool{}
		}
		pools[k].add(s.Value, s.Spread, max(s.Repeats, 1))
	}
	alone := make(map[aloneKey]float64, len(pools))
	for k, p := range pools {
		alone[k] = p.mean
	}
	for _, s := range samples {
		k := aloneKey{s.Class, s.Workload, s.Metric}
		if s.Alone == 0 && !(alone[k] > 0) {
			return nil, fmt.Errorf("co-location %s: workload %q has no %s alone%s: measure it alone, or give the field \"alone\"",
				s.Colocation.Key(), s.Workload, s.Metric, onClass(s.Class))
		}
	}
	return alone, nil
}

func onClass(class string) string {
	if class == "" {
		return ""
	}
	return fmt.Sprintf(" on class %q", class)
}

func (d *dataset) poolSamples(samples []history.Sample, alone map[aloneKey]float64) error {
	var pools [][][]pool // by row, metric, member
	for _, s := range samples {
		class, _ := slices.BinarySearch(d.classes, s.Class)
		metric := slices.Index(metrics, s.Metric)
		ms, _ := d.members(s.Colocation)
		r := d.row(class, ms)
		if r == len(pools) {
			pools = append(pools, make([][]pool, len(metrics)))
		}
		if pools[r][metric] == nil {
			pools[r][metric] = make([]pool, len(ms))
		}
		base := s.Alone
		if base == 0 {
			base = alone[aloneKey{s.Class, s.Workload, s.Metric}]
		}
		w, _ := slices.BinarySearch(d.workloads, s.Workload)
		i := slices.IndexFunc(ms, func(m member) bool { return m.workload == w })
		pools[r][metric][i].add(s.Value/base, s.Spread/base, max(s.Repeats, 1))
		d.known[class][metric][w] = true
	}
	for r := range d.rows {
		row := &d.rows[r]
		row.obs = make([][]observation, len(metrics))
		for m, ps := range pools[r] {
			if ps == nil {
				continue
			}
			row.obs[m] = make([]observation, len(ps))
			for i := range ps {
				if err := ps[i].contradicts(metrics[m]); err != nil {
					return fmt.Errorf("co-location %s%s, workload %q: %w", d.colocation(row.members).Key(),
						onClass(d.classes[row.class]), d.workloads[row.members[i].workload], err)
				}
				row.obs[m][i] = ps[i].observation()
			}
		}
	}
	return nil
}

// contradicts reports two measurements of a cell that are further apart than
// a factor and than four times their stated spread.
func (p *pool) contradicts(m history.Metric) error {
	if p.weight < 2 || p.high.value < contradiction[m]*p.low.value {
		return nil
	}
	gap := p.high.value - p.low.value
	if gap == 0 || gap <= 4*math.Hypot(p.high.spread, p.low.spread) {
		return nil
	}
	return fmt.Errorf("contradictory samples: %s / alone was measured as %.4g and as %.4g; measure again and drop the wrong one, or state its spread",
		m, p.low.value, p.high.value)
}

// row finds or adds the row of a co-location.
func (d *dataset) row(class int, ms []member) int {
	k := key(ms)
	if r, ok := d.index[class][k]; ok {
		return r
	}
	d.index[class][k] = len(d.rows)
	d.rows = append(d.rows, row{class: class, members: ms})
	return len(d.rows) - 1
}

// implyAlone adds the rows of single tasks that no sample states by itself:
// whoever measured a ratio to alone measured alone, and that ratio is 1.
func (d *dataset) implyAlone() {
	for c := range d.classes {
		for w := range d.workloads {
			for m := range metrics {
				if !d.known[c][m][w] {
					continue
				}
				r := &d.rows[d.row(c, []member{{w, 1}})]
				if r.obs == nil {
					r.obs = make([][]observation, len(metrics))
				}
				if r.obs[m] == nil {
					r.obs[m] = []observation{{value: 1, repeats: 1}}
				}
			}
		}
	}
}
