package profile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

// shellSuite has workloads that cost nothing: fast ticks every 10 ms, slow
// every 20 ms; served is driven and read over a file. All of them write their
// process id into {{suite}}/pids.
const shellSuite = `name: shell
measure: {warm_up: 20ms, window: 300ms, repeats: 2, alone_every: 0}
workloads:
  - name: fast
    driver: 'echo $$ >> {{suite}}/pids; while sleep 0.01; do echo "tick 5 ms"; done'
    read:
      rate: {match: ^tick, each: 1}
      latency: {match: '^tick (\d+) (ms)'}
  - name: slow
    role: worker
    job: training
    span: node
    batch_size: 4
    server: 'echo $$ >> {{suite}}/pids; sleep 1000 & echo $! >> {{suite}}/pids; while sleep 0.02; do echo tick; done'
    read:
      rate: {match: ^tick, each: 2}
  - name: served
    environment: {WHERE: "{{dir}}"}
    prepare: 'echo prepared >> {{suite}}/prepares; cp /dev/null {{cache}}/file'
    setup: 'cp {{cache}}/file $WHERE/file'
    server: 'echo $$ >> {{suite}}/pids; sleep 0.05; echo up; exec sleep 1000'
    ready: {line: ^up}
    load: 'echo loaded >> $WHERE/file'
    driver: 'test "$(cat $WHERE/file)" = loaded && while sleep 0.01; do echo rate 42; done'
    read:
      rate: {match: '^rate (\d+)'}
`

// newSession is a session of a suite in a folder, recorded in that folder.
func newSession(t testing.TB, dir, text string) *Session {
	t.Helper()
	path := filepath.Join(dir, "suite.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	suite, err := LoadSuite(path)
	if err != nil {
		t.Fatal(err)
	}
	log, err := OpenLog(filepath.Join(dir, "samples.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	s := &Session{Suite: suite, Measure: suite.Measure, Log: log, Cache: filepath.Join(dir, "cache"), Work: filepath.Join(dir, "work")}
	for _, d := range []string{s.Cache, s.Work} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// pids are the processes that the workloads said they are.
func pids(t testing.TB, dir string) []int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "pids"))
	if err != nil {
		t.Fatal(err)
	}
	var ids []int
	for f := range strings.FieldsSeq(string(text)) {
		id, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

func wantNoneAlive(t *testing.T, dir string) {
	t.Helper()
	deadline := time.Now().Add(3 * time.Second)
	for _, id := range pids(t, dir) {
		for alive(id) {
			if time.Now().After(deadline) {
				t.Fatalf("process %d lives on", id)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

func TestRunMeasuresAndCleansUp(t *testing.T) {
	dir := t.TempDir()
	s := newSession(t, dir, shellSuite)
	defer s.Log.Close()
	var steps []Progress
	s.Progress = func(p Progress) { steps = append(steps, p) }
	plan := Plan([]cluster.Colocation{{"fast": 1}, {"fast": 2, "slow": 1, "served": 1}, {"served": 1}}, s.Measure, 1)
	if err := s.Run(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	if len(steps) != 4 || steps[0].Done != 0 || steps[0].Next == nil || steps[3].Done != 3 || steps[3].Total != 3 || steps[3].Next != nil {
		t.Errorf("progress %+v", steps)
	}
	wantNoneAlive(t, dir)
	if left, _ := os.ReadDir(s.Work); len(left) > 0 {
		t.Errorf("left in the work folder: %v", left)
	}
	if got := read(t, filepath.Join(dir, "prepares")); got != "prepared" {
		t.Errorf("prepared %q, want once", got)
	}
	perCell := map[string]int{}
	for _, m := range s.Log.Samples() {
		perCell[fmt.Sprintf("%s %s %s", m.Colocation.Key(), m.Workload, m.Metric)]++
		want := map[string][2]float64{"fast rate": {25, 100}, "slow rate": {25, 100}, "served rate": {42, 42}, "fast p50": {.005, .005}, "fast p99": {.005, .005}}
		w := want[m.Workload+" "+string(m.Metric)]
		if m.Value < w[0] || m.Value > w[1] {
			t.Errorf("%s of %s: %g, want within %v", m.Metric, m.Workload, m.Value, w)
		}
		if m.Workload == "slow" && (m.Role != cluster.Worker || m.Job != "training" || m.Span != cluster.SpanNode || m.BatchSize != 4) {
			t.Errorf("a training sample lacks what the suite says: %+v", m)
		}
		if d := m.End.Sub(m.Start); d < 120*time.Millisecond || d > 4*120*time.Millisecond {
			t.Errorf("window of %s", d)
		}
	}
	want := map[string]int{
		"fast fast rate": 2, "fast fast p50": 2, "fast fast p99": 2, "served served rate": 2,
		"fast*2+served+slow fast rate": 2, "fast*2+served+slow fast p50": 2, "fast*2+served+slow fast p99": 2,
		"fast*2+served+slow served rate": 2, "fast*2+served+slow slow rate": 2,
	}
	if fmt.Sprint(perCell) != fmt.Sprint(want) {
		t.Errorf("recorded %v, want %v", perCell, want)
	}
	// A second run has nothing to do.
	before := len(s.Log.Samples())
	if err := s.Run(t.Context(), plan); err != nil || len(s.Log.Samples()) != before {
		t.Errorf("again: %v, %d samples more", err, len(s.Log.Samples())-before)
	}
}

func TestRunPausesAndGoesOn(t *testing.T) {
	dir := t.TempDir()
	s := newSession(t, dir, shellSuite)
	defer s.Log.Close()
	s.MaxDuration = time.Nanosecond
	plan := []Step{{cluster.Colocation{"fast": 1}, 2}, {cluster.Colocation{"fast": 2}, 2}}
	if err := s.Run(t.Context(), plan); !errors.Is(err, ErrPaused) || len(s.Log.Samples()) != 0 {
		t.Errorf("%v, %d samples", err, len(s.Log.Samples()))
	}
	s.MaxDuration = 0
	if err := s.Run(t.Context(), plan); err != nil || len(s.Log.Samples()) != 2*2*3 {
		t.Errorf("%v, %d samples", err, len(s.Log.Samples()))
	}
}

func TestInterruptKeepsWhatIsFinished(t *testing.T) {
	dir := t.TempDir()
	s := newSession(t, dir, shellSuite)
	defer s.Log.Close()
	ctx, cancel := context.WithCancel(t.Context())
	s.Progress = func(p Progress) {
		if p.Done == 1 {
			time.AfterFunc(150*time.Millisecond, cancel)
		}
	}
	err := s.Run(ctx, []Step{{cluster.Colocation{"fast": 1}, 2}, {cluster.Colocation{"slow": 1}, 1000}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if n := s.Log.Repeats("", cluster.Colocation{"fast": 1}); n != 2 {
		t.Errorf("%d repeats on record", n)
	}
	wantNoneAlive(t, dir)
}

func TestRunExplainsFailures(t *testing.T) {
	for _, c := range []struct{ name, workload, want string }{
		{"server dies", `{name: x, server: 'echo oh no; exit 3', ready: {line: never}, read: {rate: {match: r, each: 1}}}`, "x#0 server exit status 3; its last output:\n    oh no"},
		{"driver dies", `{name: x, driver: 'sleep 0.1; echo r; echo bye', read: {rate: {match: r, each: 1}}}`, "x#0 driver ended; its last output:\n    r\n    bye"},
		{"setup fails", `{name: x, setup: 'echo full >&2; false', driver: 'echo', read: {rate: {match: r, each: 1}}}`, "x#0 setup exit status 1; its last output:\n    full"},
		{"prepare fails", `{name: x, prepare: 'false', driver: 'echo', read: {rate: {match: r, each: 1}}}`, "preparing x: x prepare exit status 1"},
		{"never ready", `{name: x, server: 'echo hm; sleep 100', ready: {line: never, timeout: 200ms}, read: {rate: {match: r, each: 1}}}`, "x#0 server: not ready after 200ms; its last output:\n    hm"},
		{"never read", `{name: x, server: 'echo hm; sleep 100', ready: {timeout: 200ms}, read: {rate: {match: r, each: 1}}}`, "x#0: no reading after 200ms: does read.rate.match fit?"},
		{"falls silent", `{name: x, server: 'echo r; sleep 100', ready: {timeout: 200ms}, read: {rate: {match: r, each: 1}}}`, "x#0: no complete reading in"},
		{"no such program", `{name: x, server: [no-such-program], read: {rate: {match: r, each: 1}}}`, `x#0 server: exec: "no-such-program"`},
		{"no such user", `{name: x, user: no-such-user, driver: 'echo', read: {rate: {match: r, each: 1}}}`, `user "no-such-user"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.name == "no such user" && os.Getuid() != 0 {
				t.Skip("users are changed by root only")
			}
			dir := t.TempDir()
			s := newSession(t, dir, "name: bad\nmeasure: {window: 50ms, warm_up: 0s}\nworkloads: ["+c.workload+"]\n")
			defer s.Log.Close()
			err := s.Run(t.Context(), []Step{{cluster.Colocation{"x": 1}, 1}})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if len(s.Log.Samples()) > 0 {
				t.Error("something is on record")
			}
			if left, _ := os.ReadDir(s.Work); len(left) > 0 {
				t.Errorf("left in the work folder: %v", left)
			}
		})
	}
}

func TestRunUnderLimits(t *testing.T) {
	c := machineCgroups(t)
	dir := t.TempDir()
	s := newSession(t, dir, strings.ReplaceAll(shellSuite, "    read:", "    limits: {cpu: 500m, memory: 64Mi}\n    read:"))
	defer s.Log.Close()
	s.Cgroups = c
	if err := s.Run(t.Context(), []Step{{cluster.Colocation{"fast": 1, "slow": 1}, 1}}); err != nil {
		t.Fatal(err)
	}
	wantNoneAlive(t, dir)
	if left, _ := filepath.Glob(filepath.Join(c.cpu, fmt.Sprintf("cotenant-%d-*", os.Getpid()))); len(left) > 0 && left[0] != c.moved {
		t.Errorf("cgroups left: %v", left)
	}
}

// childVariable makes the test program a profiler of the folder it names.
const childVariable = "COTENANT_TEST_PROFILE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		if err := profileUntilKilled(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func profileUntilKilled(dir string) error {
	suite, err := LoadSuite(filepath.Join(dir, "suite.yaml"))
	if err != nil {
		return err
	}
	log, err := OpenLog(filepath.Join(dir, "samples.jsonl"))
	if err != nil {
		return err
	}
	s := Session{Suite: suite, Measure: suite.Measure, Log: log, Cache: filepath.Join(dir, "cache"), Work: filepath.Join(dir, "work")}
	if os.Getuid() == 0 {
		if s.Cgroups, err = FindCgroups(); err != nil {
			s.Cgroups = nil
		}
	}
	return s.Run(context.Background(), []Step{{cluster.Colocation{"fast": 1, "slow": 1}, 1000}})
}

func TestNothingSurvivesKill9AndTheRecordGoesOn(t *testing.T) {
	dir := t.TempDir()
	s := newSession(t, dir, shellSuite)
	path := filepath.Join(dir, "samples.jsonl")
	if err := s.Log.Close(); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(exe)
	child.Env = append(os.Environ(), childVariable+"="+dir)
	var said bytes.Buffer
	child.Stderr = &said
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for {
		data, _ := os.ReadFile(path)
		if bytes.Count(data, []byte("\n")) >= 8 {
			break
		}
		if time.Now().After(deadline) {
			_ = child.Process.Kill()
			_ = child.Wait()
			t.Fatalf("nothing on record; it said %s", said.String())
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	wantNoneAlive(t, dir)

	// The record is torn, as a kill in the middle of a write would leave it.
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(bytes.Clone(before), before[:50]...), 0o644); err != nil {
		t.Fatal(err)
	}
	log, err := OpenLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	s.Log = log
	c := cluster.Colocation{"fast": 1, "slow": 1}
	have := log.Repeats("", c)
	if have < 2 || log.Dropped == "" {
		t.Errorf("%d repeats after the kill, said %q", have, log.Dropped)
	}
	if err := s.Run(t.Context(), []Step{{c, have + 1}}); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(after, before) || log.Repeats("", c) != have+1 {
		t.Errorf("going on changed what was on record, or measured %d repeats more, want 1", log.Repeats("", c)-have)
	}
}

func TestVerifyHoldsTheRecordAgainstNow(t *testing.T) {
	dir := t.TempDir()
	s := newSession(t, dir, shellSuite)
	defer s.Log.Close()
	if _, err := s.Verify(t.Context(), 3, 1); err == nil || !strings.Contains(err.Error(), "measure first") {
		t.Errorf("an empty record: %v", err)
	}
	var raw []history.Sample
	for i, v := range []float64{41, 42, 43, 90, 91, 92} {
		m := history.Sample{
			Source: "profile", Scope: history.ScopeNode, Role: cluster.Replica, Colocation: cluster.Colocation{"served": 1 + i/3}, Workload: "served",
			Start: time.Unix(int64(i), 0), End: time.Unix(int64(i)+1, 0), Metric: history.Rate, Value: v, Repeats: 1,
		}
		raw = append(raw, m)
		if err := s.Log.Append([]history.Sample{m}); err != nil {
			t.Fatal(err)
		}
	}
	checks, err := s.Verify(t.Context(), 10, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(checks) != 2 || len(s.Log.Samples()) != len(raw) {
		t.Fatalf("%d checks, %d samples on record", len(checks), len(s.Log.Samples()))
	}
	for _, c := range checks {
		// 42 is what it always reads: as recorded alone, not as recorded in twos.
		if want := c.Colocation.Alone(); c.Within != want || c.Now != 42 {
			t.Errorf("%+v: within %v, want %v", c, c.Within, want)
		}
	}
}
