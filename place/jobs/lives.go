package jobs

import (
	"math"
	"slices"
	"time"
)

// Lives learns, from the gangs that it sees end, how long they run, and says what
// the progress of one is worth by its age: its Gittins index over that of a new
// one. The index is the most that can be had of finishing for each hour spent,
//
//	max over d of P(it ends within d hours more) / E(hours that it runs of these d)
//
// and giving the place to the gang with the highest is what makes the mean time
// to finish least on a single server (Gittins, Bandit processes and dynamic
// allocation indices, J. R. Stat. Soc. B 1979; for training jobs: Gu et al.,
// Tiresias, NSDI 2019). Where durations are heavy-tailed, old gangs are worth
// little; where all run about as long, much.
//
// It is for gangs by their names. The zero value has seen none.
type Lives struct {
	began map[string]time.Duration // of those that run
	ages  []float64                // of those that ended, in hours, since it was reckoned last
	ended [stages]float64
	spent [stages]float64 // hours that those which ended had in each stage
	index [stages]float64
	known bool
}

// Ages are told apart in stages, each half as long again as the one before.
const (
	stages     = 32
	firstStage = 0.125 // hours, of the first
	stageRatio = 1.5
)

// What is believed before anything has ended: of gangs of an age of so many hours
// 1/(4 (1 + hours)) end in an hour, which is worth as much in each stage as if
// so many had ended in it.
const (
	endsFirst = 0.25
	believed  = 0.5
)

// stageStart is the age in hours at which each stage begins, and the last ends.
var stageStart = func() (start [stages + 1]float64) {
	for k := range start {
		start[k] = firstStage * (math.Pow(stageRatio, float64(k)) - 1) / (stageRatio - 1)
	}
	return start
}()

func stageOf(hours float64) int {
	k := int(math.Log1p(max(0, hours)*(stageRatio-1)/firstStage) / math.Log(stageRatio))
	return min(k, stages-1)
}

// spend adds the hours of an age to the stages that they were in.
func spend(to *[stages]float64, hours float64) {
	for k := range to {
		start := stageStart[k]
		if hours <= start {
			return
		}
		if k+1 < stages {
			to[k] += min(hours, stageStart[k+1]) - start
		} else {
			to[k] += hours - start
		}
	}
}

// See takes in which gangs run on a board that was just Reset. Those that ran when
// it saw one last and do not now have ended.
func (l *Lives) See(b *Board) {
	now := make(map[string]time.Duration, len(l.began)+1)
	for _, t := range b.running {
		if k := &b.gangs[b.tasks[t].gang]; k.tasks[0] == t {
			now[k.name] = k.since
		}
	}
	from := len(l.ages)
	for name, since := range l.began {
		if _, runs := now[name]; !runs {
			l.ages = append(l.ages, (b.req.Now - since).Hours())
		}
	}
	slices.Sort(l.ages[from:]) // a sum depends on the order, and a map has none
	l.began = now
	if len(l.ages) > 0 || !l.known {
		l.reckon(b)
	}
}

// reckon brings the indices up to date.
func (l *Lives) reckon(b *Board) {
	for _, hours := range l.ages {
		l.ended[stageOf(hours)]++
		spend(&l.spent, hours)
	}
	l.ages, l.known = l.ages[:0], true
	spent := l.spent
	for _, t := range b.running {
		if k := &b.gangs[b.tasks[t].gang]; k.tasks[0] == t {
			spend(&spent, (b.req.Now - k.since).Hours())
		}
	}
	var rate, long [stages]float64 // of ending, an hour; and hours of a stage
	for k := range stages {
		start, end := stageStart[k], stageStart[k+1]
		before := endsFirst / (1 + (start+end)/2)
		rate[k] = (l.ended[k] + believed) / (spent[k] + believed/before)
		long[k] = end - start
	}
	for at := range stages {
		alive, ends, hours := 1.0, 0.0, 0.0
		l.index[at] = 0
		for k := at; k < stages; k++ {
			gone := alive * -math.Expm1(-rate[k]*long[k])
			ends += gone
			hours += gone / rate[k]
			alive -= gone
			l.index[at] = max(l.index[at], ends/hours)
		}
	}
}

// Worth is what an hour's progress of a gang of an age is worth, over that of a
// gang which has just begun. Before anything was seen it is 1.
func (l *Lives) Worth(age time.Duration) float64 {
	if !l.known {
		return 1
	}
	return l.index[stageOf(age.Hours())] / l.index[0]
}
