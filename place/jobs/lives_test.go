package jobs

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/placetest"
)

func hoursOf(h float64) time.Duration { return time.Duration(h * float64(time.Hour)) }

// lived shows a Lives gangs that run for so many hours, one after another on one
// device.
func lived(t *testing.T, hours func(i int) float64, n int) *Lives {
	t.Helper()
	speeds := NewSpeeds(placetest.Known{Model: placetest.Model{Names: []string{"a"}}, List: placetest.Workloads(1)}, Options{Scope: history.ScopeDevice})
	b, l, now := NewBoard(speeds), &Lives{}, time.Duration(0)
	for i := range n {
		g := placetest.Gang(fmt.Sprintf("g%d", i), 1, placetest.Workloads(1)[0])
		view, err := cluster.NewSnapshot(cluster.Spec{Nodes: cluster.Nodes("a", 1, 1, 0), Running: []cluster.Running{
			{Task: g.Tasks[0], Node: cluster.Nodes("a", 1, 1, 0)[0].Name, On: []int{0}, Group: g.Name, Started: now},
		}})
		if err != nil {
			t.Fatal(err)
		}
		b.Reset(place.Request{View: view, Now: now})
		l.See(b)
		now += hoursOf(hours(i))
	}
	return l
}

func TestWorthIsWhatEndsSoon(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	heavy := lived(t, func(int) float64 { return math.Exp(r.Float64()*7) / 4 }, 2000)
	alike := lived(t, func(int) float64 { return 10 * math.Exp(0.05*r.NormFloat64()) }, 500)
	memoryless := lived(t, func(int) float64 { return 5 * r.ExpFloat64() }, 4000)
	if a, b := heavy.Worth(hoursOf(5)), heavy.Worth(hoursOf(50)); !(1 > a && a > b && b > 0) {
		t.Errorf("of log-uniform durations, ages of 5 and 50 h are worth %g and %g, want less and less", a, b)
	}
	if a := alike.Worth(hoursOf(9)); a < 2 {
		t.Errorf("where all run for 10 h, one at 9 h is worth %g of a new one, want over twice as much", a)
	}
	for _, age := range []float64{1, 3, 8} {
		if w := memoryless.Worth(hoursOf(age)); math.Abs(w-1) > 0.25 {
			t.Errorf("of exponential durations an age of %g h is worth %g, want 1", age, w)
		}
	}
}

// The index is the best ratio over all horizons, not only those at which a stage
// ends: tried in small steps on the rates that were seen.
func TestIndexIsTheBestRatio(t *testing.T) {
	for name, hours := range map[string]func(i int) float64{
		"some short": func(i int) float64 { return []float64{1, 1, 1, 20}[i%4] },
		"alike":      func(i int) float64 { return 9 + float64(i%3) },
	} {
		l := lived(t, hours, 400)
		for _, at := range []int{0, 3, stageOf(3)} {
			alive, ends, spent, best := 1.0, 0.0, 0.0, 0.0
			for k := at; k < stages; k++ {
				const steps = 2000
				long := stageStart[k+1] - stageStart[k]
				before := endsFirst / (1 + (stageStart[k]+stageStart[k+1])/2)
				rate := (l.ended[k] + believed) / (l.spent[k] + believed/before)
				for range steps {
					spent += alive * long / steps
					ends += alive * rate * long / steps
					alive -= alive * rate * long / steps
					best = max(best, ends/spent)
				}
			}
			if math.Abs(l.index[at]/best-1) > 0.01 {
				t.Errorf("%s: index at stage %d is %g an hour, %g by small steps", name, at, l.index[at], best)
			}
		}
	}
}

func TestWorthBeforeAnythingEnded(t *testing.T) {
	if w := (&Lives{}).Worth(hoursOf(9)); w != 1 {
		t.Errorf("worth %g before anything was seen", w)
	}
	l := lived(t, func(int) float64 { return 1 }, 1)
	if w := l.Worth(hoursOf(9)); w < 0.08 || w > 0.2 {
		t.Errorf("worth of 9 h is %g by belief alone, want about 1/(1+9)", w)
	}
	again := lived(t, func(int) float64 { return 1 }, 1)
	if l.index != again.index {
		t.Error("the same gangs give other indices")
	}
}
