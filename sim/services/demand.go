package services

import (
	"math"
	"time"

	"github.com/cotenant/cotenant/cluster"
)

// demand counts what arrived, older arrivals less: each decays with the time
// constant of memory mean lifetimes, and counts for as much less. In a steady
// state its expectation is the number of tasks that arrive in one lifetime.
type demand struct {
	workloads []cluster.Workload
	lifetime  time.Duration
	scaled    []float64 // decayed to the instant base
	base      time.Duration
}

// memory is how many mean lifetimes an arrival counts.
const memory = 2

func newDemand(w []cluster.Workload, lifetime time.Duration) demand {
	return demand{workloads: w, lifetime: lifetime, scaled: make([]float64, len(w))}
}

func (d *demand) age(now time.Duration) float64 {
	return float64(now-d.base) / (memory * float64(d.lifetime))
}

// add counts n tasks. What stands at the beginning stands for all that arrived
// before, which would count as much by now.
func (d *demand) add(w int, now time.Duration, n float64) {
	if d.lifetime == 0 {
		return
	}
	if now > 0 {
		n /= memory
	}
	age := d.age(now)
	if age > 100 {
		for i := range d.scaled {
			d.scaled[i] *= math.Exp(-age)
		}
		d.base, age = now, 0
	}
	d.scaled[w] += n * math.Exp(age)
}

// expected is place.Request.Expected.
func (d *demand) expected(now time.Duration) map[string]float64 {
	if d.lifetime == 0 {
		return nil
	}
	factor := math.Exp(-d.age(now))
	out := make(map[string]float64, len(d.workloads))
	for i, w := range d.workloads {
		if d.scaled[i] > 0 {
			out[w.Name] = d.scaled[i] * factor
		}
	}
	return out
}
