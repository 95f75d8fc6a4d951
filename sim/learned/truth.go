package learned

import (
	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/jobs"
)

// Truth is a sim.Truth made of beliefs. It is for one run at a time.
type Truth struct {
	board *jobs.Board
	rates map[cluster.TaskID]float64
}

// New makes a world of beliefs; nobody else may use speeds meanwhile.
func New(speeds *jobs.Speeds) *Truth {
	return &Truth{jobs.NewBoard(speeds), map[cluster.TaskID]float64{}}
}

// crawl is the least progress of a job: a prediction of 0 would let it stand
// still for ever.
const crawl = 0.01

// Scale implements sim.Scaler.
func (l *Truth) Scale(workload string, own, workers int) float64 {
	return l.board.Faster(workload, own, workers)
}

// Rates implements sim.Truth: all tasks of a gang have its progress at the size
// that it has, at least 0.01.
func (l *Truth) Rates(s *cluster.Snapshot, _ []cluster.TaskID) map[cluster.TaskID]float64 {
	l.board.Reset(place.Request{View: s})
	clear(l.rates)
	running := s.Running()
	for i, t := range l.board.Running() {
		g := l.board.GangOf(int(t))
		l.rates[running[i].ID] = max(crawl, l.board.Progress(g)/l.board.Scale(g))
	}
	return l.rates
}
