package harmony

import "github.com/cotenant/cotenant/place/jobs"

// scale gives gangs more or fewer workers within their bounds, as jobs.Scaler
// does for the policies by rule. Whether a gang starts that others make room
// for, or that starts with fewer workers, is the network's to say.
func (p *Policy) scale() {
	p.scaler.Cost, p.scaler.Horizon = p.options.Scale.Seconds(), p.options.Moves.Horizon
	p.scaler.Improve(p.board, p)
}

// Start implements jobs.Starter.
func (p *Policy) Start(b *jobs.Board, i int) bool {
	g := b.Gang(i)
	p.afresh() // the board went back and forth
	p.offer(i, g)
	return b.At(int(b.Tasks(g)[0])) >= 0
}
