package encode

import (
	"math"

	"github.com/cotenant/cotenant/place"
)

// ServicesVersion numbers the features below.
const ServicesVersion = 2

// The features of a node as the place of a task. Values are in units of what a
// task alone adds to the objective.
const (
	ServiceLead         = iota // gain there less the best gain that a task of its workload has now: what greedy goes by
	ServiceGain                // what the objective gains
	ServiceLoss                // gain less that on an empty node of the class
	ServiceFill                // share of the room in use
	ServiceEmpty               // 1 where nothing runs
	ServiceBefore              // what the demand to come would gain there, in the mean
	ServiceAfter               // and with the task
	ServiceBest                // by how much the node beats all others for some workload to come
	ServiceOpened              // and with the task
	ServiceMean                // mean over the demand to come of how much it beats all others
	ServiceAdded               // and with the task
	ServiceRival               // comparative advantage of the workload to come that has most, less the task's
	ServiceAlike               // log of the nodes just like it
	ServicePace                // mean value of the tasks on it
	ServicePath                // what the node can still become against prices of today's best gains: change
	ServicePathMean            // the same against today's mean gains
	ServicePathFree            // the same at no price, the next few tasks
	ServiceNext                // level of ServicePath with the task
	ServiceNextMean            // level of ServicePathMean with the task
	ServiceOver                // gain less what a task of its workload is worth where such tasks sit
	ServicePathWorth           // what the node can still become against what tasks are worth where they sit: change
	ServiceNextWorth           // level of it with the task
	ServiceLeft                // tasks that still fit with the task, for each one to come
	ServiceOverMargin          // gain less that of the last place that tasks of its workload need, were they alone to come
	ServiceReserve             // mean over the demand to come of how much the node beats those places
	ServiceReserved            // and with the task
	ServicePathMargin          // what the node can still become against prices of the gains there: change
	ServiceNextMargin          // level of it with the task
	ServiceScarce              // of what it would become then, how much more of it is wanted by nodes than is to come
	ServiceScarceBefore        // the same without the task
	ServiceFeatures
)

// The features of a decision.
const (
	ServiceDemand    = iota // log of the tasks to come for each node
	ServiceRoom             // share of free room
	ServicePressure         // tasks to come / free room
	ServiceShare            // share of the task's workload in them
	ServiceAlone            // gain of the workload on an empty node
	ServiceBestNow          // best gain now
	ServiceMeanNow          // mean gain over open nodes now
	ServiceWorthNow         // what a task of the workload is worth where such tasks sit
	ServiceAllWorth         // mean over the demand to come of that
	ServiceAllBest          // mean over the demand to come of the best gains
	ServiceAllMean          // and of the mean gains
	ServiceMixed            // entropy of the demand to come, as a share of the most it can be
	ServiceValue            // mean value of the running tasks
	ServiceChurn            // share of the demand to come that is expected, not pending
	ServiceSpread           // standard deviation of the gains of open nodes
	ServiceMarginNow        // gain at the last place that tasks of the workload need, were they alone to come
	ServiceAllMargin        // mean over the demand to come of that
	ServiceClaimed          // log of how much more of the workload nodes want than is to come
	ServiceContexts
)

// State tells of the nodes in one state: what runs on them and how much room
// they have.
type State struct {
	Config place.Config
	Nodes  int     // that are in it
	Room   int     // tasks that still fit
	Fill   float64 // share of the room in use
}

// Services encodes decisions about single tasks of services. It is not safe
// for concurrent use.
type Services struct {
	values *place.Values

	share      []float64 // of the demand to come, by workload number
	worth      []float64 // mean over the tasks that sit somewhere of what would be lost without one
	best, mean []float64 // gains now, by workload number
	margin     []float64
	scarce     []float64
	joined     []int32 // what the last follow added
	offers     []offer
	deviation  []float64
	alone      []float64
	unit       float64
	context    [ServiceContexts]float32
	coming     float64 // tasks to come for each node
	kinds      []int32 // workloads to come

	// What holds until the next Begin.
	paths map[pathKey]path
	views map[place.Config]view
	fill  []place.Config

	// The worst performance of all nodes, and of all but one that has it; +Inf
	// where nothing runs.
	lowest, second float64
}

// NewServices encodes over the co-locations of v.
func NewServices(v *place.Values) *Services {
	n := len(v.Workloads())
	zeros := func() []float64 { return make([]float64, n) }
	return &Services{
		lowest: math.Inf(1), second: math.Inf(1),
		values: v, share: zeros(), worth: zeros(), best: zeros(), mean: zeros(), margin: zeros(), scarce: zeros(), deviation: zeros(), alone: zeros(),
		paths: map[pathKey]path{}, views: map[place.Config]view{},
	}
}

// Begin looks at the cluster as it is. demand is the number of tasks to come
// by workload number, of which expected are not pending yet; states are those
// of all nodes; nodes and running count the nodes and all tasks on them, value
// is the sum of what these are worth.
func (e *Services) Begin(demand []float64, expected float64, states []State, nodes, running int, value float64) {
	clear(e.paths)
	clear(e.views)
	total := 0.0
	for _, d := range demand {
		total += d
	}
	empty := e.values.Empty("")
	if len(states) > 0 {
		empty = e.values.Empty(e.values.Class(states[0].Config))
	}
	e.unit = 0
	entropy := 0.0
	e.kinds = e.kinds[:0]
	for w, d := range demand {
		e.share[w] = 0
		if total > 0 {
			e.share[w] = d / total
		}
		if d > 0 {
			e.kinds = append(e.kinds, int32(w))
			entropy -= e.share[w] * math.Log(e.share[w])
		}
		if g := e.sum(empty, w); !math.IsInf(g, 0) {
			e.unit += math.Abs(g) / float64(len(demand))
		}
	}
	if !(e.unit > 0) {
		// The worst performance alone counts, or nothing is known.
		if e.unit = math.Abs(e.values.Objective().Worst) / 4; e.unit == 0 {
			e.unit = 1
		}
	}
	room, slots := 0.0, 0.0
	count := 0.0
	for i := range e.best {
		e.alone[i] = e.gain(empty, i)
		e.best[i], e.mean[i], e.deviation[i] = math.Inf(-1), 0, 0
	}
	e.ask(states)
	e.valueTasks(states)
	for _, o := range states {
		if o.Room == 0 {
			continue
		}
		n := float64(o.Nodes)
		room += n * float64(o.Room)
		count += n
		if o.Fill < 1 {
			slots += n * float64(o.Room) / (1 - o.Fill)
		}
		for _, w := range e.kinds {
			g := e.gain(o.Config, int(w))
			e.best[w] = max(e.best[w], g)
			e.mean[w] += n * g
			e.deviation[w] += n * g * g
		}
	}
	allBest, allMean := 0.0, 0.0
	for w := range e.best {
		if math.IsInf(e.best[w], -1) {
			e.best[w], e.mean[w] = e.alone[w], e.alone[w] // nowhere to be asked about
		} else {
			e.mean[w] /= count
			e.deviation[w] = math.Sqrt(max(0, e.deviation[w]/count-e.mean[w]*e.mean[w]))
		}
		allBest += e.share[w] * e.best[w]
		allMean += e.share[w] * e.mean[w]
	}
	allWorth, allMargin := 0.0, 0.0
	for w, p := range e.share {
		if math.IsInf(e.worth[w], -1) {
			e.worth[w] = e.best[w] // none sits anywhere
		}
		e.margin[w] = e.marginal(states, w, demand[w])
		allWorth += p * e.worth[w]
		allMargin += p * e.margin[w]
	}
	e.coming = total / float64(max(1, nodes))
	e.claim(states, demand)
	c := e.context[:]
	clear(c)
	c[ServiceAllMargin] = float32(allMargin)
	c[ServiceDemand] = float32(math.Log1p(e.coming))
	if slots > 0 {
		c[ServiceRoom] = float32(min(1, room/slots))
	}
	if room > 0 {
		c[ServicePressure] = float32(min(2, total/room))
	}
	c[ServiceAllBest], c[ServiceAllMean], c[ServiceAllWorth] = float32(allBest), float32(allMean), float32(allWorth)
	if len(e.kinds) > 1 {
		c[ServiceMixed] = float32(entropy / math.Log(float64(len(e.kinds))))
	}
	if running > 0 {
		c[ServiceValue] = float32(value / float64(running) / e.unit)
	}
	if total > 0 {
		c[ServiceChurn] = float32(expected / total)
	}
}

// ask asks the model at once about all that is looked at in any case: one task
// more of what is to come, and one less of what is there.
func (e *Services) ask(states []State) {
	e.fill = e.fill[:0]
	for _, o := range states {
		if o.Room > 0 {
			for _, w := range e.kinds {
				e.fill = append(e.fill, e.values.Next(o.Config, int(w)))
			}
		}
		for w, n := range e.values.Counts(o.Config) {
			if n > 0 {
				e.fill = append(e.fill, e.values.Prev(o.Config, w))
			}
		}
	}
	e.values.Fill(e.fill)
}

// valueTasks finds what a task of each workload is worth where such tasks sit:
// what the objective would lose without it.
func (e *Services) valueTasks(states []State) {
	for w := range e.worth {
		sum, n := 0.0, 0.0
		for _, s := range states {
			if k := float64(s.Nodes) * float64(e.values.Counts(s.Config)[w]); k > 0 {
				sum += k * e.gain(e.values.Prev(s.Config, w), w)
				n += k
			}
		}
		e.worth[w] = math.Inf(-1)
		if n > 0 {
			e.worth[w] = sum / n
		}
	}
}

// sum is what the objective gains by one more task, but for the worst
// performance; -Inf where the model is silent about what results.
func (e *Services) sum(c place.Config, w int) float64 {
	after, before := e.values.Value(e.values.Next(c, w)).Sum, e.values.Value(c).Sum
	switch {
	case math.IsInf(after, -1):
		return after
	case math.IsInf(before, -1):
		return 0
	}
	return after - before
}

// rise is what the objective gains by one more task.
func (e *Services) rise(c place.Config, w int) float64 {
	gain := e.sum(c, w)
	weight := e.values.Objective().Worst
	if weight == 0 || math.IsInf(gain, -1) {
		return gain
	}
	after, others := e.values.Value(e.values.Next(c, w)).Worst, e.lowest
	if e.values.Value(c).Worst == e.lowest {
		others = e.second
	}
	gain += weight * min(others, after)
	if !math.IsInf(e.lowest, 0) {
		gain -= weight * e.lowest
	}
	// Where nodes tie, as those do that are not the worst, the highest worst
	// performance of its own wins, as with greedy.
	return gain + weight*1e-3*after
}

// Guard tells of the worst performance of all nodes and of that of all but one
// that has it, +Inf where nothing runs. It must be called where the objective
// has a weight on the worst performance, before Begin.
func (e *Services) Guard(lowest, second float64) { e.lowest, e.second = lowest, second }

// Unit is what a task alone adds to the objective, in the mean over workloads.
func (e *Services) Unit() float64 { return e.unit }

// most bounds the gains, in units, that count in full. Beyond it they are told
// apart by their logarithm up to 2 most, where silence is, below all else: a
// fall of the worst performance counts for many tasks.
const most = 4

func (e *Services) gain(c place.Config, w int) float64 {
	g := e.rise(c, w) / e.unit
	if math.Abs(g) > most {
		g = math.Copysign(min(2*most, most+math.Log(math.Abs(g)/most)/2), g)
	}
	return g
}

// Steep says whether an objective falls by more than a performance can: one of
// these workloads, beside one task of another, costs more on a node of a class
// than what counts in full, as where latencies go up manifold. The worst
// performance is steep, too: a task that lowers it costs as much as many gain.
func Steep(v *place.Values, class string, workloads []int) bool {
	switch o := v.Objective(); {
	case o.Worst != 0:
		return true
	case o.P99 == 0 && o.Nodes == 0:
		return false // nothing falls by more than it is worth, and no model is asked
	}
	gain := func(c place.Config, w int) float64 { return v.Value(v.Next(c, w)).Sum - v.Value(c).Sum }
	empty := v.Empty(class)
	unit := 0.0
	for _, w := range workloads {
		if g := gain(empty, w); !math.IsInf(g, 0) {
			unit += math.Abs(g) / float64(len(workloads))
		}
	}
	for _, w := range workloads {
		for _, beside := range workloads {
			if g := gain(v.Next(empty, beside), w); !math.IsInf(g, 0) && g < -most*unit {
				return true
			}
		}
	}
	return false
}

// ToCome is the number of workloads of which tasks are to come.
func (e *Services) ToCome() int { return len(e.kinds) }

// Gain is what the objective gains by a task of workload w on a node, in units
// of what a task alone adds.
func (e *Services) Gain(c place.Config, w int) float64 {
	if e.share[w] > 0 {
		return e.see(c).gains[w]
	}
	return e.gain(c, w)
}

// Advantage is by how much that exceeds what a node gives on average, less
// the most by which any other workload to come does.
func (e *Services) Advantage(c place.Config, w int) float64 {
	others := -most * 2.0
	gains := e.see(c).gains
	for _, u := range e.kinds {
		if int(u) != w {
			others = max(others, gains[u]-e.mean[u])
		}
	}
	return e.Gain(c, w) - e.mean[w] - others
}

// Context is the features of a decision about a task of workload w. It is
// shared, until the next call.
func (e *Services) Context(w int) []float32 {
	c := e.context[:]
	c[ServiceShare] = float32(e.share[w])
	c[ServiceAlone] = float32(e.alone[w])
	c[ServiceBestNow] = float32(e.best[w])
	c[ServiceMeanNow] = float32(e.mean[w])
	c[ServiceWorthNow] = float32(e.worth[w])
	c[ServiceMarginNow] = float32(e.margin[w])
	c[ServiceClaimed] = float32(e.scarce[w])
	c[ServiceSpread] = float32(e.deviation[w])
	return c
}

// Encode writes the features of nodes in a state as the place of a task of
// workload w into row.
func (e *Services) Encode(row []float32, o State, w int) {
	to := e.values.Next(o.Config, w)
	gain := e.gain(o.Config, w)
	counts := e.values.Counts(o.Config)
	tasks := 0
	for _, n := range counts {
		tasks += int(n)
	}
	set := func(i int, v float64) { row[i] = float32(max(-2*most, min(2*most, v))) }
	set(ServiceLead, gain-e.best[w])
	set(ServiceGain, gain)
	set(ServiceLoss, gain-e.alone[w])
	set(ServiceFill, o.Fill)
	set(ServiceEmpty, 0)
	if tasks == 0 {
		row[ServiceEmpty] = 1
	}
	here := e.see(o.Config)
	before, best, mean, rival, reserve := 0.0, -most*1.0, 0.0, -most*1.0, 0.0
	for _, u := range e.kinds {
		g, p := here.gains[u], e.share[u]
		before += p * g
		best = max(best, g-e.best[u])
		mean += p * max(0, g-e.mean[u])
		reserve += p * max(0, g-e.margin[u])
		if int(u) != w {
			rival = max(rival, g-e.mean[u])
		}
	}
	after, opened, added, reserved := 0.0, -most*1.0, 0.0, 0.0
	if o.Room > 1 {
		seen, change := 0.0, 0.0
		e.around(to, here.near)
		for _, u := range here.near {
			g, p := e.gain(to, int(u)), e.share[u]
			after += p * g
			opened = max(opened, g-e.best[u])
			added += p * max(0, g-e.best[u])
			reserved += p * max(0, g-e.margin[u])
			seen += p
			change += p * (g - here.gains[u])
		}
		if len(here.near) < len(e.kinds) {
			after = before + change/seen
		}
	}
	set(ServiceBefore, before)
	set(ServiceAfter, after)
	set(ServiceBest, best)
	set(ServiceOpened, opened)
	set(ServiceMean, mean)
	set(ServiceAdded, added)
	set(ServiceRival, rival-(gain-e.mean[w]))
	set(ServiceAlike, math.Log1p(float64(o.Nodes))/4)
	set(ServicePace, 0)
	if tasks > 0 {
		set(ServicePace, e.values.Value(o.Config).Sum/e.unit/float64(tasks))
	}
	from, then := e.path(o.Config, o.Config, o.Room), e.path(to, o.Config, o.Room-1)
	set(ServicePath, then.best-from.best+gain-e.best[w])
	set(ServicePathMean, then.mean-from.mean+gain-e.mean[w])
	set(ServiceOver, gain-e.worth[w])
	set(ServicePathWorth, then.worth-from.worth+gain-e.worth[w])
	set(ServiceNextWorth, then.worth)
	set(ServicePathFree, then.free-from.free+gain)
	set(ServiceNext, then.best)
	set(ServiceNextMean, then.mean)
	set(ServiceOverMargin, gain-e.margin[w])
	set(ServiceReserve, reserve)
	set(ServiceReserved, reserved)
	set(ServicePathMargin, then.margin-from.margin+gain-e.margin[w])
	set(ServiceNextMargin, then.margin)
	set(ServiceScarce, then.scarce)
	set(ServiceScarceBefore, from.scarce)
	set(ServiceLeft, float64(o.Room-1)/(1+e.coming)/2)
}
