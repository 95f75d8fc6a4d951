package services

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
)

// Judge holds what policies reach against the bound at the same moments. Where
// several place everything at a moment, the bound is the same and is computed
// once. Not safe for concurrent use.
type Judge struct {
	Cluster cluster.Spec
	Truth   interference.Model
	// Replan, where not nil, places all that runs anew at each moment, for
	// comparison: what moving everything at once would bring.
	Replan place.Policy
	// Stop, where not nil, ends the search for a bound early.
	Stop func() bool

	known map[string]judged
}

type judged struct {
	limit Limit
	anew  float64
}

// Verdict is how a run did. All are averages over the moments, of the sum of
// the performances of all tasks.
type Verdict struct {
	Value, Bound float64
	// Proven says that the bound is, at every moment.
	Proven bool
	// Replanned is what Judge.Replan reaches, NaN without one or where it held a
	// task.
	Replanned float64
	// Share is Value / Bound: of what the running tasks could reach.
	Share float64
	// Served is that with waiting tasks in the bound, each at the mean bound of a
	// running one, and with performance 0.
	Served float64
	// At is the bound and what re-planning reaches, by moment.
	At []Moment
}

// Moment is the part of a verdict about a moment.
type Moment struct{ Bound, Replanned float64 }

// Judge judges the moments of a run.
func (j *Judge) Judge(r *Result) (Verdict, error) {
	v := Verdict{Proven: true}
	n := float64(len(r.Samples))
	wanted := 0.0
	for i := range r.Samples {
		s := &r.Samples[i]
		at, err := j.moment(s)
		if err != nil {
			return v, fmt.Errorf("bound at %s: %w", s.At, err)
		}
		v.Value += s.Sum / n
		v.Bound += at.limit.Bound / n
		v.Replanned += at.anew / n
		v.Proven = v.Proven && at.limit.Proven
		wanted += at.limit.Bound / n
		if s.Running > 0 {
			wanted += at.limit.Bound / n * float64(s.Waiting) / float64(s.Running)
		}
		v.At = append(v.At, Moment{at.limit.Bound, at.anew})
	}
	v.Share, v.Served = math.NaN(), math.NaN()
	if v.Bound > 0 {
		v.Share, v.Served = v.Value/v.Bound, v.Value/wanted
	}
	return v, nil
}

func (j *Judge) moment(s *Sample) (judged, error) {
	key := s.key()
	if at, ok := j.known[key]; ok {
		return at, nil
	}
	at := judged{anew: math.NaN()}
	var err error
	if at.limit, err = s.Limit(j.Cluster, j.Truth, j.Stop); err != nil {
		return at, err
	}
	if j.Replan != nil {
		sum, held, err := s.Anew(j.Cluster, j.Truth, j.Replan, 1, j.Stop)
		if err == nil && held == 0 {
			at.anew = sum
		}
	}
	if j.known == nil {
		j.known = map[string]judged{}
	}
	j.known[key] = at
	return at, nil
}

// key is equal for moments at which the same could be reached.
func (s *Sample) key() string {
	var b strings.Builder
	fmt.Fprint(&b, s.At, s.Down)
	for _, w := range slices.Sorted(maps.Keys(s.Tasks)) {
		fmt.Fprintf(&b, " %d %s", s.Tasks[w], w)
	}
	return b.String()
}
