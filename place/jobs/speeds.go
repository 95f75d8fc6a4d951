package jobs

import (
	"maps"
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
)

// Alone says how fast jobs run with nothing beside them; history.AloneRates
// does. Progress is the rate of a job of that many workers on the class and at
// the span, over the best that it reaches on one of classes; ok is false where
// it has no rate on the class.
type Alone interface {
	Progress(class, workload string, workers int, span cluster.Span, classes []string) (p float64, ok bool)
}

// Misfits says which co-locations (by Colocation.Key) do not fit together;
// history.Misfits does. A co-location that holds a misfit is one too.
type Misfits interface {
	Has(class, key string) bool
}

// Options of NewSpeeds.
type Options struct {
	// Scope is what the tasks of a co-location share: a device or a node (the
	// default). At the scope of a device, tasks that need none meet no
	// interference.
	Scope history.Scope
	// Alone may be nil: every class is then as fast as any other, at any span.
	Alone Alone
	// Misfits may be nil: everything fits together.
	Misfits Misfits
	// Pessimism k values a performance that was predicted, not measured, at
	// value - k * its standard deviation, at least 0.
	Pessimism float64
}

// Speeds is what a policy believes about speed. It numbers workloads, classes
// and co-locations and remembers the model's answers, so that asking again
// costs nanoseconds. It is not safe for concurrent use: Fork one for each
// goroutine.
//
// Where the model is silent about a task among n, it believes 1/n: a fair
// share of the machine. Without a model (nil) it believes that nothing
// interferes: performance is 1 everywhere.
type Speeds struct {
	model   interference.Model
	options Options

	workloads []string
	number    map[string]int32
	classes   []string
	class     map[string]int32

	configs []config
	index   map[string]Config
	empty   []Config // by class number
	limit   int
	// epoch counts how often the co-locations were forgotten.
	epoch int
	// potential is by co-location, negative where it was not asked for yet.
	potential      []float64
	potentialEpoch int
	observed       map[string]mean
	observer       *Board
	pending        []Config // scratch of ask
	key            []byte
}

// enough is how many co-locations are remembered before all are forgotten: it
// bounds memory (some 200 bytes each) where co-locations are many.
const enough = 1 << 19

// NewSpeeds makes beliefs of a model; nil believes in no interference. What
// the model knows of single tasks and pairs is asked at once, in one call a
// class.
func NewSpeeds(m interference.Model, o Options) *Speeds {
	if o.Scope == "" {
		o.Scope = history.ScopeNode
	}
	s := &Speeds{
		model: m, options: o, number: map[string]int32{}, class: map[string]int32{},
		index: map[string]Config{}, observed: map[string]mean{}, limit: enough,
	}
	if m == nil {
		return s
	}
	for _, class := range m.Classes() {
		for _, w := range m.Workloads(class) {
			s.Number(w)
		}
	}
	s.askPairs()
	return s
}

func (s *Speeds) askPairs() {
	for _, class := range s.model.Classes() {
		var ask []Config
		known := s.model.Workloads(class)
		for i, a := range known {
			one := s.Next(s.Empty(class), s.Number(a))
			for _, b := range known[:i+1] {
				ask = append(ask, s.Next(one, s.Number(b)))
			}
		}
		s.ask(ask)
	}
}

// Fork is an independent copy that believes the same, observations included.
func (s *Speeds) Fork() *Speeds {
	f := &Speeds{
		model: s.model, options: s.options, limit: s.limit,
		workloads: slices.Clone(s.workloads), number: maps.Clone(s.number),
		classes: slices.Clone(s.classes), class: maps.Clone(s.class),
		index: maps.Clone(s.index), empty: slices.Clone(s.empty), observed: maps.Clone(s.observed),
	}
	f.configs = slices.Clone(s.configs)
	for i := range f.configs {
		c := &f.configs[i]
		c.performance, c.std = slices.Clone(c.performance), slices.Clone(c.std)
		c.next, c.prev = slices.Clone(c.next), slices.Clone(c.prev)
	}
	return f
}

// Model is the model that the beliefs come from; nil where there is none.
func (s *Speeds) Model() interference.Model { return s.model }

// Scope is what the tasks of a co-location share.
func (s *Speeds) Scope() history.Scope { return s.options.Scope }

// Workloads lists the workloads met so far, by number. Don't change it.
func (s *Speeds) Workloads() []string { return s.workloads }

// Classes lists the classes met so far, by number. Don't change it.
func (s *Speeds) Classes() []string { return s.classes }

// Number is the number of a workload, new where it was not met before.
func (s *Speeds) Number(workload string) int32 {
	n, ok := s.number[workload]
	if !ok {
		n = int32(len(s.workloads))
		s.workloads = append(s.workloads, workload)
		s.number[workload] = n
	}
	return n
}

// Empty is the co-location without tasks on a class. The class "" is the only
// class of a model that has one.
func (s *Speeds) Empty(class string) Config {
	n, ok := s.class[class]
	if !ok {
		n = int32(len(s.classes))
		s.classes = append(s.classes, class)
		s.class[class] = n
		s.empty = append(s.empty, s.add(n, nil))
	}
	return s.empty[n]
}

// modelClass is the model's name for the class with a number.
func (s *Speeds) modelClass(class int32) string {
	return place.ModelClass(s.model, s.classes[class])
}
