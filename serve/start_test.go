package serve_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"testing"

	"github.com/cotenant/cotenant/serve"
	balancev1 "github.com/cotenant/cotenant/serve/proto/cotenant/balance/v1"
)

func rng(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// coordinator runs until the test ends.
func coordinator(t testing.TB, o serve.Options) *serve.Coordinator {
	t.Helper()
	c, end := running(t, o)
	t.Cleanup(end)
	return c
}

// running runs until end is called, and has saved all when that returns.
func running(t testing.TB, o serve.Options) (c *serve.Coordinator, end func()) {
	t.Helper()
	if o.Warn == nil {
		o.Warn = func(text string) { t.Log("warning:", text) }
	}
	c, err := serve.NewCoordinator(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Run(ctx)
	}()
	return c, func() {
		stop()
		<-ended
	}
}

// start serves on a port of this machine and gives the address, as a URL.
func start(t testing.TB, c *serve.Coordinator, token string) string {
	t.Helper()
	l := serve.Listener{Address: "127.0.0.1:0", Token: token}
	at, err := l.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Serve(ctx, at, serve.Handler(c, token)) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return "http://" + at.Addr().String()
}

// h2c is a client that begins with HTTP/2 without TLS, as gRPC clients do.
func h2c() *http.Client {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Client{Transport: &http.Transport{Protocols: protocols}}
}

// workers are n of them without limits, named "0", "1", ...
func workers(n int) []*balancev1.Worker {
	all := make([]*balancev1.Worker, n)
	for i := range all {
		all[i] = &balancev1.Worker{Name: strconv.Itoa(i)}
	}
	return all
}

// reports of workers that computed their batches at these speeds (samples/s).
func reports(sizes []int32, speeds []float64) []*balancev1.WorkerReport {
	all := make([]*balancev1.WorkerReport, len(sizes))
	for i, n := range sizes {
		all[i] = &balancev1.WorkerReport{Worker: strconv.Itoa(i), BatchSize: n, ComputeSeconds: float64(n) / speeds[i]}
	}
	return all
}
