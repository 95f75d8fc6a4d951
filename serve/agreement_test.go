package serve_test

import (
	"context"
	"math"
	"slices"
	"strconv"
	"testing"

	"connectrpc.com/connect"
	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/serve"
	balancev1 "github.com/cotenant/cotenant/serve/proto/cotenant/balance/v1"
)

// training is a job that keeps to the protocol while all around it fails.
type training struct {
	t *rapid.T
	c *serve.Coordinator

	allocator  string
	total      int32
	workers    []*balancev1.Worker
	iteration  int64 // to run next
	generation int64
	held       *balancev1.Shares // nil where the processes began anew
	// lost: an answer was, since the last that came through.
	lost bool
	// handed is what was received, by generation and first iteration.
	handed map[[2]int64][]int32
}

func newTraining(t *rapid.T) *training {
	m := &training{
		t: t, c: unsaved(t), total: rapid.Int32Range(20, 2000).Draw(t, "global batch"),
		allocator: rapid.SampledFrom([]string{"", "cpu", "gpu", "federated"}).Draw(t, "allocator"),
		handed:    map[[2]int64][]int32{},
	}
	m.drawWorkers()
	m.open()
	return m
}

func unsaved(t *rapid.T) *serve.Coordinator {
	c, err := serve.NewCoordinator(serve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (m *training) drawWorkers() {
	m.workers = workers(rapid.IntRange(1, 6).Draw(m.t, "workers"))
	for _, w := range m.workers {
		w.Min = rapid.Int32Range(0, 3).Draw(m.t, "min")
		if rapid.Bool().Draw(m.t, "bounded") {
			w.Max = m.total - rapid.Int32Range(0, 10).Draw(m.t, "max below the total")
		}
	}
}

// open opens the job with what its processes hold.
func (m *training) open() {
	r := &balancev1.OpenRequest{
		Job: "job", GlobalBatch: m.total, Workers: m.workers, Allocator: m.allocator, Iteration: m.iteration, Agreed: m.held,
	}
	answer, err := m.c.Open(context.Background(), r)
	if connect.CodeOf(err) == connect.CodeInvalidArgument && len(m.workers) == 1 {
		m.workers[0].Max = 0 // one worker takes all or nothing
		m.open()
		return
	}
	if err != nil {
		m.t.Fatalf("open: %v", err)
	}
	if m.held != nil && answer.GetGeneration() < m.generation {
		m.t.Fatalf("generation %d after %d", answer.GetGeneration(), m.generation)
	}
	if answer.GetGeneration() != answer.GetShares().GetGeneration() {
		m.t.Fatalf("generation %d with shares of %d", answer.GetGeneration(), answer.GetShares().GetGeneration())
	}
	if m.held != nil && answer.GetGeneration() == m.generation && answer.GetShares().GetIteration() == m.held.GetIteration() &&
		!slices.Equal(answer.GetShares().GetBatchSizes(), m.held.GetBatchSizes()) {
		m.t.Fatalf("the workers hold %v, the coordinator says %v", m.held, answer.GetShares())
	}
	m.generation = answer.GetGeneration()
	m.receive(answer.GetShares())
}

// receive checks what must hold of all shares.
func (m *training) receive(s *balancev1.Shares) {
	sum := int32(0)
	if len(s.GetBatchSizes()) != len(m.workers) {
		m.t.Fatalf("%v for %d workers", s, len(m.workers))
	}
	for i, n := range s.GetBatchSizes() {
		if w := m.workers[i]; n < w.GetMin() || w.GetMax() > 0 && n > w.GetMax() {
			m.t.Fatalf("worker %d takes %d, outside %d..%d", i, n, w.GetMin(), w.GetMax())
		}
		sum += n
	}
	if sum != m.total {
		m.t.Fatalf("%v sum to %d, not to %d", s, sum, m.total)
	}
	key := [2]int64{s.GetGeneration(), s.GetIteration()}
	if before, ok := m.handed[key]; ok && !slices.Equal(before, s.GetBatchSizes()) {
		m.t.Fatalf("generation %d, iteration %d: %v, and before %v", key[0], key[1], s.GetBatchSizes(), before)
	}
	m.handed[key] = s.GetBatchSizes()
	m.held, m.lost = s, false
}

// iterate runs an iteration and reports it, in one call or in two.
func (m *training) iterate() {
	var all []*balancev1.WorkerReport
	for i := range m.workers {
		if rapid.IntRange(0, 9).Draw(m.t, "late") > 0 {
			all = append(all, m.report(i))
		}
	}
	cut := rapid.IntRange(0, len(all)).Draw(m.t, "told later")
	m.tell(all[cut:])
	if cut > 0 {
		m.tell(all[:cut])
	}
	m.iteration++
}

func (m *training) report(i int) *balancev1.WorkerReport {
	r := &balancev1.WorkerReport{
		Worker: strconv.Itoa(i), BatchSize: m.held.GetBatchSizes()[i], ComputeSeconds: rapid.Float64Range(1e-4, 10).Draw(m.t, "seconds"),
		CommunicateSeconds: rapid.Float64Range(0, 1).Draw(m.t, "upload"),
	}
	if rapid.IntRange(0, 4).Draw(m.t, "nonsense") > 0 {
		return r
	}
	odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, 365 * 24 * 3600, 1e300, 5e-324}
	r.Worker = rapid.SampledFrom([]string{r.Worker, "0", "", "stranger"}).Draw(m.t, "name")
	r.BatchSize = rapid.OneOf(rapid.Just(r.BatchSize), rapid.Int32()).Draw(m.t, "batch size")
	r.ComputeSeconds = rapid.SampledFrom(append(odd, r.ComputeSeconds)).Draw(m.t, "odd seconds")
	r.CommunicateSeconds = rapid.SampledFrom(append(odd, r.CommunicateSeconds)).Draw(m.t, "odd upload")
	r.Cpu = rapid.SampledFrom(odd).Draw(m.t, "cpu")
	r.Memory = rapid.SampledFrom(odd).Draw(m.t, "memory")
	r.OutOfMemory = rapid.Bool().Draw(m.t, "out of memory")
	return r
}

// tell reports the iteration. Now and then the answer is lost; a job that is
// told to opens again.
func (m *training) tell(all []*balancev1.WorkerReport) {
	r := &balancev1.ReportRequest{Job: "job", Generation: m.generation, Iteration: m.iteration, HeldIteration: m.held.GetIteration(), Reports: all}
	answer, err := m.c.Report(context.Background(), r)
	switch code := connect.CodeOf(err); {
	case rapid.IntRange(0, 9).Draw(m.t, "lost") == 0:
		m.lost = true
	case err != nil && (code == connect.CodeNotFound || code == connect.CodeFailedPrecondition):
		m.open()
	case err != nil:
		m.t.Fatalf("report: %v", err)
	default:
		s := answer.GetShares()
		if s.GetIteration() < m.held.GetIteration() {
			m.t.Fatalf("shares from iteration %d after those from %d", s.GetIteration(), m.held.GetIteration())
		}
		if !m.lost && !slices.Equal(s.GetBatchSizes(), m.held.GetBatchSizes()) && s.GetIteration() < m.iteration+2 {
			m.t.Fatalf("reported iteration %d, new shares from %d", m.iteration, s.GetIteration())
		}
		m.receive(s)
	}
}

// TestAgreement: whatever is lost, restarted and reported, shares keep the
// total and the limits, and there is one vector for a generation and iteration.
func TestAgreement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newTraining(t)
		t.Repeat(map[string]func(*rapid.T){
			"iterate":       func(*rapid.T) { m.iterate() },
			"iterate again": func(*rapid.T) { m.iterate() },
			"coordinator begins anew": func(t *rapid.T) {
				m.c = unsaved(t)
			},
			"opened again": func(*rapid.T) { m.open() },
			"processes begin anew": func(t *rapid.T) {
				m.iteration = max(0, m.iteration-rapid.Int64Range(0, 5).Draw(t, "since the checkpoint"))
				m.held = nil
				if rapid.Bool().Draw(t, "elastic") {
					m.drawWorkers()
				}
				if _, err := m.c.Report(context.Background(), &balancev1.ReportRequest{Job: "job"}); connect.CodeOf(err) == connect.CodeNotFound {
					clear(m.handed) // nobody remembers
				}
				m.open()
			},
			"workers change": func(*rapid.T) {
				m.drawWorkers()
				names := make([]string, len(m.held.GetBatchSizes()))
				for i := range names {
					names[i] = "former " + strconv.Itoa(i)
				}
				m.openChanged(names)
			},
		})
	})
}

// openChanged opens with other workers than those who hold the shares.
func (m *training) openChanged(former []string) {
	answer, err := m.c.Open(context.Background(), &balancev1.OpenRequest{
		Job: "job", GlobalBatch: m.total, Workers: m.workers, Allocator: m.allocator, Iteration: m.iteration, Agreed: m.held, AgreedWorkers: former,
	})
	if err != nil {
		m.workers = workers(len(m.workers)) // without limits that can't be met
		m.openChanged(former)
		return
	}
	if answer.GetGeneration() < m.generation {
		m.t.Fatalf("generation %d after %d", answer.GetGeneration(), m.generation)
	}
	m.generation = answer.GetGeneration()
	m.receive(answer.GetShares())
}
