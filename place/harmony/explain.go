package harmony

import (
	"fmt"

	"github.com/cotenant/cotenant/internal/num"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/encode"
)

// Names of the scores in reasons. Gain, own and hurt are in progress; the
// others are the network's, of which only differences mean something.
const (
	scoreGain    = "gain"
	scoreOwn     = "own"
	scoreHurt    = "hurt"
	scoreNetwork = "network"
	scoreWaiting = "waiting"
)

// weighed is what the features of a way to place a gang say of it, in words
// and in numbers; scores are the network's, nil where it was not asked.
func weighed(candidates num.Matrix, scores []float32, k int) place.Reason {
	x := candidates.Row(k)
	gain, own, hurt := float64(x[encode.Gain]), float64(x[encode.Own]), float64(x[encode.Hurt])
	r := place.Reason{
		Words:  fmt.Sprintf("the sum of progress changes by %+.3f: %.3f its own, %+.3f the others'", gain, own, hurt),
		Scores: map[string]float64{scoreGain: gain, scoreOwn: own, scoreHurt: hurt},
	}
	if scores == nil {
		return r
	}
	r.Scores[scoreNetwork] = float64(scores[k])
	if candidates.Row(0)[encode.Wait] == 1 {
		r.Scores[scoreWaiting] = float64(scores[0])
	}
	return r
}

// explainPlaced notes why the gang goes where way k puts it. Ask it before the
// gang is put there.
func (p *Policy) explainPlaced(g, k int) {
	r := weighed(p.asked, p.scores, k)
	_, mayWait := r.Scores[scoreWaiting]
	switch {
	case p.scores == nil:
	case mayWait:
		r.Words += fmt.Sprintf("; the network scores that %.2f, the best of %d ways, and waiting %.2f", r.Scores[scoreNetwork], len(p.ways)-1, r.Scores[scoreWaiting])
	default:
		r.Words += fmt.Sprintf("; the network scores that %.2f, the best of %d ways, and to wait was no choice", r.Scores[scoreNetwork], len(p.ways))
	}
	for i, t := range p.board.Tasks(g) {
		own := r
		own.Words = fmt.Sprintf("on %s %s", p.board.SiteName(int(p.ways[k].Sites[i])), r.Words)
		p.board.Note(int(t), own)
	}
}

// waitsWords says why a gang waits that fits.
func (p *Policy) waitsWords(g int) string {
	best := 0
	for k := range p.ways {
		if len(p.ways[k].Sites) > 0 && (best == 0 || p.scores != nil && p.scores[k] > p.scores[best]) {
			best = k
		}
	}
	sites := p.ways[best].Sites
	where := "on " + p.board.SiteName(int(sites[0]))
	if len(sites) > 1 {
		where = fmt.Sprintf("for its %d tasks", len(sites))
	}
	r := weighed(p.asked, p.scores, best)
	words := fmt.Sprintf("waits for a better place: with the best that there is now, %s, %s", where, r.Words)
	if p.scores != nil {
		words += fmt.Sprintf("; the network scores that %.2f and waiting %.2f", r.Scores[scoreNetwork], r.Scores[scoreWaiting])
	}
	return words
}

// explainMove notes why a task is elsewhere after two devices were divided
// anew.
func (m *mover) explainMove(t int, gain float64) {
	b := m.board
	if !b.Explain {
		return
	}
	words := fmt.Sprintf("moved to %s", b.SiteName(b.At(t)))
	if b.Home(t) < 0 {
		words = fmt.Sprintf("on %s after others moved", b.SiteName(b.At(t)))
	}
	b.Note(t, place.Reason{
		Words: fmt.Sprintf("%s: the tasks of two devices, divided anew, make %.3f more progress, weighted by age (hours^-%.2g), with %.2g %% off what moves for its standstill within %.0f s",
			words, gain, m.moves.Fade, 100*m.cost, m.moves.Horizon),
		Scores: map[string]float64{scoreGain: gain},
	})
}
