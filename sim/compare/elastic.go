package compare

import (
	"fmt"
	"math"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/sim"
)

// Elastic says how far jobs may be scaled: from Min to Max x the workers that
// they came with. The zero value scales none.
type Elastic struct{ Min, Max float64 }

// maxScaled bounds the workers of a job that was scaled up.
const maxScaled = 1 << 16

// Check is an error where the factors make no sense.
func (e Elastic) Check() error {
	if e != (Elastic{}) && !(e.Min >= 0 && e.Min <= 1 && e.Max >= 1 && e.Max <= 1000) {
		return fmt.Errorf("jobs of %g to %g times their workers; give factors around 1, such as 0.5 and 2", e.Min, e.Max)
	}
	return nil
}

// apply sets the bounds of jobs: whole workers within the factors, at least 1.
// Jobs without workers do not scale.
func (e Elastic) apply(list []sim.Job) []sim.Job {
	if e == (Elastic{}) {
		return list
	}
	for i := range list {
		j := &list[i]
		workers := 0
		for _, t := range j.Tasks {
			if t.Role == cluster.Worker {
				workers++
			}
		}
		least := max(1, int(math.Ceil(e.Min*float64(workers)-1e-9)))
		most := min(maxScaled, max(workers, int(e.Max*float64(workers)+1e-9)))
		if workers > 0 && least < most {
			j.MinWorkers, j.MaxWorkers = least, most
		}
	}
	return list
}
