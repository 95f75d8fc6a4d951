package serve

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/cotenant/cotenant/balance"
	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

// recorder turns reports into samples: for each job on each node (or device),
// the mean speed of its workers there while the same tasks shared the place,
// as far as this coordinator knows them. Workers that do not say where they
// run give no samples. A nil recorder records nothing.
type recorder struct {
	store Sink

	mu     sync.Mutex
	places map[place]*tenants
	jobs   map[string]placed
	ready  []history.Sample
}

// place is a node, or a device of one.
type place struct{ node, device string }

// tenants are the tasks of one place, and what was measured there since they
// last changed.
type tenants struct {
	class  string
	tasks  cluster.Colocation
	since  time.Time
	meters map[string]*meter // by job
}

// placed is a job as the recorder knows it.
type placed struct {
	workload string
	at       []place // by worker; the zero place where it said none
}

// meter sums up speeds, in samples a second of one worker's computing.
type meter struct {
	n                  int
	sum, squares, size float64
}

func newRecorder(s Sink) *recorder {
	return &recorder{store: s, places: map[place]*tenants{}, jobs: map[string]placed{}}
}

// place puts a job's workers where they say they are, and nowhere else.
func (r *recorder) place(j *job, now time.Time) {
	if r == nil {
		return
	}
	p := placed{workload: j.workload}
	for _, s := range j.sites {
		at := place{}
		if s.Node != "" {
			at = place{s.Node, s.Device}
		}
		p.at = append(p.at, at)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.jobs[j.name]; old.workload == p.workload && slices.Equal(old.at, p.at) {
		return
	}
	r.remove(j.name, now)
	r.jobs[j.name] = p
	for i, at := range p.at {
		if at == (place{}) {
			continue
		}
		t := r.places[at]
		if t == nil {
			t = &tenants{tasks: cluster.Colocation{}, meters: map[string]*meter{}}
			r.places[at] = t
		}
		r.flush(at, t, now)
		t.tasks[p.workload]++
		t.class = j.sites[i].Class
	}
}

// leave takes a job's workers away.
func (r *recorder) leave(j *job, now time.Time) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remove(j.name, now)
}

func (r *recorder) remove(name string, now time.Time) {
	p := r.jobs[name]
	for _, at := range p.at {
		if t := r.places[at]; t != nil {
			r.flush(at, t, now)
		}
	}
	for _, at := range p.at {
		t := r.places[at]
		if t == nil {
			continue
		}
		if t.tasks[p.workload]--; t.tasks[p.workload] == 0 {
			delete(t.tasks, p.workload)
		}
		if len(t.tasks) == 0 {
			delete(r.places, at)
		}
	}
	delete(r.jobs, name)
}

// observe adds measurements of one job.
func (r *recorder) observe(j *job, all []taken) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.jobs[j.name]
	for _, m := range all {
		if m.report.OutOfMemory || m.report.BatchSize == 0 || m.report.Compute <= 0 || m.at >= len(p.at) {
			continue
		}
		t := r.places[p.at[m.at]]
		if t == nil {
			continue
		}
		one := t.meters[j.name]
		if one == nil {
			one = &meter{}
			t.meters[j.name] = one
		}
		one.add(m.report)
	}
}

func (m *meter) add(r balance.Report) {
	v := float64(r.BatchSize) / r.Compute.Seconds()
	m.n++
	m.sum += v
	m.squares += v * v
	m.size += float64(r.BatchSize)
}

// flush ends a window of a place.
func (r *recorder) flush(at place, t *tenants, now time.Time) {
	names := make([]string, 0, len(t.meters))
	for name := range t.meters {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		m := t.meters[name]
		mean := m.sum / float64(m.n)
		s := history.Sample{
			Source: "balance", Start: t.since, End: now, Class: t.class, Scope: history.ScopeNode, Colocation: maps.Clone(t.tasks),
			Workload: r.jobs[name].workload, Role: cluster.Worker, Job: name, BatchSize: int(math.Round(m.size / float64(m.n))),
			Metric: history.Rate, Value: mean, Repeats: m.n, Spread: math.Sqrt(max(0, m.squares/float64(m.n)-mean*mean)),
		}
		if at.device != "" {
			s.Scope = history.ScopeDevice
		}
		r.ready = append(r.ready, s)
	}
	clear(t.meters)
	t.since = now
}

// save appends what was measured to the store; all ends the windows first.
// What cannot be stored is lost, so that a full disk does not fill the memory.
func (r *recorder) save(all bool, now time.Time) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	if all {
		places := make([]place, 0, len(r.places))
		for at := range r.places {
			places = append(places, at)
		}
		slices.SortFunc(places, func(a, b place) int { return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.device, b.device)) })
		for _, at := range places {
			r.flush(at, r.places[at], now)
		}
	}
	ready := r.ready
	r.ready = nil
	r.mu.Unlock()
	if len(ready) == 0 {
		return nil
	}
	if err := r.store.Append(ready...); err != nil {
		return fmt.Errorf("%d samples are lost: %w", len(ready), err)
	}
	return nil
}
