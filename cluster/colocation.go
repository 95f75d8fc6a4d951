package cluster

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Colocation is the multiset of tasks on one node (or device): how many
// tasks of each workload run there at once. Counts are positive; a workload
// that is absent has no entry.
type Colocation map[string]int

// Tasks is the number of tasks in the co-location.
func (c Colocation) Tasks() int {
	n := 0
	for _, k := range c {
		n += k
	}
	return n
}

// Workloads lists the workloads present, sorted by name.
func (c Colocation) Workloads() []string {
	names := make([]string, 0, len(c))
	for w, k := range c {
		if k > 0 {
			names = append(names, w)
		}
	}
	slices.Sort(names)
	return names
}

// Key is the canonical text form, equal for equal multisets:
// "mms*2+redis". The empty co-location is "".
func (c Colocation) Key() string {
	var b strings.Builder
	for i, w := range c.Workloads() {
		if i > 0 {
			b.WriteByte('+')
		}
		b.WriteString(w)
		if c[w] > 1 {
			b.WriteByte('*')
			b.WriteString(strconv.Itoa(c[w]))
		}
	}
	return b.String()
}

// ParseColocation reads the form that Key writes. Names hold neither + nor *.
func ParseColocation(s string) (Colocation, error) {
	c := Colocation{}
	if s == "" {
		return c, nil
	}
	for part := range strings.SplitSeq(s, "+") {
		name, count := part, 1
		if at := strings.LastIndexByte(part, '*'); at >= 0 {
			n, err := strconv.Atoi(part[at+1:])
			if err != nil || n < 1 {
				return nil, fmt.Errorf("co-location %q: %q is not a positive count", s, part[at+1:])
			}
			name, count = part[:at], n
		}
		switch {
		case name == "":
			return nil, fmt.Errorf("co-location %q: empty workload name", s)
		case strings.Contains(name, "*"):
			return nil, fmt.Errorf("co-location %q: workload name %q holds a *", s, name)
		case c[name] > math.MaxInt-count:
			return nil, fmt.Errorf("co-location %q: too many tasks of %q", s, name)
		}
		c[name] += count
	}
	return c, nil
}

// With returns a copy with one more task of workload w.
func (c Colocation) With(w string) Colocation {
	out := maps.Clone(c)
	if out == nil {
		out = Colocation{}
	}
	out[w]++
	return out
}

// Alone reports whether the co-location is a single task.
func (c Colocation) Alone() bool { return c.Tasks() == 1 }
