package serve_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/cotenant/cotenant/serve"
	balancev1 "github.com/cotenant/cotenant/serve/proto/cotenant/balance/v1"
)

func open(t *testing.T, c *serve.Coordinator, r *balancev1.OpenRequest) *balancev1.Shares {
	t.Helper()
	if r.GetJob() == "" {
		r.Job = "job"
	}
	answer, err := c.Open(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	return answer.GetShares()
}

func report(t *testing.T, c *serve.Coordinator, r *balancev1.ReportRequest) *balancev1.ReportResponse {
	t.Helper()
	if r.GetJob() == "" {
		r.Job = "job"
	}
	answer, err := c.Report(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func wants(t *testing.T, what string, s *balancev1.Shares, generation, iteration int64, sizes ...int32) {
	t.Helper()
	if s.GetGeneration() != generation || s.GetIteration() != iteration || !slices.Equal(s.GetBatchSizes(), sizes) {
		t.Errorf("%s: %v; want generation %d, from iteration %d, %d", what, s, generation, iteration, sizes)
	}
}

func TestOpenIsIdempotent(t *testing.T) {
	c := coordinator(t, serve.Options{})
	two := &balancev1.OpenRequest{GlobalBatch: 100, Workers: workers(2)}
	wants(t, "the first time", open(t, c, two), 1, 0, 50, 50)
	wants(t, "again", open(t, c, two), 1, 0, 50, 50)
	s := report(t, c, &balancev1.ReportRequest{Generation: 1, Reports: reports([]int32{50, 50}, []float64{50, 200})}).GetShares()
	wants(t, "after a report", s, 1, 2, 20, 80)

	held := &balancev1.OpenRequest{GlobalBatch: 100, Workers: workers(2), Iteration: 1, Agreed: s}
	wants(t, "a rank 0 that lost its connection", open(t, c, held), 1, 2, 20, 80)
	late := &balancev1.OpenRequest{GlobalBatch: 100, Workers: workers(2), Iteration: 7}
	wants(t, "new processes after the shares' beginning", open(t, c, late), 1, 2, 20, 80)
	wants(t, "new processes before it know nothing of iteration 2", open(t, c, two), 2, 0, 20, 80)

	three := &balancev1.OpenRequest{GlobalBatch: 100, Workers: workers(3), Iteration: 9}
	if s := open(t, c, three); s.GetGeneration() != 3 || s.GetIteration() != 9 || s.GetBatchSizes()[0] >= s.GetBatchSizes()[1] {
		t.Errorf("a third worker joins: %v; the first is still the slower one", s)
	}
	_, err := c.Report(context.Background(), &balancev1.ReportRequest{Job: "job", Generation: 2})
	if g := staleGeneration(err); g != 3 {
		t.Errorf("a late rank of the last generation: %v", err)
	}
	impossible := &balancev1.OpenRequest{Job: "job", GlobalBatch: 100, Workers: []*balancev1.Worker{{Name: "0", Max: 10}}}
	if _, err := c.Open(context.Background(), impossible); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("limits below the global batch: %v", err)
	}
	report(t, c, &balancev1.ReportRequest{Generation: 3, Iteration: 9}) // the job is what it was
	if s := open(t, c, &balancev1.OpenRequest{GlobalBatch: 90, Workers: workers(3), Iteration: 10}); s.GetGeneration() != 4 {
		t.Errorf("another global batch: %v", s)
	}
}

// A job that goes on from a checkpoint runs iterations that were reported
// before: of a new generation, or its reports would count as repeated.
func TestAJobGoesOnFromItsCheckpoint(t *testing.T) {
	c := coordinator(t, serve.Options{})
	two := &balancev1.OpenRequest{GlobalBatch: 100, Workers: workers(2)}
	s := open(t, c, two)
	for k := range int64(60) {
		s = report(t, c, &balancev1.ReportRequest{Generation: 1, Iteration: k, Reports: reports(s.GetBatchSizes(), []float64{50, 200})}).GetShares()
	}
	wants(t, "before", s, 1, 2, 20, 80)
	s = open(t, c, &balancev1.OpenRequest{GlobalBatch: 100, Workers: workers(2), Iteration: 12, Agreed: s})
	wants(t, "from iteration 12", s, 2, 12, 20, 80)
	for k := int64(12); k < 40; k++ {
		got := report(t, c, &balancev1.ReportRequest{Generation: 2, Iteration: k, Reports: reports(s.GetBatchSizes(), []float64{200, 50})})
		if len(got.GetRefused()) > 0 {
			t.Fatalf("iteration %d: %v", k, got.GetRefused())
		}
		s = got.GetShares()
	}
	if s.GetBatchSizes()[0] <= s.GetBatchSizes()[1] {
		t.Errorf("the other worker is slow since: %v", s)
	}
}

// One number that is wild makes no job's later reports look repeated.
func TestWildIterations(t *testing.T) {
	var seconds atomic.Int64 // the coordinator's own goroutine asks, too
	c := coordinator(t, serve.Options{Now: func() time.Time { return time.Unix(seconds.Load(), 0) }})
	open(t, c, &balancev1.OpenRequest{GlobalBatch: 100, Workers: workers(2)})
	tell := func(generation, k int64) error {
		_, err := c.Report(context.Background(), &balancev1.ReportRequest{Job: "job", Generation: generation, Iteration: k, Reports: reports([]int32{50, 50}, []float64{50, 50})})
		return err
	}
	for _, k := range []int64{0, 1, 9000} {
		if err := tell(1, k); err != nil {
			t.Errorf("iteration %d: %v", k, err)
		}
	}
	for _, k := range []int64{500_000, 1 << 53, 2} {
		if g := staleGeneration(tell(1, k)); g != 1 {
			t.Errorf("iteration %d is taken", k)
		}
	}
	seconds.Store(60)
	if err := tell(1, 500_000); err != nil {
		t.Errorf("after a minute of silence: %v", err)
	}
	wants(t, "opened anew", open(t, c, &balancev1.OpenRequest{GlobalBatch: 100, Workers: workers(2), Iteration: 9001}), 2, 9001, 50, 50)
	if err := tell(2, 9001); err != nil {
		t.Error(err)
	}
}

func TestACoordinatorThatForgot(t *testing.T) {
	agreed := &balancev1.Shares{Generation: 7, Iteration: 520, BatchSizes: []int32{30, 70}}
	again := &balancev1.OpenRequest{GlobalBatch: 100, Workers: workers(2), Iteration: 531, Agreed: agreed}
	c := coordinator(t, serve.Options{})
	wants(t, "it goes on with what the workers hold", open(t, c, again), 7, 520, 30, 70)
	if s := report(t, c, &balancev1.ReportRequest{Generation: 7, Iteration: 531, HeldIteration: 520, Reports: reports([]int32{30, 70}, []float64{10, 10})}).GetShares(); s.GetIteration() != 533 {
		t.Errorf("after a report: %v", s)
	}

	c = coordinator(t, serve.Options{})
	again.Workers, again.AgreedWorkers = workers(2), []string{"0", "2"}
	wants(t, "one worker left and another came", open(t, c, again), 8, 531, 50, 50)

	c = coordinator(t, serve.Options{})
	open(t, c, &balancev1.OpenRequest{GlobalBatch: 100, Workers: workers(2)})
	_, err := c.Report(context.Background(), &balancev1.ReportRequest{Job: "job", Generation: 1, Iteration: 9, HeldIteration: 5})
	if g := staleGeneration(err); g != 1 {
		t.Errorf("shares that the coordinator does not know: %v", err)
	}
}

// What makes no sense is left out and named; the rest counts, and the sum and
// the order of iterations stay.
func TestNonsenseIsNamed(t *testing.T) {
	c := coordinator(t, serve.Options{})
	open(t, c, &balancev1.OpenRequest{GlobalBatch: 100, Workers: workers(2)})
	good := func(name string) *balancev1.WorkerReport {
		return &balancev1.WorkerReport{Worker: name, BatchSize: 50, ComputeSeconds: 1}
	}
	for i, w := range []struct {
		change func(*balancev1.WorkerReport)
		want   string
	}{
		{func(w *balancev1.WorkerReport) { w.ComputeSeconds = math.NaN() }, "compute_seconds: NaN"},
		{func(w *balancev1.WorkerReport) { w.ComputeSeconds = math.Inf(1) }, "compute_seconds: +Inf"},
		{func(w *balancev1.WorkerReport) { w.ComputeSeconds = -1 }, "compute_seconds: -1"},
		{func(w *balancev1.WorkerReport) { w.ComputeSeconds = 1e300 }, "compute_seconds: 1e+300"},
		{func(w *balancev1.WorkerReport) { w.ComputeSeconds = 300 * 24 * 3600 }, "compute: 7200h"},
		{func(w *balancev1.WorkerReport) { w.ComputeSeconds = 0 }, "compute: 0s"},
		{func(w *balancev1.WorkerReport) { w.CommunicateSeconds = math.NaN() }, "communicate_seconds: NaN"},
		{func(w *balancev1.WorkerReport) { w.BatchSize = -1 }, "-1"},
		{func(w *balancev1.WorkerReport) { w.Cpu = math.NaN() }, "cpu: NaN"},
		{func(w *balancev1.WorkerReport) { w.Memory = -1 }, "memory: -1"},
		{func(w *balancev1.WorkerReport) { w.Worker = "stranger" }, "stranger"},
		{func(w *balancev1.WorkerReport) { w.Worker = "0" }, "already"},
	} {
		odd := good("1")
		w.change(odd)
		got := report(t, c, &balancev1.ReportRequest{Generation: 1, Iteration: int64(i), Reports: []*balancev1.WorkerReport{good("0"), odd}})
		if len(got.GetRefused()) != 1 || got.GetRefused()[0].GetWorker() != odd.GetWorker() || !strings.Contains(got.GetRefused()[0].GetReason(), w.want) {
			t.Errorf("%v: refused %v, want %q", odd, got.GetRefused(), w.want)
		}
		if s := got.GetShares().GetBatchSizes(); s[0]+s[1] != 100 {
			t.Errorf("%v: %v", odd, s)
		}
	}
	for _, k := range []int64{-1, math.MaxInt64, math.MinInt64, 1<<53 + 1} {
		_, err := c.Report(context.Background(), &balancev1.ReportRequest{Job: "job", Generation: 1, Iteration: k})
		if connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("iteration %d: %v", k, err)
		}
	}
	before := report(t, c, &balancev1.ReportRequest{Generation: 1, Iteration: 20}).GetShares()
	late := report(t, c, &balancev1.ReportRequest{Generation: 1, Iteration: 19, Reports: []*balancev1.WorkerReport{{Worker: "1", BatchSize: 50, ComputeSeconds: 9}}})
	wants(t, "a late rank changes nothing that was handed out", late.GetShares(), 1, before.GetIteration(), before.GetBatchSizes()...)
}

func TestClose(t *testing.T) {
	c := coordinator(t, serve.Options{})
	open(t, c, &balancev1.OpenRequest{GlobalBatch: 10, Workers: workers(2)})
	open(t, c, &balancev1.OpenRequest{Job: "other", GlobalBatch: 10, Workers: workers(2)})
	if _, err := c.Close(context.Background(), &balancev1.CloseRequest{Job: "job"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Close(context.Background(), &balancev1.CloseRequest{Job: "job"}); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	got, err := c.Jobs(context.Background(), &balancev1.JobsRequest{})
	if err != nil || len(got.GetJobs()) != 1 || got.GetJobs()[0].GetJob() != "other" {
		t.Errorf("after one of two was closed: %v, %v", got, err)
	}
}

func TestLogOfShares(t *testing.T) {
	var log bytes.Buffer
	c := coordinator(t, serve.Options{SharesLog: &log})
	open(t, c, &balancev1.OpenRequest{Job: `a, "job"`, GlobalBatch: 100, Workers: workers(2)})
	for k := range int64(3) { // the last two change nothing
		report(t, c, &balancev1.ReportRequest{Job: `a, "job"`, Generation: 1, Iteration: k, Reports: reports([]int32{50, 50}, []float64{50, 200})})
	}
	rows, err := csv.NewReader(&log).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rows {
		got = append(got, strings.Join(r[1:], "|"))
	}
	want := []string{`a, "job"|1|0|0|50|0`, `a, "job"|1|0|1|50|0`, `a, "job"|1|2|0|20|1`, `a, "job"|1|2|1|80|0.25`}
	if !slices.Equal(got, want) {
		t.Errorf("logged %q, want %q", got, want)
	}
}

// TestManyJobsAtOnce is for the race detector: jobs open, report, change and
// close while others list them and everything is written down.
func TestManyJobsAtOnce(t *testing.T) {
	jobs, iterations := 24, int64(40)
	if testing.Short() {
		jobs, iterations = 8, 15
	}
	var log bytes.Buffer
	sink := &keep{}
	c, end := running(t, serve.Options{State: t.TempDir(), SharesLog: &log, History: sink, MaxJobs: jobs})
	url := start(t, c, "")
	var group sync.WaitGroup
	for j := range jobs {
		group.Go(func() {
			if err := train(clients(url)["gRPC"], fmt.Sprint("job-", j), iterations, uint64(j)); err != nil {
				t.Errorf("job %d: %v", j, err)
			}
		})
	}
	stop := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for {
			select {
			case <-stop:
				return
			default:
				post(t, url, "Jobs", "", "{}")
			}
		}
	}()
	group.Wait()
	close(stop)
	<-watched
	end()
	if len(sink.samples) == 0 || log.Len() == 0 {
		t.Errorf("%d samples, %d bytes of log", len(sink.samples), log.Len())
	}
}

// train runs a job whose workers change half way.
func train(client balancev1.BalanceServiceClient, name string, iterations int64, seed uint64) error {
	ctx, random := context.Background(), rng(seed)
	all := workers(4)
	for i, w := range all {
		w.Node = "node-" + strconv.Itoa(i)
	}
	var s *balancev1.Shares
	for k := range iterations {
		if k == 0 || k == iterations/2 {
			answer, err := client.Open(ctx, &balancev1.OpenRequest{Job: name, GlobalBatch: 101, Workers: all, Iteration: k})
			if err != nil {
				return err
			}
			s, all = answer.GetShares(), all[:3]
		}
		speeds := make([]float64, len(s.GetBatchSizes()))
		sum := int32(0)
		for i := range speeds {
			speeds[i] = 10 + 100*random.Float64()
			sum += s.GetBatchSizes()[i]
		}
		if sum != 101 {
			return fmt.Errorf("%v sums to %d", s, sum)
		}
		answer, err := client.Report(ctx, &balancev1.ReportRequest{
			Job: name, Generation: s.GetGeneration(), Iteration: k, HeldIteration: s.GetIteration(), Reports: reports(s.GetBatchSizes(), speeds),
		})
		if err != nil {
			return err
		}
		s = answer.GetShares()
	}
	_, err := client.Close(ctx, &balancev1.CloseRequest{Job: name})
	return err
}
