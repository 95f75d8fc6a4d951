package serve

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/cotenant/cotenant/balance"
	balancev1 "github.com/cotenant/cotenant/serve/proto/cotenant/balance/v1"
)

// job is one training job. All but name is guarded by mu.
type job struct {
	name string
	mu   sync.Mutex
	// gone: dropped from the coordinator, by whoever held the lock.
	gone bool

	workload string
	workers  []balance.Worker
	sites    []site
	options  balance.Options
	index    map[string]int // of a worker's name
	balancer *balance.Balancer
	// shares are in force from shares.Iteration on. They were answered, or will
	// be, and stay what they are for this generation and iteration.
	shares balance.Shares
	// reported is the last iteration that was reported; -1 in a generation of
	// which nothing was.
	reported int64
	seconds  []float64 // computing, last measured, by worker
	opened   time.Time
	heard    time.Time
}

// open makes the job what was asked for. It says whether the shares in force
// are others than before. On an error everything is as before.
func (j *job) open(o opening, now time.Time) (changed bool, err error) {
	same := j.balancer != nil && reflect.DeepEqual(j.workers, o.workers) && reflect.DeepEqual(j.options, o.options)
	// A job that goes on from a checkpoint runs iterations again.
	anew := o.agreed == nil && o.iteration < j.shares.Iteration || o.iteration <= j.reported
	before := j.shares
	switch {
	case same && !anew:
		if o.ahead(j.shares) {
			if err := j.adopt(o); err != nil {
				return false, err
			}
		}
	case j.balancer != nil && reflect.DeepEqual(j.options, o.options):
		if err := j.balancer.Change(o.workers); err != nil {
			return false, err
		}
		if o.agreed != nil && o.agreed.Generation >= j.balancer.Generation() {
			// The workers' old generation is one that this coordinator has lost.
			if err := j.balancer.Adopt(balance.Shares{Generation: o.agreed.Generation, Iteration: o.agreed.Iteration}); err != nil {
				return false, err
			}
		}
		j.begin(o)
	default:
		b, err := j.fresh(o)
		if err != nil {
			return false, err
		}
		j.balancer = b
		j.begin(o)
	}
	j.workload, j.sites, j.heard = o.workload, o.sites, now
	if j.opened.IsZero() {
		j.opened = now
	}
	return !reflect.DeepEqual(before, j.shares), nil
}

// ahead says whether the workers hold shares that are newer than these.
func (o opening) ahead(s balance.Shares) bool {
	a := o.agreed
	return a != nil && (a.Generation > s.Generation || a.Generation == s.Generation && a.Iteration > s.Iteration)
}

// adopt goes on with the shares that the workers hold.
func (j *job) adopt(o opening) error {
	generation := j.balancer.Generation()
	if err := j.balancer.Adopt(*o.agreed); err != nil {
		return err
	}
	if j.balancer.Generation() != generation {
		j.reported = -1
	}
	j.shares = j.balancer.Next(max(o.iteration, o.agreed.Iteration))
	if slices.Equal(j.shares.BatchSizes, o.agreed.BatchSizes) {
		j.shares.Iteration = o.agreed.Iteration
	}
	return nil
}

// fresh is a balancer that knows nothing of the workers' speeds.
func (j *job) fresh(o opening) (*balance.Balancer, error) {
	options := o.options
	switch {
	case j.balancer == nil:
		options.Last = o.agreed
	default:
		last := &balance.Shares{Generation: j.shares.Generation, Iteration: j.shares.Iteration} // without sizes: the next generation
		if o.ahead(*last) {
			last.Generation = o.agreed.Generation
		}
		options.Last = last
	}
	return balance.New(o.workers, options)
}

// begin hands out the first shares of a balancer or of its new generation.
func (j *job) begin(o opening) {
	j.workers, j.options = o.workers, o.options
	j.index = make(map[string]int, len(o.workers))
	for i, w := range o.workers {
		j.index[w.Name] = i
	}
	j.seconds = make([]float64, len(o.workers))
	j.reported = -1
	from := o.iteration
	if o.agreed != nil {
		from = max(from, o.agreed.Iteration)
	}
	j.shares = j.balancer.Next(from)
	if o.agreed != nil && j.shares.Generation == o.agreed.Generation {
		j.shares.Iteration = o.agreed.Iteration // they hold them since then
	}
}

// accepts refuses reports of another membership, of shares that this
// coordinator has lost, and of iterations that nobody counts to.
func (j *job) accepts(r *balancev1.ReportRequest, now time.Time) error {
	current := j.shares.Generation
	if j.balancer == nil {
		return unknownJob(j.name) // being opened this moment
	}
	if r.GetGeneration() != current {
		return stale(current, "job %q: the report is of generation %d, the current one is %d; open the job again", short(j.name), r.GetGeneration(), current)
	}
	if r.GetHeldIteration() > j.shares.Iteration {
		return stale(current, "job %q: its workers hold shares from iteration %d, this coordinator knows those from %d; open the job again with what they hold",
			short(j.name), r.GetHeldIteration(), j.shares.Iteration)
	}
	if err := checkIteration("iteration", r.GetIteration()); err != nil {
		return invalid(err)
	}
	// Where a job counts elsewhere than here, only opening it anew helps: a number
	// that is wild would make all that follow look repeated.
	if ago := j.reported - r.GetIteration(); ago > maxAgo {
		return stale(current, "job %q: the report is of iteration %d, others were of %d; open the job again", short(j.name), r.GetIteration(), j.reported)
	}
	last := max(j.reported, j.shares.Iteration)
	if most := last + maxAhead + int64(maxRate*max(now.Sub(j.heard).Seconds(), 0)); r.GetIteration() > most {
		return stale(current, "job %q: the report is of iteration %d, the last known is %d; open the job again", short(j.name), r.GetIteration(), last)
	}
	if n, most := len(r.GetReports()), maxIterations*(len(j.workers)+1); n > most {
		return invalid(fmt.Errorf("reports: %d, from %d workers", n, len(j.workers)))
	}
	return nil
}

// Which iterations a report may be of: as long ago as this, and as far ahead,
// with as many more as no job runs in the seconds since it was heard.
const (
	maxAgo   = 1000
	maxAhead = 10_000
	maxRate  = 10_000
)

// maxIterations is of how many iterations one call may tell.
const maxIterations = 8

// taken is a report that the balancer took in.
type taken struct {
	at     int // index of the worker
	report balance.Report
}

// observe hands the reports to the balancer, an earlier iteration's first, so
// that each is held against what was predicted before it.
func (j *job) observe(r *balancev1.ReportRequest, now time.Time) (all []taken, refused []*balancev1.Refusal) {
	j.heard = now
	var read [maxIterations][]balance.Report
	read[0] = make([]balance.Report, 0, len(r.GetReports())) // of one iteration, mostly
	for _, w := range r.GetReports() {
		report, err := readReport(r, w)
		if err != nil {
			refused = append(refused, &balancev1.Refusal{Worker: w.GetWorker(), Reason: err.Error()})
			continue
		}
		read[w.GetIterationsAgo()] = append(read[w.GetIterationsAgo()], report)
	}
	all = make([]taken, 0, len(r.GetReports()))
	for _, reports := range slices.Backward(read[:]) {
		if len(reports) == 0 {
			continue
		}
		for i, err := range j.balancer.ObserveEach(reports) {
			report := reports[i]
			if err != nil {
				refused = append(refused, &balancev1.Refusal{Worker: report.Worker, Reason: err.Error()})
				continue
			}
			at := j.index[report.Worker]
			if !report.OutOfMemory {
				j.seconds[at] = report.Compute.Seconds()
			}
			all = append(all, taken{at, report})
		}
	}
	return all, refused
}

// learn trains the predictors when the shares are out, so that training delays
// nobody but the job's own next report, which needs it.
func (j *job) learn() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.gone {
		j.balancer.Learn()
	}
}

func readReport(r *balancev1.ReportRequest, w *balancev1.WorkerReport) (balance.Report, error) {
	report := balance.Report{
		Worker: w.GetWorker(), Generation: r.GetGeneration(), Iteration: r.GetIteration() - int64(w.GetIterationsAgo()), BatchSize: int(w.GetBatchSize()),
		CPU: w.GetCpu(), Memory: w.GetMemory(), OutOfMemory: w.GetOutOfMemory(),
	}
	if ago := w.GetIterationsAgo(); ago < 0 || ago >= maxIterations {
		return report, fmt.Errorf("iterations_ago: %d; one call tells of %d iterations at most", ago, maxIterations)
	}
	var err error
	if report.Compute, err = seconds("compute_seconds", w.GetComputeSeconds()); err != nil && !report.OutOfMemory {
		return report, err
	}
	if report.Communicate, err = seconds("communicate_seconds", w.GetCommunicateSeconds()); err != nil {
		return report, err
	}
	return report, nil
}

// seconds refuses what is no duration; whether it is one of an iteration is
// for balance to say.
func seconds(field string, v float64) (time.Duration, error) {
	const most = 365 * 24 * 3600
	if math.IsNaN(v) || v < 0 || v > most {
		return 0, fmt.Errorf("%s: %g is no time that an iteration takes", field, v)
	}
	return time.Duration(v * float64(time.Second)), nil
}

// decide renews the shares after a report of an iteration. The job runs the
// next one by now, so the one after it is the first that can have others. Late
// and repeated reports renew nothing: their iteration's shares are handed out.
func (j *job) decide(iteration int64) (changed bool) {
	if iteration <= j.reported {
		return false
	}
	j.reported = iteration
	next := j.balancer.Next(iteration + 2)
	if next.Iteration < j.shares.Iteration || slices.Equal(next.BatchSizes, j.shares.BatchSizes) {
		return false
	}
	j.shares = next
	return true
}

// wire is what Jobs tells; ok is false of a job that is gone or not yet open.
func (j *job) wire() (w *balancev1.Job, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.gone || j.balancer == nil {
		return nil, false
	}
	options := j.balancer.Options()
	w = &balancev1.Job{
		Job: j.name, Workload: j.workload, GlobalBatch: int32(options.GlobalBatch), Allocator: options.Allocator, Predictor: options.Predictor,
		Shares: wireShares(j.shares), ReportedIteration: j.reported, Opened: timestamppb.New(j.opened), LastHeard: timestamppb.New(j.heard),
		ComputeSeconds: slices.Clone(j.seconds),
	}
	for i, b := range j.workers {
		v := &balancev1.Worker{
			Name: b.Name, Min: int32(b.Min), Max: int32(b.Max), Data: int64(b.Data),
			Node: j.sites[i].Node, Device: j.sites[i].Device, Class: j.sites[i].Class,
		}
		for _, size := range b.Buckets {
			v.Buckets = append(v.Buckets, int32(size))
		}
		w.Workers = append(w.Workers, v)
	}
	return w, true
}
