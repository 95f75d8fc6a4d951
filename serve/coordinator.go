package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/cotenant/cotenant/balance"
	"github.com/cotenant/cotenant/history"
	balancev1 "github.com/cotenant/cotenant/serve/proto/cotenant/balance/v1"
)

// Options of a Coordinator. The zero value is a coordinator that keeps nothing
// on disk.
type Options struct {
	// MaxJobs and MaxWorkers (of one job) bound what is opened; 0 is the default.
	MaxJobs, MaxWorkers int
	// ForgetAfter is how long a job may be silent before it is forgotten, its
	// state too; 0 is the default.
	ForgetAfter time.Duration
	// State is a folder for each job's agreed shares and what was learned; ""
	// keeps neither. It is made where it is absent.
	State string
	// History takes the workers' speeds as samples, once every HistoryEvery (0 is
	// the default) and whenever a co-location changes; nil keeps none.
	History      Sink
	HistoryEvery time.Duration
	// SharesLog takes every vector that is handed out, as CSV; nil keeps none.
	SharesLog io.Writer
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Warn takes what goes wrong and stops nothing; nil drops it.
	Warn func(text string)
}

// Sink takes samples; history.Store is one.
type Sink interface {
	Append(samples ...history.Sample) error
}

// Defaults of Options.
const (
	DefaultMaxJobs      = 1000
	DefaultMaxWorkers   = 10_000
	DefaultForgetAfter  = time.Hour
	DefaultHistoryEvery = time.Minute
)

// Coordinator hands out the batch sizes of many jobs. It is safe for
// concurrent use.
type Coordinator struct {
	o        Options
	metrics  *metrics
	recorder *recorder
	log      *sharesLog
	saver    *saver

	mu   sync.Mutex // never held while a job's lock is taken
	jobs map[string]*job
}

// NewCoordinator makes a coordinator, with the jobs that Options.State holds.
func NewCoordinator(o Options) (*Coordinator, error) {
	orDefault(&o.MaxJobs, DefaultMaxJobs)
	orDefault(&o.MaxWorkers, DefaultMaxWorkers)
	orDefault(&o.ForgetAfter, DefaultForgetAfter)
	orDefault(&o.HistoryEvery, DefaultHistoryEvery)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	c := &Coordinator{o: o, jobs: map[string]*job{}}
	c.metrics = newMetrics(c)
	c.log = newSharesLog(o.SharesLog, o.Warn)
	if o.History != nil {
		c.recorder = newRecorder(o.History)
	}
	if o.State != "" {
		var err error
		if c.saver, err = newSaver(o.State); err != nil {
			return nil, err
		}
		if err := c.load(); err != nil {
			return nil, errors.Join(err, c.saver.close())
		}
	}
	return c, nil
}

func orDefault[T int | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}

// Open makes a job known, or tells what is known of it.
func (c *Coordinator) Open(_ context.Context, r *balancev1.OpenRequest) (*balancev1.OpenResponse, error) {
	o, err := readOpening(r, c.o.MaxWorkers)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	for {
		j, err := c.find(o.job, true)
		if err != nil {
			return nil, err
		}
		if shares, err := c.open(j, o); !errors.Is(err, errGone) {
			return shares, err
		}
	}
}

// errGone: the job was closed after it was found.
var errGone = errors.New("gone")

func (c *Coordinator) open(j *job, o opening) (*balancev1.OpenResponse, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.gone {
		return nil, errGone
	}
	now := c.o.Now()
	changed, err := j.open(o, now)
	if err != nil {
		if j.balancer == nil {
			c.drop(j)
		}
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	c.recorder.place(j, now)
	if changed {
		c.handedOut(j, now)
	}
	return &balancev1.OpenResponse{Generation: j.shares.Generation, Shares: wireShares(j.shares)}, nil
}

// handedOut is called with the job's lock, whenever its shares in force change.
func (c *Coordinator) handedOut(j *job, now time.Time) {
	c.metrics.changes.Inc()
	c.log.write(j, now)
	c.saver.mark(j, true)
}

// learnAfter is how long the answer has to get out before learning, which keeps
// a processor busy for tens of milliseconds where there are a thousand workers.
const learnAfter = 2 * time.Millisecond

// Report takes measurements in and answers the shares in force.
func (c *Coordinator) Report(_ context.Context, r *balancev1.ReportRequest) (*balancev1.ReportResponse, error) {
	begun := time.Now()
	j, err := c.find(r.GetJob(), false)
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.gone {
		return nil, unknownJob(r.GetJob())
	}
	now := c.o.Now()
	if err := j.accepts(r, now); err != nil {
		return nil, err
	}
	taken, refused := j.observe(r, now)
	c.recorder.observe(j, taken)
	if j.decide(r.GetIteration()) {
		c.handedOut(j, now)
	} else {
		c.saver.mark(j, false)
	}
	time.AfterFunc(learnAfter, j.learn)
	c.metrics.taken.Add(float64(len(taken)))
	c.metrics.refused.Add(float64(len(refused)))
	c.metrics.decision.Observe(time.Since(begun).Seconds())
	return &balancev1.ReportResponse{Shares: wireShares(j.shares), Refused: refused}, nil
}

// Close forgets a job.
func (c *Coordinator) Close(_ context.Context, r *balancev1.CloseRequest) (*balancev1.CloseResponse, error) {
	if j, err := c.find(r.GetJob(), false); err == nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		c.drop(j)
	}
	return &balancev1.CloseResponse{}, nil
}

// Jobs lists the open jobs by name.
func (c *Coordinator) Jobs(context.Context, *balancev1.JobsRequest) (*balancev1.JobsResponse, error) {
	answer := &balancev1.JobsResponse{}
	for _, j := range c.all() {
		if w, ok := j.wire(); ok {
			answer.Jobs = append(answer.Jobs, w)
		}
	}
	return answer, nil
}

// all lists the jobs by name. Some may be gone by the time they are looked at.
func (c *Coordinator) all() []*job {
	c.mu.Lock()
	defer c.mu.Unlock()
	jobs := make([]*job, 0, len(c.jobs))
	for _, j := range c.jobs {
		jobs = append(jobs, j)
	}
	slices.SortFunc(jobs, func(a, b *job) int { return strings.Compare(a.name, b.name) })
	return jobs
}

// find gives the job of a name, and makes one where it is missing and asked for.
func (c *Coordinator) find(name string, make bool) (*job, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if j := c.jobs[name]; j != nil {
		return j, nil
	}
	if !make {
		return nil, unknownJob(name)
	}
	if len(c.jobs) >= c.o.MaxJobs {
		return nil, connect.NewError(connect.CodeResourceExhausted,
			fmt.Errorf("%d jobs are open, as many as this coordinator takes; close some, or raise --max-jobs", len(c.jobs)))
	}
	j := &job{name: name, reported: -1}
	c.jobs[name] = j
	return j, nil
}

// drop removes a job, whose lock is held.
func (c *Coordinator) drop(j *job) {
	if j.gone {
		return
	}
	j.gone = true
	c.recorder.leave(j, c.o.Now())
	c.saver.remove(j)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.jobs, j.name)
}

// forget drops the jobs that were silent for too long.
func (c *Coordinator) forget(now time.Time) {
	for _, j := range c.all() {
		j.mu.Lock()
		if !j.gone && j.balancer != nil && now.Sub(j.heard) > c.o.ForgetAfter {
			c.o.Warn(fmt.Sprintf("job %q: silent for more than %s, forgotten", j.name, c.o.ForgetAfter))
			c.drop(j)
		}
		j.mu.Unlock()
	}
}

func unknownJob(name string) error {
	return connect.NewError(connect.CodeNotFound, fmt.Errorf("no job %q is open here; open it, with the shares that its workers hold", short(name)))
}

// stale is the answer to those whose generation or shares are not the
// coordinator's.
func stale(current int64, format string, args ...any) error {
	err := connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf(format, args...))
	if detail, failed := connect.NewErrorDetail(&balancev1.StaleGeneration{Generation: current}); failed == nil {
		err.AddDetail(detail)
	}
	err.Meta().Set("Cotenant-Generation", strconv.FormatInt(current, 10))
	return err
}

func wireShares(s balance.Shares) *balancev1.Shares {
	sizes := make([]int32, len(s.BatchSizes))
	for i, n := range s.BatchSizes {
		sizes[i] = int32(n) // at most the global batch, which is one
	}
	return &balancev1.Shares{Generation: s.Generation, Iteration: s.Iteration, BatchSizes: sizes}
}

func invalid(err error) error { return connect.NewError(connect.CodeInvalidArgument, err) }
