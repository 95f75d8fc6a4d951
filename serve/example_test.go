package serve_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/cotenant/cotenant/serve"
	balancev1 "github.com/cotenant/cotenant/serve/proto/cotenant/balance/v1"
)

// Two workers, one four times as fast as the other.
func Example() {
	c, err := serve.NewCoordinator(serve.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(serve.Handler(c, ""))
	defer server.Close()

	ctx := context.Background()
	client := balancev1.NewBalanceServiceClient(http.DefaultClient, server.URL)
	opened, err := client.Open(ctx, &balancev1.OpenRequest{
		Job: "mnist", GlobalBatch: 100, Workers: []*balancev1.Worker{{Name: "slow"}, {Name: "fast"}},
	})
	fmt.Println(opened.GetShares().GetBatchSizes(), err)
	answer, err := client.Report(ctx, &balancev1.ReportRequest{
		Job: "mnist", Generation: opened.GetGeneration(), Iteration: 0,
		Reports: []*balancev1.WorkerReport{
			{Worker: "slow", BatchSize: 50, ComputeSeconds: 1},
			{Worker: "fast", BatchSize: 50, ComputeSeconds: .25},
		},
	})
	fmt.Println(answer.GetShares().GetBatchSizes(), "from iteration", answer.GetShares().GetIteration(), err)
	// Output:
	// [50 50] <nil>
	// [20 80] from iteration 2 <nil>
}
