//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/history/sqlstore"
	balancev1 "github.com/cotenant/cotenant/serve/proto/cotenant/balance/v1"
)

// program is a coordinator in a process of its own.
type program struct {
	*exec.Cmd
	url    string
	errs   *bytes.Buffer
	client balancev1.BalanceServiceClient
}

// startProgram waits until it answers.
func startProgram(t *testing.T, args ...string) *program {
	t.Helper()
	ready := filepath.Join(t.TempDir(), "ready")
	p := &program{errs: &bytes.Buffer{}}
	p.Cmd = exec.Command(os.Args[0], append([]string{"serve", "balance", "--address", "127.0.0.1:0", "--ready-file", ready}, args...)...)
	p.Env = append(os.Environ(), asProgram+"=1")
	p.Stderr = p.errs
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Process.Kill() // has ended where all went well
		_ = p.Wait()
	})
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		text, err := os.ReadFile(ready)
		if err == nil {
			var r struct {
				Address string
				PID     int
			}
			if err := json.Unmarshal(text, &r); err != nil || r.PID != p.Process.Pid {
				t.Fatalf("ready file %s: %v", text, err)
			}
			p.url = "http://" + r.Address
			p.client = balancev1.NewBalanceServiceClient(http.DefaultClient, p.url)
			return p
		}
		if time.Now().After(end) {
			t.Fatalf("not ready after a minute: %s", p.errs)
		}
	}
}

// end asks it to end and waits.
func (p *program) end(t *testing.T) {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v: %s", err, p.errs)
	}
}

func openTwo(t *testing.T, p *program, agreed *balancev1.Shares) *balancev1.Shares {
	t.Helper()
	answer, err := p.client.Open(context.Background(), &balancev1.OpenRequest{
		Job: "mnist", GlobalBatch: 100, Agreed: agreed, Iteration: agreed.GetIteration(),
		Workers: []*balancev1.Worker{{Name: "0", Node: "n"}, {Name: "1", Node: "n"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return answer.GetShares()
}

func reportTwo(t *testing.T, p *program, k int64, held *balancev1.Shares) *balancev1.Shares {
	t.Helper()
	sizes := held.GetBatchSizes()
	answer, err := p.client.Report(context.Background(), &balancev1.ReportRequest{
		Job: "mnist", Generation: held.GetGeneration(), Iteration: k, HeldIteration: held.GetIteration(), Reports: []*balancev1.WorkerReport{
			{Worker: "0", BatchSize: sizes[0], ComputeSeconds: float64(sizes[0]) / 50},
			{Worker: "1", BatchSize: sizes[1], ComputeSeconds: float64(sizes[1]) / 200},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return answer.GetShares()
}

// TestServeBalanceIsKilled kills the coordinator with no warning and wants its
// successor to go on with the last agreed shares; and once more without state,
// where the job brings them.
func TestServeBalanceIsKilled(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	p := startProgram(t, "--state", state)
	held := reportTwo(t, p, 0, openTwo(t, p, nil))
	if !slices.Equal(held.GetBatchSizes(), []int32{20, 80}) {
		t.Fatalf("shares %v", held)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		files, err := filepath.Glob(filepath.Join(state, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		if len(files) == 1 {
			if text, err := os.ReadFile(files[0]); err == nil && bytes.Contains(text, []byte(`"batch_sizes":[20,80]`)) {
				break
			}
		}
		if time.Now().After(end) {
			t.Fatal("the shares are not saved after a minute")
		}
	}
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait() // killed

	p = startProgram(t, "--state", state)
	if s := reportTwo(t, p, 1, held); s.GetGeneration() != 1 || !slices.Equal(s.GetBatchSizes(), held.GetBatchSizes()) {
		t.Errorf("after kill -9 with state: %v, want %v", s, held)
	}
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait() // killed

	p = startProgram(t)
	if s := openTwo(t, p, held); s.GetGeneration() != 1 || s.GetIteration() != 2 || !slices.Equal(s.GetBatchSizes(), held.GetBatchSizes()) {
		t.Errorf("after kill -9 without state: %v, want %v", s, held)
	}
	p.end(t)
}

func TestServeBalanceWritesAsItGoes(t *testing.T) {
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("sesame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, history := range []string{"h.jsonl", "h.db"} {
		path, log := filepath.Join(dir, history), filepath.Join(dir, history+".csv")
		for range 2 { // the second appends
			p := startProgram(t, "--history", path, "--log-shares", log)
			reportTwo(t, p, 0, openTwo(t, p, nil))
			p.end(t)
		}
		rows, err := os.ReadFile(log)
		if err != nil || strings.Count(string(rows), "time,job") != 1 || strings.Count(string(rows), "\n") != 9 {
			t.Errorf("log of shares %q, %v; want a header and 8 rows", rows, err)
		}
		var n int
		if history == "h.db" {
			store, err := sqlstore.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			all, err := store.All()
			if err != nil {
				t.Fatal(err)
			}
			n = len(all)
			store.Close()
		} else {
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			all, _, err := formats.ReadJSONL(f, formats.Options{Strict: true})
			if err != nil {
				t.Fatal(err)
			}
			n = len(all)
			f.Close()
		}
		if n != 2 {
			t.Errorf("%s has %d samples, want one of each run", history, n)
		}
	}
	p := startProgram(t, "--token-file", token)
	got, err := http.Post(p.url+"/cotenant.balance.v1.BalanceService/Jobs", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(got.Body)
	got.Body.Close()
	if err != nil || got.StatusCode != http.StatusUnauthorized {
		t.Errorf("without the token: %d %s, %v", got.StatusCode, text, err)
	}
	p.end(t)
}

func TestServeBalanceEndsWithItsParent(t *testing.T) {
	parent := exec.Command("sleep", "100")
	if err := parent.Start(); err != nil {
		t.Skip("no program sleep: ", err)
	}
	p := startProgram(t, "--parent", strconv.Itoa(parent.Process.Pid))
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // killed
	ended := make(chan error, 1)
	go func() { ended <- p.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("%v: %s", err, p.errs)
		}
	case <-time.After(time.Minute):
		t.Error("it goes on a minute after its parent's end")
	}
}

func TestServeBalanceWrongUse(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string]string{
		"no token is asked":    "--address 0.0.0.0:0",
		"go together":          "--tls-cert x.pem",
		"one word":             "--token-file " + empty,
		"no such file":         "--token-file absent",
		".jsonl":               "--history x.txt",
		"--max-jobs":           "--max-jobs 0",
		"it has ended already": "--parent 1073741824",
		"host:port":            "--address 8275",
		"there is no folder":   "--log-shares absent/x.csv",
		"--history-every 0s":   "--history-every 0s",
		"must be positive":     "--forget-after -1s",
		"--max-workers -1":     "--max-workers -1",
		"--parent -1":          "--parent -1",
	} {
		_, stderr, code := cotenant(t, append([]string{"serve", "balance", "--address", "127.0.0.1:0"}, strings.Fields(args)...)...)
		if code == exitDone || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, %q; want %q", args, code, stderr, want)
		}
	}
}
