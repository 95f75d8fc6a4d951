package interference

import (
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

// space holds the names that a model knows: everything else is an index.
type space struct {
	classes   []string // sorted
	workloads []string // sorted; the union over classes
	// known[class][metric][workload]: measured at least once, so that there is
	// something to predict from.
	known [][][]bool
	// most[class]: tasks in the largest co-location that was measured; 0 where a
	// file by an older program does not say.
	most []int
}

func newSpace(classes, workloads []string) space {
	s := space{classes: classes, workloads: workloads, known: make([][][]bool, len(classes)), most: make([]int, len(classes))}
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

// Most implements what interference.Most asks for.
func (s *space) Most(class string) int {
	c, ok := slices.BinarySearch(s.classes, class)
	if !ok {
		return 0
	}
	return s.most[c]
}

// knows says whether any sample holds the metric.
func (s *space) knows(metric int) bool {
	return slices.ContainsFunc(s.known, func(of [][]bool) bool { return slices.Contains(of[metric], true) })
}

// measured lists the metrics that any sample holds.
func (s *space) measured() []int {
	var ms []int
	for m := range metrics {
		if s.knows(m) {
			ms = append(ms, m)
		}
	}
	return ms
}

// maxCount bounds the tasks of one workload on one node.
const maxCount = 1<<12 - 1

// members turns a co-location into indices; ok is false where it holds a
// workload that was never seen, or too many tasks to be one node's.
func (s *space) members(c cluster.Colocation) (ms []member, ok bool) {
	ms = make([]member, 0, len(c))
	ok = true
	for name, n := range c {
		if n < 1 {
			continue
		}
		w, found := slices.BinarySearch(s.workloads, name)
		if !found || n > maxCount {
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

// predict does what all kinds share: names to indices, silence where a name
// is unknown. answer fills the estimates of rows whose workloads are all
// known by name.
func (s *space) predict(class string, metric history.Metric, cs []cluster.Colocation,
	answer func(class, metric int, rows [][]member, out [][]Estimate),
) [][]Estimate {
	out := make([][]Estimate, len(cs))
	c, okClass := slices.BinarySearch(s.classes, class)
	m := slices.Index(metrics, metric)
	total := 0
	for _, co := range cs {
		total += len(co)
	}
	cells := make([]Estimate, total)
	rows, outs := make([][]member, 0, len(cs)), make([][]Estimate, 0, len(cs))
	for i, co := range cs {
		n := 0
		for _, k := range co {
			if k > 0 {
				n++
			}
		}
		out[i], cells = cells[:n:n], cells[n:]
		if !okClass || m < 0 {
			continue
		}
		if ms, ok := s.members(co); ok {
			rows, outs = append(rows, ms), append(outs, out[i])
		}
	}
	if len(rows) > 0 {
		answer(c, m, rows, outs)
	}
	return out
}
