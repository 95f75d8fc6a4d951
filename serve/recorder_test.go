package serve_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/serve"
	balancev1 "github.com/cotenant/cotenant/serve/proto/cotenant/balance/v1"
)

// keep is a Sink that checks what it takes.
type keep struct {
	mu      sync.Mutex
	samples []history.Sample
}

// Append is part of serve.Sink.
func (k *keep) Append(samples ...history.Sample) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range samples {
		if err := s.Validate(); err != nil {
			return err
		}
	}
	k.samples = append(k.samples, samples...)
	return nil
}

// Two jobs share a node for a while; each window of one co-location is a
// sample of each job there.
func TestSpeedsBecomeSamples(t *testing.T) {
	sink := &keep{}
	c, end := running(t, serve.Options{History: sink, Warn: func(text string) { t.Error(text) }})
	report := func(job string, k int64, speeds ...float64) {
		t.Helper()
		sizes := []int32{10, 10}[:len(speeds)]
		report(t, c, &balancev1.ReportRequest{Job: job, Generation: 1, Iteration: k, Reports: reports(sizes, speeds)})
	}
	open(t, c, &balancev1.OpenRequest{Job: "a", Workload: "resnet-50/32", GlobalBatch: 20, Workers: []*balancev1.Worker{
		{Name: "0", Node: "n1", Class: "v100"}, {Name: "1", Node: "n2", Class: "v100"},
	}})
	report("a", 0, 10, 20)
	report("a", 1, 12, 20)
	open(t, c, &balancev1.OpenRequest{Job: "b", GlobalBatch: 10, Workers: []*balancev1.Worker{{Name: "0", Node: "n1", Class: "v100"}}})
	open(t, c, &balancev1.OpenRequest{Job: "c", GlobalBatch: 10, Workers: []*balancev1.Worker{{Name: "0", Node: "n3", Device: "gpu0"}}})
	open(t, c, &balancev1.OpenRequest{Job: "nowhere", GlobalBatch: 10, Workers: workers(1)})
	report("a", 2, 5, 20)
	report("b", 0, 7)
	report("c", 0, 8)
	report("nowhere", 0, 9)
	if _, err := c.Close(context.Background(), &balancev1.CloseRequest{Job: "b"}); err != nil {
		t.Fatal(err)
	}
	report("a", 3, 11, 20)
	end()
	var got []string
	for _, s := range sink.samples {
		got = append(got, fmt.Sprintf("%s %s %s of %s: %.6g from %d, %s %s", s.Job, s.Scope, s.Colocation.Key(), s.Workload, s.Value, s.Repeats, s.Class, s.Role))
	}
	slices.Sort(got)
	want := []string{
		"a node b+resnet-50/32 of resnet-50/32: 5 from 1, v100 worker",
		"a node resnet-50/32 of resnet-50/32: 11 from 1, v100 worker",
		"a node resnet-50/32 of resnet-50/32: 11 from 2, v100 worker",
		"a node resnet-50/32 of resnet-50/32: 20 from 4, v100 worker",
		"b node b+resnet-50/32 of b: 7 from 1, v100 worker",
		"c device c of c: 8 from 1,  worker",
	}
	if !slices.Equal(got, want) {
		t.Errorf("samples\n%q, want\n%q", got, want)
	}
}
