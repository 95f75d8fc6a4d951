package balance

import "math"

// arima is an ARIMA(2,1,1) model of a worker's logarithmic speed: its steps d
// follow d_t = phi1 d_t-1 + phi2 d_t-2 + theta e_t-1 + e_t.
type arima struct {
	Phi   [2]float64 `json:"phi"`
	Theta float64    `json:"theta,omitempty"`
	Since int        `json:"since,omitempty"` // rows since the last fit
}

const (
	arimaRows  = 12 // rows it needs before it says anything but "as before"
	arimaEvery = 4
	ridge      = 1e-4
)

// fit estimates the parameters on a window by conditional least squares in two
// steps (Hannan and Rissanen, Biometrika 1982): errors of an AR(3), then a
// regression on steps and errors. It does so every few rows.
func (a *arima) fit(rows []row) {
	if a.Since++; len(rows) < arimaRows || a.Since < arimaEvery {
		return
	}
	a.Since = 0
	d := steps(rows)
	phi := regress(d, 3, nil)
	e := make([]float64, len(d))
	for t := 3; t < len(d); t++ {
		e[t] = d[t]
		for k := range 3 {
			e[t] -= phi[k] * d[t-1-k]
		}
	}
	c := regress(d, 2, e)
	a.Phi = [2]float64{clamp(c[0], 1.9), clamp(c[1], 0.95)}
	a.Theta = clamp(c[2], 0.95)
}

// step is the predicted next step.
func (a *arima) step(rows []row) float64 {
	if len(rows) < arimaRows {
		return 0
	}
	d := steps(rows)
	e := 0.0
	for t := 2; t < len(d); t++ {
		e = d[t] - a.Phi[0]*d[t-1] - a.Phi[1]*d[t-2] - a.Theta*e
	}
	n := len(d)
	return clamp(a.Phi[0]*d[n-1]+a.Phi[1]*d[n-2]+a.Theta*e, 1)
}

func steps(rows []row) []float64 {
	d := make([]float64, len(rows)-1)
	for i := range d {
		d[i] = rows[i+1].Speed - rows[i].Speed
	}
	return d
}

func clamp(v, most float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return min(max(v, -most), most)
}

// regress finds the coefficients of d_t on its lags and, if e is not nil, on
// e_t-1 as the last, by least squares with a small ridge.
func regress(d []float64, lags int, e []float64) [4]float64 {
	n := lags
	if e != nil {
		n++
	}
	var m [4][5]float64
	var x [4]float64
	for t := 4; t < len(d); t++ {
		for k := range lags {
			x[k] = d[t-1-k]
		}
		if e != nil {
			x[lags] = e[t-1]
		}
		for i := range n {
			for j := range n {
				m[i][j] += x[i] * x[j]
			}
			m[i][n] += x[i] * d[t]
		}
	}
	for i := range n {
		m[i][i] += ridge + 0.01*m[i][i]
	}
	// Gaussian elimination; the ridge keeps the matrix positive definite, so that
	// it needs no pivoting.
	for i := range n {
		for r := i + 1; r < n; r++ {
			f := m[r][i] / m[i][i]
			for c := i; c <= n; c++ {
				m[r][c] -= f * m[i][c]
			}
		}
	}
	var out [4]float64
	for i := n - 1; i >= 0; i-- {
		out[i] = m[i][n]
		for c := i + 1; c < n; c++ {
			out[i] -= m[i][c] * out[c]
		}
		out[i] /= m[i][i]
	}
	return out
}
