package baseline_test

import (
	"testing"
	"time"

	"github.com/cotenant/cotenant/place/baseline"
	"github.com/cotenant/cotenant/place/placetest"
)

// TestTenTimesTheNodesAndTasks wants every policy that places one task after
// another to take a time about proportional to the tasks: were it to look at
// every node for each, ten times both would take a hundred times as long.
func TestTenTimesTheNodesAndTasks(t *testing.T) {
	for _, name := range []string{"spread", "binpack", "random", "tetris", "paragon", "greedy"} {
		p, err := baseline.New(name, baseline.Options{Model: placetest.Model{}})
		if err != nil {
			t.Fatal(err)
		}
		needs := func(nodes int) time.Duration {
			req := large(t, nodes, 4*nodes, 3, nil)
			best := time.Hour
			for range 3 {
				best = min(best, placetest.CPU(func() {
					if _, err := p.Place(req); err != nil {
						t.Fatal(err)
					}
				}))
			}
			return max(best, 10*time.Millisecond) // below, the collector's turn decides
		}
		small, big := needs(1000), needs(10_000)
		if big > 40*small {
			t.Errorf("%s: %s for 4,000 tasks on 1,000 nodes, %s for ten times both", name, small, big)
		}
	}
}
