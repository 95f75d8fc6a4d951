package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/cotenant/cotenant/serve"
	balancev1 "github.com/cotenant/cotenant/serve/proto/cotenant/balance/v1"
)

// post is what a client without any library does.
func post(t *testing.T, url, method, token, body string) (status int, header http.Header, answer map[string]any) {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, url+"/cotenant.balance.v1.BalanceService/"+method, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatalf("%s answers %d %q: %v", method, got.StatusCode, text, err)
	}
	return got.StatusCode, got.Header, answer
}

func TestJSONByPost(t *testing.T) {
	url := start(t, coordinator(t, serve.Options{}), "")
	is := func(what string, got any, want string) {
		t.Helper()
		text, err := json.Marshal(got)
		if err != nil || string(text) != want {
			t.Errorf("%s: %s (%v), want %s", what, text, err, want)
		}
	}
	_, _, a := post(t, url, "Open", "", `{"job":"mnist","globalBatch":100,"workers":[{"name":"0"},{"name":"1"}]}`)
	is("opened", a, `{"generation":"1","shares":{"batchSizes":[50,50],"generation":"1"}}`)
	_, _, a = post(t, url, "Report", "", `{"job":"mnist","generation":"1","iteration":"0","reports":[
		{"worker":"0","batchSize":50,"computeSeconds":1},{"worker":"1","batchSize":50,"computeSeconds":0.25}]}`)
	is("reported", a, `{"shares":{"batchSizes":[20,80],"generation":"1","iteration":"2"}}`)
	// Numbers do where int64 are strings in the answers, and unknown fields, of
	// a newer client, are passed over.
	status, header, a := post(t, url, "Report", "", `{"job":"mnist","generation":9,"iteration":1,"mood":"fine"}`)
	is("a stale generation", []any{status, header.Get("Cotenant-Generation"), a["code"]}, `[400,"1","failed_precondition"]`)
	status, _, a = post(t, url, "Report", "", `{"job":"cifar"}`)
	is("an unknown job", []any{status, a["code"]}, `[404,"not_found"]`)
	status, _, a = post(t, url, "Open", "", `{"job":"cifar","globalBatch":`)
	is("half a request", []any{status, a["code"]}, `[400,"invalid_argument"]`)
	_, _, a = post(t, url, "Close", "", `{"job":"mnist"}`)
	is("closed", a, `{}`)
	_, _, a = post(t, url, "Jobs", "", `{}`)
	is("no jobs", a, `{}`)
}

// clients are the three protocols of one port.
func clients(url string) map[string]balancev1.BalanceServiceClient {
	return map[string]balancev1.BalanceServiceClient{
		"Connect":        balancev1.NewBalanceServiceClient(http.DefaultClient, url),
		"gRPC":           balancev1.NewBalanceServiceClient(h2c(), url, connect.WithGRPC()),
		"gRPC-web":       balancev1.NewBalanceServiceClient(http.DefaultClient, url, connect.WithGRPCWeb()),
		"Connect, JSON":  balancev1.NewBalanceServiceClient(h2c(), url, connect.WithProtoJSON()),
		"gRPC, gzip":     balancev1.NewBalanceServiceClient(h2c(), url, connect.WithGRPC(), connect.WithSendGzip()),
		"gRPC-web, JSON": balancev1.NewBalanceServiceClient(http.DefaultClient, url, connect.WithGRPCWeb(), connect.WithProtoJSON()),
	}
}

func TestEveryProtocol(t *testing.T) {
	url := start(t, coordinator(t, serve.Options{}), "")
	for name, client := range clients(url) {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			opened, err := client.Open(ctx, &balancev1.OpenRequest{Job: name, GlobalBatch: 100, Workers: workers(2)})
			if err != nil {
				t.Fatal(err)
			}
			r := &balancev1.ReportRequest{Job: name, Generation: 1, Reports: reports(opened.GetShares().GetBatchSizes(), []float64{50, 200})}
			got, err := client.Report(ctx, r)
			if err != nil || !slices.Equal(got.GetShares().GetBatchSizes(), []int32{20, 80}) || got.GetShares().GetIteration() != 2 {
				t.Errorf("reported: %v, %v", got, err)
			}
			r.Generation = 2
			_, err = client.Report(ctx, r)
			if g := staleGeneration(err); g != 1 {
				t.Errorf("of a generation to come: %v; the current one is told as %d", err, g)
			}
		})
	}
}

// staleGeneration is the current generation that an error tells; 0 where it
// tells none.
func staleGeneration(err error) int64 {
	var e *connect.Error
	if connect.CodeOf(err) != connect.CodeFailedPrecondition || !errors.As(err, &e) {
		return 0
	}
	for _, d := range e.Details() {
		if v, failed := d.Value(); failed == nil {
			if s, ok := v.(*balancev1.StaleGeneration); ok {
				return s.GetGeneration()
			}
		}
	}
	return 0
}

func TestTokenIsAsked(t *testing.T) {
	url := start(t, coordinator(t, serve.Options{}), "sesame")
	for _, token := range []string{"", "wrong", "sesame "} {
		if status, _, a := post(t, url, "Jobs", token, "{}"); status != http.StatusUnauthorized && token != "sesame " || token == "" && a["code"] != "unauthenticated" {
			t.Errorf("token %q: %d, %v", token, status, a)
		}
	}
	if status, _, a := post(t, url, "Jobs", "sesame", "{}"); status != http.StatusOK {
		t.Errorf("with the token: %d, %v", status, a)
	}
	for name, client := range clients(url) {
		if _, err := client.Jobs(context.Background(), &balancev1.JobsRequest{}); connect.CodeOf(err) != connect.CodeUnauthenticated {
			t.Errorf("%s without a token: %v", name, err)
		}
	}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 401, "/": 401} {
		got, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		got.Body.Close()
		if got.StatusCode != want {
			t.Errorf("%s without a token: %d, want %d", path, got.StatusCode, want)
		}
	}
}

func TestRequestsAreBounded(t *testing.T) {
	url := start(t, coordinator(t, serve.Options{MaxJobs: 2, MaxWorkers: 3}), "")
	status, _, a := post(t, url, "Open", "", `{"job":"`+strings.Repeat("x", 9<<20)+`"}`)
	if status != http.StatusTooManyRequests || a["code"] != "resource_exhausted" {
		t.Errorf("9 MiB: %d, %v", status, a)
	}
	open := func(job string, n int) error {
		_, err := balancev1.NewBalanceServiceClient(http.DefaultClient, url).Open(context.Background(),
			&balancev1.OpenRequest{Job: job, GlobalBatch: 100, Workers: workers(n)})
		return err
	}
	for _, c := range []struct {
		job  string
		n    int
		want connect.Code
	}{
		{"a", 4, connect.CodeInvalidArgument},
		{"a", 3, 0},
		{"b", 3, 0},
		{"c", 1, connect.CodeResourceExhausted},
		{"b", 2, 0},
		{"", 1, connect.CodeInvalidArgument},
		{strings.Repeat("y", 254), 1, connect.CodeInvalidArgument},
		{"a\nb", 1, connect.CodeInvalidArgument},
	} {
		if err := open(c.job, c.n); err == nil != (c.want == 0) || err != nil && connect.CodeOf(err) != c.want {
			t.Errorf("open %q with %d workers: %v, want %v", c.job, c.n, err, c.want)
		}
	}
}

func TestMetrics(t *testing.T) {
	url := start(t, coordinator(t, serve.Options{}), "")
	post(t, url, "Open", "", `{"job":"mnist","globalBatch":100,"workers":[{"name":"0"},{"name":"1"}]}`)
	post(t, url, "Report", "", `{"job":"mnist","generation":"1","reports":[
		{"worker":"0","batchSize":50,"computeSeconds":1},{"worker":"1","batchSize":50,"computeSeconds":-0.5}]}`)
	got, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"cotenant_balance_jobs 1", `cotenant_balance_workers{job="mnist"} 2`, `cotenant_balance_reported_iteration{job="mnist"} 0`,
		`cotenant_balance_reports_total{outcome="taken"} 1`, `cotenant_balance_reports_total{outcome="refused"} 1`,
		"cotenant_balance_decision_seconds_count 1", `cotenant_balance_slowest_compute_seconds{job="mnist"} 1`,
		`cotenant_balance_request_seconds_count{code="ok",method="Report"} 1`,
	} {
		if !bytes.Contains(text, []byte("\n"+line+"\n")) {
			t.Errorf("/metrics lacks %q", line)
		}
	}
}
