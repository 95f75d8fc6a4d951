package serve_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cotenant/cotenant/serve"
	balancev1 "github.com/cotenant/cotenant/serve/proto/cotenant/balance/v1"
)

// FuzzJSON posts anything at all: nothing makes the coordinator panic, and
// every job's shares sum to its global batch.
func FuzzJSON(f *testing.F) {
	for _, body := range []string{
		`{"job":"a","globalBatch":100,"workers":[{"name":"0"},{"name":"1","min":3,"max":70,"buckets":[8,16,32,64],"data":"1000","node":"n"}]}`,
		`{"job":"a","globalBatch":100,"allocator":"gpu","predictor":"narx","threshold":-1,"seed":"18446744073709551615","workers":[{"name":"0"}]}`,
		`{"job":"a","globalBatch":2147483647,"allocator":"federated","workers":[{"name":"0","data":"9223372036854775807"}],"iteration":9007199254740992}`,
		`{"job":"a","globalBatch":100,"workers":[{"name":"0"},{"name":"1"}],"agreed":{"generation":"9007199254740992","iteration":"5","batchSizes":[1,99]},"agreedWorkers":["0","1"]}`,
		`{"job":"job","generation":"1","iteration":"3","heldIteration":-1,"reports":[{"worker":"0","batchSize":5,"computeSeconds":"NaN","cpu":"Infinity"},{"worker":"1","batchSize":5,"computeSeconds":1e-320,"outOfMemory":true}]}`,
		`{"job":"job","generation":"1","iteration":"9007199254740992","reports":[{"worker":"0","batchSize":2147483647,"computeSeconds":1e-9,"memory":1e308}]}`,
		`{"job":`, `[]`, `null`, ``,
	} {
		for method := range uint8(4) {
			f.Add(method, body)
		}
	}
	f.Fuzz(func(t *testing.T, method uint8, body string) {
		if strings.Count(body, "{") > 64 {
			return // many workers are slow, not new
		}
		c, err := serve.NewCoordinator(serve.Options{Warn: func(text string) { t.Error(text) }})
		if err != nil {
			t.Fatal(err)
		}
		open(t, c, &balancev1.OpenRequest{GlobalBatch: 10, Workers: workers(2)})
		h := serve.Handler(c, "")
		name := []string{"Open", "Report", "Close", "Jobs"}[method%4]
		for range 2 {
			r := httptest.NewRequest(http.MethodPost, "/cotenant.balance.v1.BalanceService/"+name, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code == http.StatusInternalServerError {
				t.Fatalf("%s answers %s", name, w.Body)
			}
		}
		jobs, err := c.Jobs(context.Background(), &balancev1.JobsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range jobs.GetJobs() {
			sum := int64(0)
			for _, n := range j.GetShares().GetBatchSizes() {
				sum += int64(n)
			}
			if sum != int64(j.GetGlobalBatch()) {
				t.Errorf("%v sums to %d, not to %d", j.GetShares(), sum, j.GetGlobalBatch())
			}
		}
	})
}
