package serve_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/cotenant/cotenant/serve"
	balancev1 "github.com/cotenant/cotenant/serve/proto/cotenant/balance/v1"
)

func TestARestartGoesOn(t *testing.T) {
	dir := t.TempDir()
	c, end := running(t, serve.Options{State: dir})
	open(t, c, &balancev1.OpenRequest{Job: "a/b: c", GlobalBatch: 100, Workers: workers(2)})
	open(t, c, &balancev1.OpenRequest{Job: "closed", GlobalBatch: 100, Workers: workers(2)})
	s := report(t, c, &balancev1.ReportRequest{Job: "a/b: c", Generation: 1, Reports: reports([]int32{50, 50}, []float64{50, 200})}).GetShares()
	wants(t, "before", s, 1, 2, 20, 80)
	if _, err := c.Close(context.Background(), &balancev1.CloseRequest{Job: "closed"}); err != nil {
		t.Fatal(err)
	}
	if _, err := serve.NewCoordinator(serve.Options{State: dir}); err == nil || !strings.Contains(err.Error(), "another coordinator") {
		t.Errorf("two coordinators with one folder: %v", err)
	}
	end()

	c, end = running(t, serve.Options{State: dir})
	if _, err := c.Report(context.Background(), &balancev1.ReportRequest{Job: "closed", Generation: 1}); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("a closed job came back: %v", err)
	}
	r := &balancev1.ReportRequest{Job: "a/b: c", Generation: 1, Iteration: 1, HeldIteration: 2, Reports: reports([]int32{20, 80}, []float64{50, 200})}
	wants(t, "after", report(t, c, r).GetShares(), 1, 2, 20, 80)
	end()

	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %q, %v; want one", files, err)
	}
	for text, want := range map[string]string{"{": "unexpected end", `{"format":99}`: "format: 99", `{"format":1,"job":"x"}`: "belongs in"} {
		if err := os.WriteFile(files[0], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		said := ""
		c, end := running(t, serve.Options{State: dir, Warn: func(text string) { said += text }})
		if !strings.Contains(said, want) || !strings.Contains(said, files[0]) {
			t.Errorf("of %s it says %q, want %q", text, said, want)
		}
		open(t, c, &balancev1.OpenRequest{Job: "new", GlobalBatch: 100, Workers: workers(2)})
		end()
		if err := os.Remove(c.StateFile("new")); err != nil {
			t.Error(err)
		}
	}
}

// A coordinator that comes back with an older state is told by the job.
func TestAnOlderStateIsFoundOut(t *testing.T) {
	dir := t.TempDir()
	c, end := running(t, serve.Options{State: dir})
	open(t, c, &balancev1.OpenRequest{GlobalBatch: 100, Workers: workers(2)})
	end()
	older, err := os.ReadFile(c.StateFile("job"))
	if err != nil {
		t.Fatal(err)
	}
	c, end = running(t, serve.Options{State: dir})
	s := report(t, c, &balancev1.ReportRequest{Generation: 1, Iteration: 7, Reports: reports([]int32{50, 50}, []float64{50, 200})}).GetShares()
	wants(t, "handed out", s, 1, 9, 20, 80)
	end()
	if err := os.WriteFile(c.StateFile("job"), older, 0o600); err != nil {
		t.Fatal(err)
	}

	c = coordinator(t, serve.Options{State: dir})
	_, err = c.Report(context.Background(), &balancev1.ReportRequest{Job: "job", Generation: 1, Iteration: 8, HeldIteration: 9})
	if g := staleGeneration(err); g != 1 {
		t.Errorf("shares that are lost: %v", err)
	}
	wants(t, "opened with them", open(t, c, &balancev1.OpenRequest{GlobalBatch: 100, Workers: workers(2), Iteration: 9, Agreed: s}), 1, 9, 20, 80)
	report(t, c, &balancev1.ReportRequest{Generation: 1, Iteration: 9, HeldIteration: 9, Reports: reports([]int32{20, 80}, []float64{50, 200})})
}

func TestSilentJobsAreForgotten(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	dir := t.TempDir()
	c, err := serve.NewCoordinator(serve.Options{State: dir, ForgetAfter: time.Hour, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	open(t, c, &balancev1.OpenRequest{Job: "silent", GlobalBatch: 10, Workers: workers(2)})
	open(t, c, &balancev1.OpenRequest{GlobalBatch: 10, Workers: workers(2)})
	now = now.Add(40 * time.Minute)
	report(t, c, &balancev1.ReportRequest{Generation: 1})
	now = now.Add(40 * time.Minute)
	ctx, stop := context.WithCancel(context.Background())
	stop()
	c.Run(ctx)
	if _, err := c.Report(context.Background(), &balancev1.ReportRequest{Job: "silent", Generation: 1}); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("silent for 80 minutes: %v", err)
	}
	report(t, c, &balancev1.ReportRequest{Generation: 1, Iteration: 1})
	if _, err := os.Stat(c.StateFile("silent")); err == nil {
		t.Error("the file of a forgotten job is still there")
	}
}
