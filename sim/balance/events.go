package balance

import "fmt"

// Event is one thing that a Schedule did to its job.
type Event struct {
	// Generation counts from 1, Iteration from 0: those under way.
	Generation, Iteration int
	What                  string
	// Rank of a crash or a stall, in the order of the generation's ranks.
	Rank int
	// Seconds that a stall or an outage lasts.
	Seconds float64
}

// Kinds of events.
const (
	Crash   = "crash"   // a rank dies
	Stall   = "stall"   // a rank stops, and goes on later; by then it may be held for dead
	Join    = "join"    // a new rank, from the next generation on
	Outage  = "outage"  // the coordinator dies, and comes back with what it had saved
	Amnesia = "amnesia" // the coordinator dies, and comes back knowing nothing
)

// String is the event in one line: generation, iteration, kind, and what the
// kind needs.
func (e Event) String() string {
	switch e.What {
	case Crash:
		return fmt.Sprintf("%d %d %s %d", e.Generation, e.Iteration, e.What, e.Rank)
	case Stall:
		return fmt.Sprintf("%d %d %s %d %.2f", e.Generation, e.Iteration, e.What, e.Rank, e.Seconds)
	case Join:
		return fmt.Sprintf("%d %d %s", e.Generation, e.Iteration, e.What)
	default:
		return fmt.Sprintf("%d %d %s %.2f", e.Generation, e.Iteration, e.What, e.Seconds)
	}
}

func (p *play) note(what string, rank int, seconds float64) {
	p.result.Events = append(p.result.Events, Event{p.result.Generations, int(p.iteration), what, rank, seconds})
}
