package profile

import (
	"context"
	"fmt"
	"math"
	"math/rand"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

// Check holds one re-measured cell against the record.
type Check struct {
	Colocation cluster.Colocation `json:"colocation"`
	Workload   string             `json:"workload"`
	Metric     history.Metric     `json:"metric"`
	Recorded   float64            `json:"recorded"`
	// Spread is the recorded repeats' standard deviation; a single one has none,
	// and borrows the relative spread that the record has of the workload, or of
	// all. Borrowed says so.
	Spread   float64 `json:"spread"`
	Borrowed bool    `json:"borrowed"`
	Repeats  int     `json:"repeats"`
	Now      float64 `json:"now"`
	// Tolerance is the largest difference that the spread explains: the half
	// width of the 95 % prediction interval for one more repeat, by Student's t
	// with the degrees of freedom of Spread.
	Tolerance float64 `json:"tolerance"`
	Within    bool    `json:"within"`
	// Unknown is true where no spread is known, so that nothing is judged:
	// Spread, Tolerance and Within say nothing.
	Unknown bool `json:"unknown"`
}

// Verify measures n recorded co-locations of this class again, chosen by the
// seed, and compares each cell's mean with the record.
func (s *Session) Verify(ctx context.Context, n int, seed int64) ([]Check, error) {
	recorded := map[history.Cell]history.Sample{}
	var colocations []cluster.Colocation
	seen := map[string]bool{}
	record := history.Aggregate(s.Log.Samples())
	pooled := scattersOf(record)
	for _, r := range record {
		if r.Class != s.Class {
			continue
		}
		recorded[r.Cell()] = r
		if key := r.Colocation.Key(); !seen[key] && s.knows(r.Colocation) {
			seen[key] = true
			colocations = append(colocations, r.Colocation)
		}
	}
	if len(colocations) == 0 {
		return nil, fmt.Errorf("verify: the record has no co-location of class %q and this suite; measure first", s.Class)
	}
	rand.New(rand.NewSource(seed)).Shuffle(len(colocations), func(i, j int) {
		colocations[i], colocations[j] = colocations[j], colocations[i]
	})
	colocations = colocations[:min(n, len(colocations))]
	var out []Check
	for i, c := range colocations {
		s.tell(Progress{i, len(colocations), 0, c})
		raw, err := s.Once(ctx, c)
		if err != nil {
			return out, fmt.Errorf("%s: %w", c.Key(), err)
		}
		for _, now := range history.Aggregate(raw) {
			if r, ok := recorded[now.Cell()]; ok {
				out = append(out, pooled.check(r, now))
			}
		}
	}
	s.tell(Progress{len(colocations), len(colocations), 0, nil})
	return out, nil
}

func (s *Session) knows(c cluster.Colocation) bool {
	for w := range c {
		if _, err := s.Suite.Workload(w); err != nil {
			return false
		}
	}
	return true
}

func (p scatters) check(recorded, now history.Sample) Check {
	c := Check{
		Colocation: recorded.Colocation, Workload: recorded.Workload, Metric: recorded.Metric,
		Recorded: recorded.Value, Spread: recorded.Spread, Repeats: recorded.Repeats, Now: now.Value,
	}
	df := recorded.Repeats - 1
	if df < 1 {
		of := p.of(recorded)
		if !of.known() || recorded.Value == 0 { // a relative spread of 0 says nothing
			c.Unknown = true
			return c
		}
		c.Spread, c.Borrowed, df = of.relative*recorded.Value, true, of.df
	}
	n := float64(max(recorded.Repeats, 1))
	c.Tolerance = studentT95(df) * c.Spread * math.Sqrt(1+1/n)
	c.Within = math.Abs(c.Now-c.Recorded) <= c.Tolerance
	return c
}

// studentT95 is the two-sided 95 % quantile of Student's t with at least one
// degree of freedom: exact to 0.5 % (Cornish-Fisher above 4, Abramowitz & Stegun
// 26.7.5).
func studentT95(df int) float64 {
	if small := []float64{math.NaN(), 12.706, 4.303, 3.182, 2.776}; df < len(small) {
		return small[df]
	}
	const z = 1.959964
	v := float64(df)
	z3, z5, z7 := math.Pow(z, 3), math.Pow(z, 5), math.Pow(z, 7)
	return z + (z3+z)/(4*v) + (5*z5+16*z3+3*z)/(96*v*v) + (3*z7+19*z5+17*z3-15*z)/(384*v*v*v)
}

// Allowed is the number of cells that may lie outside their 95 % interval by
// chance: the smallest x for which more than x of n happens in fewer than one
// of a hundred verifications.
func Allowed(n int) int {
	const p = .05
	tail, term := 1.0, math.Pow(1-p, float64(n))
	for x := 0; x <= n; x++ {
		if tail -= term; tail < .01 {
			return x
		}
		term *= float64(n-x) / float64(x+1) * p / (1 - p)
	}
	return n
}
