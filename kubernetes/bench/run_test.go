package bench_test

import (
	"testing"

	"github.com/cotenant/cotenant/kubernetes/bench"
	"github.com/cotenant/cotenant/kubernetes/controlplane/planetest"
)

// run runs a small trial, or skips where its programs are not built.
func run(t *testing.T, c bench.Candidate, arrive bool) bench.Result {
	t.Helper()
	planetest.Needs(t, c.Program)
	truth, err := bench.ReadTruth("")
	if err != nil {
		t.Fatal(err)
	}
	trial := bench.Trial{Batch: truth.Even(60, 20), Truth: truth, Scheduler: c, Arrive: arrive, Log: t.Output()}
	if arrive {
		trial.Batch = truth.Mixed(60, 20, 1)
		worth, err := truth.Sequence(trial.Batch)
		if err != nil {
			t.Fatal(err)
		}
		trial.Sequence = worth.MeanPerformance
	}
	r, err := bench.Run(t.Context(), trial)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bound, share %.3f, %.0f pods/s, p99 %.3f s, from submission %.3f s", r.Bound, r.Share, r.PodsPerSecond, r.SLI99, r.Wait99)
	if r.Bound != 60 || r.ShareBound != 1 || len(r.Placement) != 60 {
		t.Errorf("%d of 60 pods were bound", r.Bound)
	}
	if r.MeanPerformance <= 0 || r.Share <= 0 || r.Share > 1 {
		t.Errorf("mean performance %g, share %g of %g", r.MeanPerformance, r.Share, r.LimitPerformance)
	}
	if r.PodsPerSecond <= 0 || r.FirstBind > r.Seconds || r.SLI99 <= 0 || r.Wait99 <= 0 || r.Wait99 > r.Seconds || r.Attempts["scheduled"] != 60 {
		t.Errorf("first binding after %g s, last after %g s, p99 %g s, attempts %v", r.FirstBind, r.Seconds, r.SLI99, r.Attempts)
	}
	return r
}

func TestRunStock(t *testing.T) {
	run(t, bench.Stock(), false)
}

func TestRunOurs(t *testing.T) {
	ours, stock := run(t, bench.Ours(), false), run(t, bench.Stock(), false)
	if ours.Share < .97 || ours.Share < stock.Share {
		t.Errorf("all at once: a share of %.3f, and stock %.3f; want .97 and no less than stock", ours.Share, stock.Share)
	}
}

func TestRunOursOneAfterAnother(t *testing.T) {
	ours, stock := run(t, bench.Ours(), true), run(t, bench.Stock(), true)
	if ours.Share < stock.Share || ours.ShareOfSequence < .99 {
		t.Errorf("one after another: a share of %.3f, and stock %.3f; %.3f of what the policy reaches by itself, want .99", ours.Share, stock.Share, ours.ShareOfSequence)
	}
}
