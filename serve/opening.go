package serve

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/cotenant/cotenant/balance"
	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	balancev1 "github.com/cotenant/cotenant/serve/proto/cotenant/balance/v1"
)

// site is where a worker runs.
type site struct {
	Node   string `json:"node,omitempty"`
	Device string `json:"device,omitempty"`
	Class  string `json:"class,omitempty"`
}

// opening is an OpenRequest that was read.
type opening struct {
	job, workload string
	workers       []balance.Worker
	sites         []site
	options       balance.Options
	iteration     int64
	// agreed are the shares that the workers hold; nil where they hold none. Its
	// sizes are nil where they were other workers'.
	agreed *balance.Shares
}

const (
	maxName    = 253 // bytes of any name
	maxBuckets = 4096
	// maxIteration keeps what comes after an iteration countable, and exact in
	// languages that know only float64.
	maxIteration = 1 << 53
)

// readOpening checks what balance does not: names, places, and numbers that
// would overflow.
func readOpening(r *balancev1.OpenRequest, maxWorkers int) (opening, error) {
	o := opening{
		job: r.GetJob(), workload: r.GetWorkload(), iteration: r.GetIteration(),
		options: balance.Options{
			GlobalBatch: int(r.GetGlobalBatch()), Allocator: r.GetAllocator(), Predictor: r.GetPredictor(),
			Threshold: r.GetThreshold(), Seed: r.GetSeed(),
		},
	}
	if o.workload == "" {
		o.workload = o.job
	}
	if err := checkName("job", o.job, true); err != nil {
		return o, err
	}
	if err := checkName("workload", o.workload, true); err != nil {
		return o, err
	}
	if n := len(r.GetWorkers()); n > maxWorkers {
		return o, fmt.Errorf("workers: %d are more than the %d that this coordinator takes for one job", n, maxWorkers)
	}
	if err := checkIteration("iteration", o.iteration); err != nil {
		return o, err
	}
	for i, w := range r.GetWorkers() {
		at := fmt.Sprintf("workers[%d]", i)
		s := site{w.GetNode(), w.GetDevice(), w.GetClass()}
		for _, f := range []struct{ field, name string }{{"node", s.Node}, {"device", s.Device}, {"class", s.Class}} {
			if err := checkName(at+"."+f.field, f.name, false); err != nil {
				return o, err
			}
		}
		if err := checkName(at+".name", w.GetName(), true); err != nil {
			return o, err
		}
		if n := len(w.GetBuckets()); n > maxBuckets {
			return o, fmt.Errorf("%s.buckets: %d are more than %d", at, n, maxBuckets)
		}
		b := balance.Worker{Name: w.GetName(), Min: int(w.GetMin()), Max: int(w.GetMax()), Data: int(w.GetData())}
		for _, size := range w.GetBuckets() {
			b.Buckets = append(b.Buckets, int(size))
		}
		o.workers = append(o.workers, b)
		o.sites = append(o.sites, s)
	}
	return o, o.readAgreed(r)
}

func (o *opening) readAgreed(r *balancev1.OpenRequest) error {
	a := r.GetAgreed()
	if a.GetGeneration() == 0 {
		return nil
	}
	if a.GetGeneration() < 0 || a.GetGeneration() > maxIteration {
		return fmt.Errorf("agreed.generation: %d is not in 1..%d; leave agreed unset where the workers hold no shares", a.GetGeneration(), int64(maxIteration))
	}
	if err := checkIteration("agreed.iteration", a.GetIteration()); err != nil {
		return err
	}
	o.agreed = &balance.Shares{Generation: a.GetGeneration(), Iteration: a.GetIteration()}
	if names := r.GetAgreedWorkers(); len(names) > 0 && !sameNames(names, o.workers) {
		return nil
	}
	for _, size := range a.GetBatchSizes() {
		o.agreed.BatchSizes = append(o.agreed.BatchSizes, int(size))
	}
	return nil
}

func sameNames(names []string, workers []balance.Worker) bool {
	if len(names) != len(workers) {
		return false
	}
	for i, w := range workers {
		if names[i] != w.Name {
			return false
		}
	}
	return true
}

func checkIteration(field string, k int64) error {
	if k < 0 || k > maxIteration {
		return fmt.Errorf("%s: %d is not in 0..%d", field, k, int64(maxIteration))
	}
	return nil
}

// checkName bounds a name and refuses what would garble a log or a sample.
func checkName(field, name string, needed bool) error {
	switch {
	case name == "" && !needed:
		return nil
	case name == "":
		return fmt.Errorf("%s: empty; give it a name", field)
	case len(name) > maxName:
		return fmt.Errorf("%s: %d bytes are more than %d", field, len(name), maxName)
	}
	if strings.ContainsFunc(name, unicode.IsControl) {
		return fmt.Errorf("%s: %q has a control character", field, short(name))
	}
	if field != "workload" {
		return nil
	}
	s := history.Sample{Workload: name, Colocation: cluster.Colocation{name: 1}, Metric: history.Rate, Value: 1}
	if err := s.Validate(); err != nil {
		return fmt.Errorf("workload: %w", err)
	}
	return nil
}

// short cuts a name to what fits on a line.
func short(name string) string {
	const most = 60
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "..."
}
