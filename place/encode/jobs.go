package encode

import (
	"math"
	"time"

	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/internal/num"
	"github.com/cotenant/cotenant/place/jobs"
)

// JobsVersion numbers the features below.
const JobsVersion = 1

// The features of a way to place a gang. All of them but Wait are 0 for
// waiting.
const (
	Wait        = iota // 1 for waiting, else 0
	Prior              // gain less the Threshold: what greedy-wait goes by, with one that is fixed and no Ages
	Gain               // change of the sum of progress over all gangs
	Own                // progress of the gang there
	Hurt               // what the others lose, at most 0 but where company helps
	Speed              // progress there with nothing beside it
	Empty              // share of its sites that nobody is on
	Load               // share of the device slots in use
	Age                // of the neighbours, mean of log hours
	AgeGain            // Age x Gain
	AgeHurt            // Age x Hurt
	Doubt              // standard deviation that the model expects of Own
	Before             // how welcome one more task is there without the gang
	After              // and with it
	Rival              // best gain of another waiting kind there, less Gain
	Rivals             // share of waiting kinds that gain more there
	Alike              // share of the sites that are just like it
	Apart              // whether the gang sits on several nodes
	Performance        // Own / Speed
	Least              // lowest performance among the neighbours
	Lead               // Gain less the best gain of the other options
	Features
)

// The features of a decision.
const (
	Queue    = iota // log of the jobs that wait for each site
	Waited          // log hours that the gang waited
	Free            // share of sites without tenants
	Open            // share of sites with a free slot
	Best            // best gain among the options, 0 for none
	Sociable        // how welcome one more task is beside the gang alone
	Workers         // log of the number of workers
	Pace            // progress of all gangs for each site
	QueueAge        // log of the mean hours that the queue waited
	Slowest         // progress alone on the worst class / on the best
	Older           // share of the queue that came before the gang
	FreeFast        // share of free sites among those of the best class
	Contexts
)

// Threshold is the gain in progress from which Prior prefers placing to
// waiting: Free where nobody waits, and ever closer to Queued the more do,
//
//	Queued + (Free - Queued) exp(-Fall x jobs that wait for each site)
//
// With a short queue who waits a little gets a better place; with a long one
// all the devices are wanted. A gang that some node would hold whole has to gain
// Apart more to be placed on several: spread out, it takes as many devices for
// much longer.
//
// What the gain costs neighbours that are gangs of one task counts Lives.Worth of
// their ages to the power of Ages: 0 is alike for all ages. It is part of a trained
// policy.
type Threshold struct {
	Free   float64 `json:"free"`
	Queued float64 `json:"queued"`
	Fall   float64 `json:"fall"`
	Apart  float64 `json:"apart,omitempty"`
	Ages   float64 `json:"ages,omitempty"`
}

// DefaultThreshold is that of new policies where tasks share what scope says; it
// was chosen by the JCT of a policy that follows it, in the worlds that
// docs/train.md names.
func DefaultThreshold(scope history.Scope) Threshold {
	t := Threshold{Free: 0.6, Queued: 0.25, Fall: 3}
	if scope == history.ScopeNode {
		t.Apart = 0.6
	}
	return t
}

// Fixed is a threshold that does not look at the queue.
func Fixed(gain float64) Threshold { return Threshold{Free: gain, Queued: gain} }

// At is the threshold where so many jobs wait for each site.
func (t Threshold) At(queue float64) float64 {
	return t.Queued + (t.Free-t.Queued)*math.Exp(-t.Fall*queue)
}

// Option is a way to place a gang: the site of each of its tasks, in their
// order. Without sites it is to wait.
type Option struct {
	Sites []int32
	Alike int32 // how many ways are just like it, itself included
}

// Jobs encodes decisions about the gangs of a board. It is not safe for
// concurrent use.
type Jobs struct {
	board     *jobs.Board
	threshold Threshold

	kinds      []int32 // a waiting single task of each kind that waits
	mark       int     // of the board when the sites were counted
	lo, hi     int     // the sites that workers can be on
	free, open float64
	freeOf, of []float64 // share of free sites, and sites, by class number
	queueAge   float64
	pace       float64
	total      float64 // sum of progress when the board was reset
	first      int     // a worker that waits
	least      float64 // the threshold now
	lives      jobs.Lives

	rows    []float32
	context [Contexts]float32
	gains   []float64
}

// NewJobs encodes for one board.
func NewJobs(b *jobs.Board, t Threshold) *Jobs {
	b.Index()
	return &Jobs{board: b, threshold: t}
}

// hours is a time as features show it.
func hours(d time.Duration) float64 { return math.Log1p(max(0, d.Hours())) / 4 }

// maxKinds bounds the waiting kinds that are compared.
const maxKinds = 24

// Begin reads the queue. Call it after each Reset of the board.
func (e *Jobs) Begin() {
	b := e.board
	e.kinds = e.kinds[:0]
	e.queueAge = 0
	seen := map[int]bool{}
	e.lo, e.hi = 0, 0
	for i := range b.Pending() {
		g := b.Gang(i)
		tasks := b.Tasks(g)
		if len(tasks) == 0 {
			continue
		}
		e.queueAge += b.Age(g).Hours()
		if e.hi == 0 {
			e.first = e.worker(g)
			e.lo, e.hi = b.Range(e.first)
		}
		if len(tasks) == 1 && len(e.kinds) < maxKinds && !seen[b.Kind(g)] {
			seen[b.Kind(g)] = true
			e.kinds = append(e.kinds, tasks[0])
		}
	}
	e.queueAge /= float64(max(1, b.Pending()))
	e.least = e.threshold.At(float64(b.Pending()) / float64(max(1, e.hi-e.lo)))
	if e.threshold.Ages > 0 {
		e.lives.See(b)
	}
	e.mark = -1
	e.total = b.Total() - b.Gained()
}

// worker is the first task of a gang that is no parameter server.
func (e *Jobs) worker(g int) int {
	tasks := e.board.Tasks(g)
	for _, t := range tasks {
		if !e.board.Serves(int(t)) {
			return int(t)
		}
	}
	return int(tasks[0])
}

// count looks over the sites, again where the board has changed.
func (e *Jobs) count() {
	b, t := e.board, e.first
	if e.mark == b.Mark() {
		return
	}
	e.mark = b.Mark()
	free, open := int32(0), int32(0)
	e.freeOf, e.of = e.freeOf[:0], e.of[:0]
	for _, k := range b.Groups(t) {
		c := b.Class(int(k.Site))
		for len(e.of) <= c {
			e.of, e.freeOf = append(e.of, 0), append(e.freeOf, 0)
		}
		e.of[c] += float64(k.Alike)
		if left, _ := b.Slots(int(k.Site)); left > 0 {
			open += k.Alike
		}
		if len(b.Tenants(int(k.Site))) == 0 {
			free += k.Alike
			e.freeOf[c] += float64(k.Alike)
		}
	}
	for c := range e.of {
		e.freeOf[c] /= max(1, e.of[c])
	}
	n := float64(max(1, e.hi-e.lo))
	e.free, e.open = float64(free)/n, float64(open)/n
	e.pace = (e.total + b.Gained()) / n
}

// Encode gives the features of the options of a gang, none of whose tasks is
// placed: shapes (options, Features) and Contexts. Both are good until the
// next call.
func (e *Jobs) Encode(g int, options []Option) (candidates num.Matrix, context []float32) {
	e.count()
	n := len(options) * Features
	if cap(e.rows) < n {
		e.rows = make([]float32, n)
	}
	e.rows = e.rows[:n]
	clear(e.rows)
	e.gains = e.gains[:0]
	best, second := math.Inf(-1), math.Inf(-1)
	for i, o := range options {
		x := e.rows[i*Features : (i+1)*Features]
		if len(o.Sites) == 0 {
			x[Wait] = 1
			e.gains = append(e.gains, math.Inf(-1))
			continue
		}
		gain := e.option(g, o, x)
		e.gains = append(e.gains, gain)
		if gain > best {
			best, second = gain, best
		} else {
			second = max(second, gain)
		}
	}
	for i, gain := range e.gains {
		other := best
		if gain == best {
			other = second
		}
		if !math.IsInf(gain, -1) && !math.IsInf(other, -1) {
			e.rows[i*Features+Lead] = float32(clamp(gain-other, -1, 1))
		}
	}
	e.describe(g, best)
	return num.Matrix{Rows: len(options), Cols: Features, Data: e.rows}, e.context[:]
}

// option fills in the features of one way to place a gang.
func (e *Jobs) option(g int, o Option, x []float32) (gain float64) {
	b, speeds := e.board, e.board.Speeds()
	tasks := b.Tasks(g)
	var age, neighbours, empty, load, before, after, doubt, fastest, spared float64
	least := 1.0
	mark := b.Mark()
	for i, t := range tasks {
		s := int(o.Sites[i])
		config, w := b.Config(s), int32(b.Workload(int(t)))
		free, all := b.Slots(s)
		if len(b.Tenants(s)) == 0 {
			empty++
		}
		load += 1 - float64(free)/float64(max(1, all))
		for _, r := range b.Tenants(s) {
			rg := b.GangOf(int(r))
			if rg == g {
				continue
			}
			if !b.Waits(rg) {
				age += hours(b.Age(rg))
			}
			neighbours++
		}
		before += speeds.Potential(config)
		next := config
		if b.Meets(s) {
			next = speeds.Next(config, w)
			doubt = max(doubt, speeds.Std(next, w))
			for _, r := range b.Tenants(s) {
				least = min(least, speeds.Performance(next, int32(b.Workload(int(r)))))
			}
		}
		if free > 1 {
			after += speeds.Potential(next)
		}
		if len(tasks) == 1 && e.threshold.Ages > 0 && b.Meets(s) {
			spared = e.spared(s, next)
		}
		fastest = max(fastest, b.Alone(g, b.Class(s), false))
		gain += b.Gain(int(t), s)
		if len(tasks) > 1 {
			b.Put(int(t), s)
		}
	}
	n := float64(len(tasks))
	var own float64
	if len(tasks) > 1 {
		own = b.Progress(g)
		if e.apart(tasks) {
			x[Apart] = 1
		}
		b.Undo(mark)
	} else {
		s := int(o.Sites[0])
		own = b.Alone(g, b.Class(s), false)
		if b.Meets(s) {
			w := int32(b.Workload(int(tasks[0])))
			own *= speeds.Performance(speeds.Next(b.Config(s), w), w)
		}
		e.rivals(int(tasks[0]), s, gain, x)
	}
	if neighbours > 0 {
		age /= neighbours
	}
	enough := e.least
	if x[Apart] == 1 && b.Holds(g) {
		enough += e.threshold.Apart
	}
	x[Prior] = float32(gain + spared - enough)
	x[Gain] = float32(gain)
	x[Own] = float32(own)
	x[Hurt] = float32(gain - own)
	x[Speed] = float32(fastest)
	x[Empty] = float32(empty / n)
	x[Load] = float32(load / n)
	x[Age] = float32(age)
	x[AgeGain] = float32(age * gain)
	x[AgeHurt] = float32(age * (gain - own))
	x[Doubt] = float32(doubt)
	x[Before] = float32(before / n)
	x[After] = float32(after / n)
	x[Alike] = float32(float64(o.Alike) / float64(max(1, e.hi-e.lo)))
	if fastest > 0 {
		x[Performance] = float32(own / fastest)
	}
	x[Least] = float32(least)
	return gain
}

// spared is by how much less the losses of the neighbours on a site count, where
// the co-location becomes next, for their ages.
func (e *Jobs) spared(s int, next jobs.Config) (sum float64) {
	b := e.board
	for _, r := range b.Tenants(s) {
		g := b.GangOf(int(r))
		if b.Waits(g) || len(b.Tasks(g)) > 1 {
			continue
		}
		after := b.Alone(g, b.Class(s), false) * b.Speeds().Performance(next, int32(b.Workload(int(r))))
		sum += (after - b.Progress(g)) * (math.Pow(e.lives.Worth(b.Age(g)), e.threshold.Ages) - 1)
	}
	return sum
}

func (e *Jobs) apart(tasks []int32) bool {
	first := -1
	for _, t := range tasks {
		node, _ := e.board.Site(e.board.At(int(t)))
		if first < 0 {
			first = node
		} else if node != first {
			return true
		}
	}
	return false
}

// rivals compares with the other kinds that wait.
func (e *Jobs) rivals(t, s int, gain float64, x []float32) {
	b := e.board
	kind, more, others := b.Kind(b.GangOf(t)), 0.0, 0.0
	best := 0.0
	for _, r := range e.kinds {
		if b.At(int(r)) >= 0 || b.Kind(b.GangOf(int(r))) == kind {
			continue
		}
		others++
		if b.Fit(int(r), s) != jobs.Fits {
			continue
		}
		other := b.Gain(int(r), s)
		if other > gain {
			more++
		}
		best = max(best, other)
	}
	if others > 0 {
		x[Rival] = float32(clamp(best-gain, -1, 1))
		x[Rivals] = float32(more / others)
	}
}

// describe fills in the context.
func (e *Jobs) describe(g int, best float64) {
	b, c := e.board, &e.context
	sites := float64(max(1, e.hi-e.lo))
	if math.IsInf(best, -1) {
		best = 0
	}
	older := 0
	for i := range b.Pending() {
		if b.Gang(i) == g {
			older = i
			break
		}
	}
	t := e.worker(g)
	speeds := b.Speeds()
	fast, slow, fastest := 0.0, math.Inf(1), 0
	for class := range e.freeOf {
		if p := b.Alone(g, class, false); p > 0 {
			slow = min(slow, p)
			if p > fast {
				fast, fastest = p, class
			}
		}
	}
	if math.IsInf(slow, 1) {
		slow = 0
	}
	c[Queue] = float32(math.Log1p(float64(b.Pending())/sites) / 2)
	c[Waited] = float32(hours(b.Age(g)))
	c[Free] = float32(e.free)
	c[Open] = float32(e.open)
	c[Best] = float32(best)
	c[Sociable], c[FreeFast] = 0, 0
	if fast > 0 {
		empty := speeds.Empty(speeds.Classes()[fastest])
		c[Sociable] = float32(speeds.Potential(speeds.Next(empty, int32(b.Workload(t)))))
		c[FreeFast] = float32(e.freeOf[fastest])
	}
	c[Workers] = float32(math.Log(float64(max(1, b.Workers(g)))) / 3)
	c[Pace] = float32(e.pace)
	c[QueueAge] = float32(math.Log1p(e.queueAge) / 4)
	c[Slowest] = float32(slow / max(fast, 1e-9))
	c[Older] = float32(float64(older) / float64(max(1, b.Pending())))
}

func clamp(x, lo, hi float64) float64 { return max(lo, min(hi, x)) }
