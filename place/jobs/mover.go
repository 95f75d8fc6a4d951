package jobs

var horizonParam = Param{
	Key: "horizon", Meaning: "seconds over which what a move gains is counted against its cost",
	Low: 60, High: 1e6, Default: 7200, Log: true,
}

type mover struct{ cost, horizon float64 }

func (m *mover) improve(*Board) {}
