package balance

import (
	"math"
)

// row is one measurement of a worker's speed and what its node was doing.
type row struct {
	Speed  float64 `json:"s"` // logarithm of samples a second
	CPU    float64 `json:"c,omitempty"`
	Memory float64 `json:"m,omitempty"`
}

// memory is what was learned of a worker.
type memory struct {
	Iteration int64 `json:"iteration"` // of the last report; -1 before the first of a generation
	Rows      []row `json:"rows,omitempty"`
	Fits      int   `json:"fits,omitempty"`  // the largest size that ran
	Burst     int   `json:"burst,omitempty"` // the least that ran out of memory; 0 before any did
	// Forecasts are the logarithms of the next speed by each predictor, Errors
	// their smoothed squared errors so far.
	Forecasts [predictors]float64 `json:"forecasts"`
	Errors    [predictors]float64 `json:"errors"`
	Mean      float64             `json:"mean,omitempty"`   // of the moving average
	Upload    float64             `json:"upload,omitempty"` // seconds to communicate, smoothed
	ARIMA     arima               `json:"arima"`
	Curve     curve               `json:"curve"`
}

// maxRows is the window that predictors see.
const maxRows = 48

func newMemory() *memory {
	m := &memory{Iteration: -1}
	for p := range m.Errors {
		m.Errors[p] = firstError[p]
	}
	return m
}

// take learns from a report that was checked. True means that the worker's
// speed is known better for it.
func (m *memory) take(r Report) bool {
	if r.OutOfMemory {
		if r.BatchSize > 0 && (m.Burst == 0 || r.BatchSize < m.Burst) {
			m.Burst = r.BatchSize
			m.Fits = min(m.Fits, m.Burst-1)
		}
		return false
	}
	if r.BatchSize == 0 {
		return false
	}
	if m.Fits = max(m.Fits, r.BatchSize); m.Burst > 0 && m.Fits >= m.Burst {
		m.Burst = 0 // what once did not fit does now
	}
	upload := r.Communicate.Seconds()
	if len(m.Rows) == 0 {
		m.Upload = upload
	}
	m.Upload += smoothing * (upload - m.Upload)
	v := math.Log(float64(r.BatchSize) / r.Compute.Seconds())
	if len(m.Rows) == 0 {
		m.Mean = v
	} else {
		for p, f := range m.Forecasts {
			e := min(max(v-f, -2), 2) // a hiccup of e^2 says as much as a worse one
			m.Errors[p] += errorRate * (e*e - m.Errors[p])
		}
	}
	m.Mean += smoothing * (v - m.Mean)
	if len(m.Rows) == maxRows {
		m.Rows = append(m.Rows[:0], m.Rows[1:]...)
	}
	m.Rows = append(m.Rows, row{v, r.CPU, r.Memory})
	return true
}

// smoothing is the weight of the newest value in moving averages, errorRate
// that of the newest error in how predictors are compared.
const (
	smoothing = 0.3
	errorRate = 0.05
)
