package jobs

import "time"

var greedyWaitEntry = entry{
	name:   "greedy-wait",
	params: []Param{thresholdParam, patienceParam},
	moves:  true,
	make: func(n numbers, _ Settings) (placer, error) {
		return taskwise{&Greedy{wait: newWaiting(n)}}, nil
	},
}

var thresholdParam = Param{
	Key: "threshold", Meaning: "the least gain in the sum of progress for which a gang is placed",
	Low: -1, High: 1.2, Default: 0.5, PerClass: true,
}

var patienceParam = Param{
	Key: "max-wait", Meaning: "seconds of waiting after which a gang is placed whatever it gains",
	Low: 60, High: 1e8, Default: 1e8, Log: true,
}

// waiting is when a gang rather waits than takes what fits.
type waiting struct {
	threshold perClass
	most      time.Duration
}

func newWaiting(n numbers) *waiting {
	return &waiting{threshold: n.byClass("threshold"), most: time.Duration(n.value("max-wait") * float64(time.Second))}
}

// accepts judges a single task on a site.
func (w *waiting) accepts(b *Board, t, s int32, gain float64) bool {
	return gain >= w.threshold.of(b, b.sites[s].class) || w.late(b, int(b.tasks[t].gang))
}

// acceptsGang judges a placed gang by the highest threshold of its classes.
func (w *waiting) acceptsGang(b *Board, gang int, gain float64) bool {
	if w.late(b, gang) {
		return true
	}
	for _, t := range b.gangs[gang].tasks {
		if gain < w.threshold.of(b, b.sites[b.tasks[t].site].class) {
			return false
		}
	}
	return true
}

func (w *waiting) late(b *Board, gang int) bool { return b.Age(gang) > w.most }

// patience implements choosy: gangs that waited too long are judged apart.
func (g *Greedy) patience(b *Board, gang int) bool { return g.wait != nil && g.wait.late(b, gang) }
