package sim

import (
	"cmp"
	"encoding/csv"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/cotenant/cotenant/cluster"
)

// QueueRecord is the length of the queue over time, a step function: its
// Watch is a Config.Watch.
type QueueRecord struct {
	Steps []QueueStep
}

// QueueStep is a length of the queue from a time on.
type QueueStep struct {
	From   time.Duration `json:"from"`
	Queued int           `json:"queued"`
}

// Watch notes a stretch.
func (q *QueueRecord) Watch(s Stretch) {
	if n := len(q.Steps); n == 0 || q.Steps[n-1].Queued != s.Queued {
		q.Steps = append(q.Steps, QueueStep{s.From, s.Queued})
	}
}

// BesideRecord is how long tasks of each pair of workloads ran beside one
// another: on a device where the pair shares one, or only on a node. Pairs of
// one job do not count. Its Watch is a Config.Watch.
type BesideRecord struct {
	seconds map[Pair]float64
	on      map[string][]int // positions in Running by node, scratch
}

// Pair is two workloads, A <= B, and what they shared.
type Pair struct {
	A, B string
	// Scope is SpanDevice or SpanNode.
	Scope cluster.Span
}

// Beside is a pair with the seconds, added up over its pairs of tasks.
type Beside struct {
	Pair
	Seconds float64
}

// Watch notes a stretch. It costs the number of pairs of tasks on each node.
func (b *BesideRecord) Watch(s Stretch) {
	if b.seconds == nil {
		b.seconds, b.on = map[Pair]float64{}, map[string][]int{}
	}
	for node, at := range b.on {
		b.on[node] = at[:0]
	}
	running := s.View.Running()
	seconds := (s.To - s.From).Seconds()
	for i := range running {
		x := &running[i]
		there := b.on[x.Node]
		for _, k := range there {
			y := &running[k]
			if x.Group == y.Group {
				continue
			}
			p := Pair{min(x.Workload, y.Workload), max(x.Workload, y.Workload), cluster.SpanNode}
			if slices.ContainsFunc(x.On, func(d int) bool { return slices.Contains(y.On, d) }) {
				p.Scope = cluster.SpanDevice
			}
			b.seconds[p] += seconds
		}
		b.on[x.Node] = append(there, i)
	}
}

// Pairs lists what was met, by A, B and scope.
func (b *BesideRecord) Pairs() []Beside {
	pairs := slices.SortedFunc(maps.Keys(b.seconds), func(x, y Pair) int {
		return cmp.Or(cmp.Compare(x.A, y.A), cmp.Compare(x.B, y.B), cmp.Compare(x.Scope, y.Scope))
	})
	out := make([]Beside, len(pairs))
	for i, p := range pairs {
		out[i] = Beside{p, b.seconds[p]}
	}
	return out
}

// Watchers calls several functions with each stretch.
func Watchers(watch ...func(Stretch)) func(Stretch) {
	return func(s Stretch) {
		for _, w := range watch {
			w(s)
		}
	}
}

// WriteCSV writes one line for each job, times in seconds, empty where the job
// did not get that far.
func (r *Result) WriteCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	number := func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
	seconds := func(d time.Duration, ok bool) string {
		if !ok {
			return ""
		}
		return number(d.Seconds())
	}
	rows := [][]string{{
		"job", "workload", "tasks", "workers", "state", "arrival_s", "start_s", "finish_s", "jct_s", "work_s", "lost_s", "moves", "resizes", "restarts",
	}}
	for i := range r.Jobs {
		j := &r.Jobs[i]
		done := j.State == Finished
		rows = append(rows, []string{
			j.Name, j.Workload, strconv.Itoa(j.Tasks), strconv.Itoa(j.Workers), string(j.State),
			seconds(j.Arrival, true), seconds(j.Start, j.Started), seconds(j.Finish, done), seconds(j.JCT(), done),
			number(j.Work), number(j.Lost), strconv.Itoa(j.Moves), strconv.Itoa(j.Resizes), strconv.Itoa(j.Restarts),
		})
	}
	return c.WriteAll(rows)
}
