package compare

import (
	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/jobs"
)

// learned is a sim.Truth in which all goes as speeds believe: the world in
// which those are tuned that may not ask the truth.
type learned struct {
	board *jobs.Board
	rates map[cluster.TaskID]float64
}

func newLearned(speeds *jobs.Speeds) *learned {
	return &learned{jobs.NewBoard(speeds), map[cluster.TaskID]float64{}}
}

// crawl is the least progress of a job: a prediction of 0 would let it stand
// still for ever.
const crawl = 0.01

// Rates implements sim.Truth: all tasks of a gang have its progress.
func (l *learned) Rates(s *cluster.Snapshot, _ []cluster.TaskID) map[cluster.TaskID]float64 {
	l.board.Reset(place.Request{View: s})
	clear(l.rates)
	running := s.Running()
	for i, t := range l.board.Running() {
		l.rates[running[i].ID] = max(crawl, l.board.Progress(l.board.GangOf(int(t))))
	}
	return l.rates
}
