package sqlstore

import (
	"bufio"
	"database/sql"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

// The test binary is also the process that writes, for the tests that kill
// it or run several at once: COTENANT_WRITE=FILE,BATCHES,SIZE.
func TestMain(m *testing.M) {
	if spec := os.Getenv("COTENANT_WRITE"); spec != "" {
		write(spec)
		return
	}
	os.Exit(m.Run())
}

func write(spec string) {
	f := strings.Split(spec, ",")
	batches, _ := strconv.Atoi(f[1])
	size, _ := strconv.Atoi(f[2])
	s, err := Open(f[0])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for b := range batches {
		batch := make([]history.Sample, size)
		for i := range batch {
			batch[i] = sample(float64(i + 1))
			batch[i].Job = fmt.Sprintf("%d/%d", os.Getpid(), b)
		}
		if err := s.Append(batch...); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(b) // committed: from here on it may not be lost
	}
}

func writer(t *testing.T, path string, batches, size int) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), fmt.Sprintf("COTENANT_WRITE=%s,%d,%d", path, batches, size))
	cmd.Stderr = os.Stderr
	return cmd
}

func sample(value float64) history.Sample {
	return history.Sample{
		Source: "profile", Colocation: cluster.Colocation{"redis": 1, "mms": 2}, Workload: "redis",
		Metric: history.Rate, Value: value, Alone: 2,
	}
}

func open(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestStoreKeepsEveryField(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b?c#d%20e&_txlock=x.db") // nothing of which is a URL's
	at := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	full := history.Sample{
		Source: "profile", Start: at, End: at.Add(time.Second), Class: "c5", Scope: history.ScopeDevice,
		Colocation: cluster.Colocation{"redis": 1, "mms \"x\"": 2}, Workload: "redis", Role: cluster.Worker,
		Job: "j", Span: cluster.SpanRack, Workers: 4, BatchSize: 32, Metric: history.P99, Value: 1e-300, Alone: 0.1, Repeats: 3, Spread: 5e300,
	}
	want := []history.Sample{sample(1), full, sample(0)}
	s := open(t, path)
	if err := s.Append(want[:1]...); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(want[1:]...); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	got, err := open(t, path).All()
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// Whatever is appended in whatever pieces comes back like from Memory.
func TestStoreLikeMemory(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		s, err := Open(filepath.Join(dir, fmt.Sprint(n)))
		if err != nil {
			rt.Fatal(err)
		}
		defer s.Close()
		var m history.Memory
		for range rapid.IntRange(1, 4).Draw(rt, "appends") {
			values := rapid.SliceOfN(rapid.Float64Range(-0.1, 9), 0, 5).Draw(rt, "values")
			var batch []history.Sample
			for _, v := range values {
				batch = append(batch, sample(v))
			}
			if a, b := m.Append(batch...), s.Append(batch...); (a == nil) != (b == nil) {
				rt.Fatalf("memory says %v, the store %v", a, b)
			}
		}
		want, _ := m.All()
		got, err := s.All()
		if err != nil || len(got) != len(want) || (len(want) > 0 && !reflect.DeepEqual(got, want)) {
			rt.Fatalf("got %v (%v), want %v", got, err, want)
		}
	})
}

func TestAppendKeepsAllOrNothing(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "h.db"))
	err := s.Append(sample(1), sample(math.NaN()))
	if err == nil || !strings.Contains(err.Error(), "sample 1: value: NaN") {
		t.Errorf("error %v; want one about sample 1", err)
	}
	if all, err := s.All(); err != nil || len(all) != 0 {
		t.Errorf("%d samples (%v) after a refused append", len(all), err)
	}
}

func TestKilledWriterLosesNothingCommitted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h.db")
	const size = 7
	cmd := writer(t, path, 1_000_000, size)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	committed := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		committed++
		if committed == 20 {
			_ = cmd.Process.Kill() // what it still printed before it died counts too
		}
	}
	_ = cmd.Wait() // killed: that is the error it reports
	all, err := open(t, path).All()
	if err != nil {
		t.Fatal(err)
	}
	if len(all)%size != 0 || len(all)/size < committed || committed < 20 {
		t.Errorf("%d samples in the file; want at least %d batches of %d, each whole", len(all), committed, size)
	}
}

func TestProcessesAppendAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h.db") // created by whoever comes first
	const processes, batches, size = 4, 15, 10
	var cmds []*exec.Cmd
	for range processes {
		cmd := writer(t, path, batches, size)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		cmds = append(cmds, cmd)
	}
	for _, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	all, err := open(t, path).All()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != processes*batches*size {
		t.Fatalf("%d samples; want %d", len(all), processes*batches*size)
	}
	for i, m := range all {
		if m.Job != all[i-i%size].Job || m.Value != float64(i%size+1) {
			t.Fatalf("sample %d: the batches of two writers are mixed", i)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	raw := func(name string, exec ...string) string {
		path := filepath.Join(dir, name)
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, q := range exec {
			if _, err := db.Exec(q); err != nil {
				t.Fatal(err)
			}
		}
		return path
	}
	text := filepath.Join(dir, "text.db")
	if err := os.WriteFile(text, []byte(strings.Repeat(`{"workload":"redis"}`+"\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, path, want string }{
		{"a text file", text, "not an SQLite file"},
		{"somebody else's", raw("other.db", "CREATE TABLE t (x)"), "another program"},
		{"somebody else's, marked", raw("marked.db", "PRAGMA application_id = 7"), "another program"},
		{"a newer one", raw("new.db", fmt.Sprintf("PRAGMA application_id = %d", applicationID), "PRAGMA user_version = 99"), "newer cotenant"},
		{"no directory", filepath.Join(dir, "no", "h.db"), "directory exists"},
		{"a directory", dir, "cannot be opened"},
		{"no name", "", "path is empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before []byte
			if c.path != "" && c.path != dir {
				before, _ = os.ReadFile(c.path)
			}
			s, err := Open(c.path)
			if err == nil {
				_ = s.Close()
				t.Fatal("opened")
			}
			if !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.path) {
				t.Errorf("error %q; want one with %q and the path", err, c.want)
			}
			if after, _ := os.ReadFile(c.path); string(after) != string(before) && c.path != dir {
				t.Error("the file was changed")
			}
		})
	}
}

func TestAllRefusesWhatCannotBe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h.db")
	s := open(t, path)
	if err := s.Append(sample(1)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.Exec(`UPDATE samples SET value = -1`); err != nil {
		t.Fatal(err)
	}
	if _, err := s.All(); err == nil || !strings.Contains(err.Error(), "row 1: value: -1") || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v; want the file, the row, the field and the value", err)
	}
}

// A store that a version before Sample.Workers wrote is brought up to date,
// and keeps what it holds.
func TestOpensOlderStores(t *testing.T) {
	path := filepath.Join(t.TempDir(), "old.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(steps[0] + fmt.Sprintf(`; PRAGMA application_id = %d; PRAGMA user_version = 1;
		INSERT INTO samples (source, started, ended, class, scope, colocation, workload, role, job, span, batch_size, metric, value, alone, repeats, spread)
		VALUES ('profile', '', '', '', '', '{"mms":2,"redis":1}', 'redis', '', '', '', 0, 'rate', 1, 2, 0, 0)`, applicationID)); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	gang := sample(3)
	gang.Workers = 8
	if err := s.Append(gang); err != nil {
		t.Fatal(err)
	}
	got, err := s.All()
	if err != nil {
		t.Fatal(err)
	}
	if want := []history.Sample{sample(1), gang}; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
