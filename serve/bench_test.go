package serve_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/cotenant/cotenant/balance"
	"github.com/cotenant/cotenant/serve"
	balancev1 "github.com/cotenant/cotenant/serve/proto/cotenant/balance/v1"
)

// BenchmarkReport is the time from the last report of an iteration to the
// shares, with 1,000 workers whose speeds flutter. The promise is 5 ms. Training
// of the predictors after each answer is waited for and not counted: it goes on
// while the workers run the next iteration.
func BenchmarkReport(b *testing.B) {
	ways := []struct {
		name   string
		client func(*testing.B, *serve.Coordinator) balancev1.BalanceServiceClient
	}{
		{"in-process", func(_ *testing.B, c *serve.Coordinator) balancev1.BalanceServiceClient { return c }},
		{"protobuf", func(b *testing.B, c *serve.Coordinator) balancev1.BalanceServiceClient {
			return balancev1.NewBalanceServiceClient(http.DefaultClient, start(b, c, ""))
		}},
		{"gRPC", func(b *testing.B, c *serve.Coordinator) balancev1.BalanceServiceClient {
			return balancev1.NewBalanceServiceClient(h2c(), start(b, c, ""), connect.WithGRPC())
		}},
		{"JSON", func(b *testing.B, c *serve.Coordinator) balancev1.BalanceServiceClient {
			return balancev1.NewBalanceServiceClient(http.DefaultClient, start(b, c, ""), connect.WithProtoJSON())
		}},
	}
	for _, allocator := range []string{balance.CPU, balance.GPU, balance.Federated} {
		for _, way := range ways {
			b.Run(allocator+"/"+way.name, func(b *testing.B) {
				c := coordinator(b, serve.Options{State: b.TempDir()})
				benchmarkReport(b, c, way.client(b, c), allocator)
			})
		}
	}
}

func benchmarkReport(b *testing.B, c *serve.Coordinator, client balancev1.BalanceServiceClient, allocator string) {
	const n = 1000
	ctx := context.Background()
	open := &balancev1.OpenRequest{Job: "bench", GlobalBatch: 64 * n, Allocator: allocator}
	speed := make([]float64, n)
	random := rng(1)
	for i := range n {
		open.Workers = append(open.Workers, &balancev1.Worker{Name: strconv.Itoa(i), Node: fmt.Sprint("node-", i/8)})
		speed[i] = 100 * (1 + random.Float64())
	}
	answer, err := client.Open(ctx, open)
	if err != nil {
		b.Fatal(err)
	}
	sizes := answer.GetShares().GetBatchSizes()
	slowest, k := time.Duration(0), int64(0)
	for b.Loop() {
		b.StopTimer()
		c.Settle("bench")
		r := &balancev1.ReportRequest{Job: "bench", Generation: answer.GetGeneration(), Iteration: k}
		for i := range n {
			r.Reports = append(r.Reports, &balancev1.WorkerReport{
				Worker: strconv.Itoa(i), BatchSize: sizes[i], Cpu: random.Float64(), Memory: random.Float64(),
				ComputeSeconds: .001 + float64(sizes[i])/speed[i]*(1+.05*random.NormFloat64()), CommunicateSeconds: .01 * random.Float64(),
			})
		}
		b.StartTimer()
		begun := time.Now()
		got, err := client.Report(ctx, r)
		if err != nil {
			b.Fatal(err)
		}
		slowest = max(slowest, time.Since(begun))
		sizes = got.GetShares().GetBatchSizes()
		k++
	}
	b.ReportMetric(float64(slowest.Microseconds())/1000, "slowest-ms")
}
