package services

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/cotenant/cotenant/cluster"
)

// Stream draws services that arrive, scale and leave so that, on average, the
// tasks they want are the given share of the capacity. It begins in a steady
// state: at time 0 arrive, one after the other, services that are about as old
// as services are. The same Stream and seed give the same arrivals.
//
// Poisson arrivals; a service's lifetime counts from its arrival, whether it is
// placed or waits, so that demand does not depend on the policy.
type Stream struct {
	// Capacity is how many tasks the cluster can run: all slots.
	Capacity int
	// Load is the share of the capacity that is wanted on average.
	Load float64
	// Most is the share of the capacity that is wanted at most: services that
	// would exceed it do not come, replicas that would do not either, and the
	// arrival rate makes up for it. 0 means 1; +Inf lets all come, so that what is
	// wanted exceeds the capacity at times.
	Most float64
	// Horizon is up to when to draw.
	Horizon time.Duration
	// Lifetime is the mean lifetime of a service. Lifetimes are exponential, or,
	// with Range above 1, log-uniform between bounds of that ratio.
	Lifetime time.Duration
	Range    float64
	// Sizes is how often services have how many replicas; empty means 1 to 16, the
	// share of n being 1/n.
	Sizes []Size
	// Scaling is how often a service draws a new size in a mean lifetime, at
	// Poisson times: replicas added are a new group, replicas removed are drawn.
	Scaling float64
	// Workloads to draw from, and how often each: a Mix.
	Workloads []string
	Mix       Mix
	// Drift, where not 0, is the time after which another mix has come about, drawn
	// like the first: weights change linearly from each to the next.
	Drift time.Duration
}

// Size is a number of replicas and how often services have it, relative to
// others.
type Size struct {
	Replicas int
	Share    float64
}

// Mix says how often workloads occur.
type Mix string

// The mixes.
const (
	Uniform Mix = "uniform" // all alike; "" is this
	Random  Mix = "random"  // any mix is as likely as any other (Dirichlet, 1)
	Zipf    Mix = "zipf"    // the nth most frequent 1/n as often as the first, in an order that is drawn
)

// Mixes lists them.
func Mixes() []string { return []string{string(Uniform), string(Random), string(Zipf)} }

// withDefaults fills in what is left out and checks the rest.
func (s Stream) withDefaults() (Stream, error) {
	if s.Most == 0 {
		s.Most = 1
	}
	if s.Mix == "" {
		s.Mix = Uniform
	}
	if len(s.Sizes) == 0 {
		for n := 1; n <= 16; n++ {
			s.Sizes = append(s.Sizes, Size{n, 1 / float64(n)})
		}
	}
	switch {
	case s.Capacity < 1:
		return s, fmt.Errorf("stream: capacity of %d tasks; it must be at least 1", s.Capacity)
	case !(s.Most > 0):
		return s, fmt.Errorf("stream: at most %g of the capacity; it must be more than 0", s.Most)
	case !(s.Load > 0) || !(s.Load < s.Most) || s.Load > 100:
		return s, fmt.Errorf("stream: load %g; it must be more than 0, less than the most that is wanted, %g, and at most 100", s.Load, s.Most)
	case s.Horizon <= 0 || s.Horizon > longest:
		return s, fmt.Errorf("stream: horizon %s; it must be more than 0 and at most %s", s.Horizon, longest)
	case s.Lifetime <= 0 || s.Lifetime > longest:
		return s, fmt.Errorf("stream: mean lifetime %s; it must be more than 0 and at most %s", s.Lifetime, longest)
	case s.Range != 0 && !(s.Range >= 1 && s.Range <= 1e9):
		return s, fmt.Errorf("stream: lifetimes over a range of %g; it must be 0 or from 1 to 1e9", s.Range)
	case !(s.Scaling >= 0) || s.Scaling > 1e6:
		return s, fmt.Errorf("stream: scales %g times in a lifetime; it must be from 0 to 1e6", s.Scaling)
	case len(s.Workloads) == 0:
		return s, fmt.Errorf("stream: no workloads to draw from")
	case !slices.Contains(Mixes(), string(s.Mix)):
		return s, fmt.Errorf("stream: mix %q; it is one of %v", s.Mix, Mixes())
	case s.Drift < 0 || s.Drift > longest:
		return s, fmt.Errorf("stream: drift in %s; it must be from 0 to %s", s.Drift, longest)
	}
	total := 0.0
	for _, z := range s.Sizes {
		if z.Replicas < 1 || !(z.Share >= 0) || math.IsInf(z.Share, 1) {
			return s, fmt.Errorf("stream: size of %d replicas with share %g; at least 1 replica, and a finite share of at least 0", z.Replicas, z.Share)
		}
		total += z.Share
	}
	if !(total > 0) || math.IsInf(total, 1) {
		return s, fmt.Errorf("stream: the shares of all sizes add up to %g", total)
	}
	sizes := make([]Size, len(s.Sizes))
	for i, z := range s.Sizes {
		sizes[i] = Size{z.Replicas, z.Share / total}
	}
	s.Sizes = sizes
	return s, nil
}

// Draw draws the arrivals up to the horizon, in order: groups of tasks named
// s0, s1, ... after their service, and s0+1, s0+2, ... where it grew.
func (s Stream) Draw(seed uint64) ([]Arrival, error) {
	s, err := s.withDefaults()
	if err != nil {
		return nil, err
	}
	services, err := s.offered()
	if err != nil {
		return nil, err
	}
	if err := s.limit(services); err != nil {
		return nil, err
	}
	d := newDrawing(s, seed)
	d.begin()
	gap := float64(s.Lifetime) / services
	for at := d.arrivals.ExpFloat64() * gap; at < float64(s.Horizon); at += d.arrivals.ExpFloat64() * gap {
		d.until(time.Duration(at))
		d.come(d.kind(at), d.size(), d.lifetime())
	}
	d.until(s.Horizon)
	return d.out, nil
}

// service is one that has come.
type service struct {
	name     string
	workload string
	live     []replica
	made     int // replicas so far
	grown    int // groups so far
	leaves   time.Duration
	scales   time.Duration
}

// replica is a task of the arrivals.
type replica struct{ group, task int }

// due orders services by when they next scale or leave.
type due struct {
	at       []time.Duration
	services []*service
}

func (d *due) Len() int           { return len(d.at) }
func (d *due) Less(i, j int) bool { return d.at[i] < d.at[j] }
func (d *due) Swap(i, j int) {
	d.at[i], d.at[j] = d.at[j], d.at[i]
	d.services[i], d.services[j] = d.services[j], d.services[i]
}

func (d *due) Push(x any) {
	s := x.(*service)
	d.at, d.services = append(d.at, s.next()), append(d.services, s)
}

func (d *due) Pop() any {
	last := len(d.at) - 1
	s := d.services[last]
	d.at, d.services = d.at[:last], d.services[:last]
	return s
}

func (s *service) next() time.Duration { return min(s.leaves, s.scales) }

// drawing is a stream being drawn. Each thing has a source of its own, so that
// one does not shift the others.
type drawing struct {
	Stream
	arrivals, kinds, lives, sizes, scaling *rand.Rand

	mixes  *mixes
	due    due
	now    time.Duration
	wanted int
	most   int
	count  int
	out    []Arrival
}

func newDrawing(s Stream, seed uint64) *drawing {
	source := func(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }
	d := &drawing{
		Stream: s, arrivals: source(1), kinds: source(2), lives: source(3), sizes: source(4), scaling: source(5),
		mixes: newMixes(s, source(6)), most: math.MaxInt,
	}
	if most := s.Most * float64(s.Capacity); most < math.MaxInt32 {
		d.most = int(most)
	}
	return d
}

// begin lets the services come that are there at time 0.
func (d *drawing) begin() {
	target := int(math.Round(d.Load * float64(d.Capacity)))
	for d.wanted < target {
		d.come(d.kind(0), min(d.size(), target-d.wanted), d.rest())
	}
}

// until lets services scale and leave up to an instant.
func (d *drawing) until(at time.Duration) {
	for d.due.Len() > 0 && d.due.at[0] <= at {
		s := d.due.services[0]
		d.now = d.due.at[0]
		if s.leaves == d.now {
			heap.Pop(&d.due)
			for _, r := range s.live {
				d.end(r)
			}
			continue
		}
		d.scale(s)
		d.due.at[0] = s.next()
		heap.Fix(&d.due, 0)
	}
	d.now = at
}

func (d *drawing) end(r replica) {
	d.out[r.group].Until[r.task] = d.now
	d.wanted--
}

// come lets a service come, if all of it may.
func (d *drawing) come(workload string, size int, life time.Duration) {
	if d.wanted+size > d.most {
		return
	}
	s := &service{name: "s" + strconv.Itoa(d.count), workload: workload, leaves: after(d.now, life), scales: Never}
	d.count++
	d.grow(s, size)
	d.nextScale(s)
	heap.Push(&d.due, s)
}

// after is an instant after now, or Never.
func after(now, wait time.Duration) time.Duration {
	if wait > longest-now {
		return Never
	}
	return now + max(1, wait)
}

func (d *drawing) nextScale(s *service) {
	if d.Scaling > 0 {
		s.scales = after(d.now, span(d.scaling.ExpFloat64()*float64(d.Lifetime)/d.Scaling))
	}
}

// scale gives the service another size.
func (d *drawing) scale(s *service) {
	size := pick(d.Sizes, d.scaling.Float64())
	if size > len(s.live) {
		if more := min(size-len(s.live), d.most-d.wanted); more > 0 {
			d.grow(s, more)
		}
	}
	for len(s.live) > size {
		i := d.scaling.IntN(len(s.live))
		d.end(s.live[i])
		s.live[i] = s.live[len(s.live)-1]
		s.live = s.live[:len(s.live)-1]
	}
	d.nextScale(s)
}

// grow lets a group of replicas arrive.
func (d *drawing) grow(s *service, replicas int) {
	name := s.name
	if s.grown > 0 {
		name += "+" + strconv.Itoa(s.grown)
	}
	s.grown++
	a := Arrival{Group: cluster.Group{Name: name, Tasks: make([]cluster.Task, replicas), Arrival: d.now}, Until: make([]time.Duration, replicas)}
	for i := range replicas {
		a.Tasks[i] = cluster.Task{ID: cluster.TaskID(s.name + "/" + strconv.Itoa(s.made)), Workload: s.workload, Role: cluster.Replica}
		a.Until[i] = Never
		s.made++
		s.live = append(s.live, replica{len(d.out), i})
	}
	d.wanted += replicas
	d.out = append(d.out, a)
}

func (d *drawing) kind(at float64) string { return d.Workloads[d.mixes.pick(at, d.kinds.Float64())] }

func (d *drawing) size() int { return pick(d.Sizes, d.sizes.Float64()) }

// pick is the size at u of the distribution, 0 <= u < 1.
func pick(sizes []Size, u float64) int {
	last := 0
	for _, z := range sizes {
		if z.Share > 0 {
			last = z.Replicas
			if u -= z.Share; u < 0 {
				break
			}
		}
	}
	return last
}

func span(x float64) time.Duration { return time.Duration(min(x, float64(longest))) }

// bounds are the shortest and the longest log-uniform lifetime.
func (s *Stream) bounds() (lo, hi float64) {
	mean := float64(s.Lifetime)
	if s.Range == 1 {
		return mean, mean
	}
	lo = mean * math.Log(s.Range) / (s.Range - 1)
	return lo, lo * s.Range
}

func (d *drawing) lifetime() time.Duration {
	if d.Range == 0 {
		return span(d.lives.ExpFloat64() * float64(d.Lifetime))
	}
	lo, hi := d.bounds()
	return span(lo * math.Pow(hi/lo, d.lives.Float64()))
}

// rest is what is left of the lifetime of a service found at a random moment:
// long ones are found more often, in proportion to their length.
func (d *drawing) rest() time.Duration {
	if d.Range == 0 {
		return d.lifetime() // an exponential one has no memory
	}
	lo, hi := d.bounds()
	return span((lo + (hi-lo)*d.lives.Float64()) * d.lives.Float64())
}
