package balance

import (
	"math"
	"slices"
)

// The predictors, as indices of what a memory holds for each.
const (
	lastValue = iota
	movingAverage
	arimaModel
	rnnModel
	narxModel
	predictors
)

var predictorNames = [predictors]string{Last, EMA, ARIMA, RNN, NARX}

// firstError is the squared error each predictor is assumed to have before any
// was seen: what needs to learn first must show its worth first.
var firstError = [predictors]float64{0.02, 0.019, 0.04, 0.04, 0.04}

// forecaster predicts the next speeds of all workers.
type forecaster struct {
	Seed uint64    `json:"seed"`
	NARX *narx     `json:"narx,omitempty"`
	RNN  *elman    `json:"rnn,omitempty"`
	use  int       // the predictor, or predictors for all
	all  []*memory // of the current workers, in order
	// partial: complete has not been called since forecast.
	partial bool
}

func newForecaster(name string, seed uint64) (*forecaster, bool) {
	f := &forecaster{Seed: seed, use: slices.Index(predictorNames[:], name)}
	if f.use < 0 {
		if name != Auto {
			return nil, false
		}
		f.use = predictors
	}
	if f.wants(narxModel) {
		f.NARX = newNARX(seed)
	}
	if f.wants(rnnModel) {
		f.RNN = newElman(seed)
	}
	return f, true
}

func (f *forecaster) wants(p int) bool { return f.use == predictors || f.use == p }

// learn trains what is trained online, on the rows so far.
func (f *forecaster) learn() {
	f.complete() // by what was learned before
	if f.wants(arimaModel) {
		for _, m := range f.all {
			m.ARIMA.fit(m.Rows)
		}
	}
	if f.NARX != nil {
		f.NARX.train(f.all, f.Seed)
	}
	if f.RNN != nil {
		f.RNN.train(f.all, f.Seed)
	}
}

// forecast fills in what decides: the forecast of each worker by the predictor
// that it goes by. The others' are not needed before their errors are told, and
// wait for complete, off the way from the last report to the shares.
func (f *forecaster) forecast() {
	f.fill(func(m *memory, p int) bool { return p == f.choice(m) })
	f.partial = true
}

// complete fills in the forecasts that forecast left out.
func (f *forecaster) complete() {
	if f.partial {
		f.partial = false
		f.fill(func(m *memory, p int) bool { return p != f.choice(m) })
	}
}

// fill makes some of the forecasts of workers that have rows. Those of one
// predictor do not depend on which others are made, nor for whom.
func (f *forecaster) fill(which func(m *memory, p int) bool) {
	some := make([]*memory, 0, len(f.all))
	for p := range predictors {
		some = some[:0]
		for _, m := range f.all {
			if n := len(m.Rows); n > 0 && which(m, p) {
				m.Forecasts[p] = m.Rows[n-1].Speed
				some = append(some, m)
			}
		}
		switch {
		case len(some) == 0:
			continue
		case p == movingAverage:
			for _, m := range some {
				m.Forecasts[p] = m.Mean
			}
		case p == arimaModel && f.wants(p):
			for _, m := range some {
				m.Forecasts[p] += m.ARIMA.step(m.Rows)
			}
		case p == rnnModel && f.RNN != nil:
			f.RNN.predict(some)
		case p == narxModel && f.NARX != nil:
			f.NARX.predict(some)
		}
		for _, m := range some {
			last, v := m.Rows[len(m.Rows)-1].Speed, m.Forecasts[p]
			// No predictor says that a worker becomes e times faster or slower.
			if m.Forecasts[p] = min(max(v, last-1), last+1); math.IsNaN(v) {
				m.Forecasts[p] = last
			}
		}
	}
}

// choice is the predictor that a worker is predicted with now.
func (f *forecaster) choice(m *memory) int {
	if f.use < predictors {
		return f.use
	}
	best := 0
	for p, e := range m.Errors {
		if e < m.Errors[best] {
			best = p
		}
	}
	return best
}

// speed is the predicted next speed of a worker, in samples a second; 0 where
// it has not reported.
func (f *forecaster) speed(m *memory) float64 {
	if len(m.Rows) == 0 {
		return 0
	}
	return math.Exp(m.Forecasts[f.choice(m)])
}

// Forecast is what each predictor says of a worker's next speed.
type Forecast struct {
	Worker string
	// Speeds in samples a second by predictor; empty before the first report, and
	// without the predictors that are not run.
	Speeds map[string]float64
	// Chosen is the predictor that counts.
	Chosen string
}

// Forecasts are those of all workers, in order, for plots and comparisons. The
// allocator GPU predicts no speeds and gives none.
func (b *Balancer) Forecasts() []Forecast {
	b.forecaster.complete()
	out := make([]Forecast, len(b.workers))
	for i, m := range b.forecaster.all {
		out[i] = Forecast{Worker: b.workers[i].Name, Speeds: map[string]float64{}}
		if _, learns := b.allocator.(*byGPU); learns || len(m.Rows) == 0 {
			continue
		}
		for p, name := range predictorNames {
			if f := b.forecaster; p == lastValue || p == movingAverage || f.wants(p) {
				out[i].Speeds[name] = math.Exp(m.Forecasts[p])
			}
		}
		out[i].Chosen = predictorNames[b.forecaster.choice(m)]
	}
	return out
}
