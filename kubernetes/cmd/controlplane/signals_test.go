package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cotenant/cotenant/kubernetes/controlplane/planetest"
)

// TestNothingIsLeftBehind ends runs as users do, while their planes start: the
// folder with the administrator's key is gone, and nobody reads the log of a
// program that was waited for.
func TestNothingIsLeftBehind(t *testing.T) {
	if args := os.Getenv("COTENANT_TEST_ARGS"); args != "" {
		os.Args = strings.Fields("controlplane " + args)
		if err := run(); err != nil {
			fmt.Fprintln(os.Stderr, "controlplane:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	planetest.Needs(t, "kube-scheduler", "cotenant-scheduler")
	for _, c := range []struct {
		args   string
		signal syscall.Signal
		says   string
		code   int
	}{
		{"up", syscall.SIGHUP, "", 0},
		{"up", syscall.SIGINT, "", 0},
		{"demo --truth " + shipped, syscall.SIGINT, "controlplane: interrupted; what it started has ended\n", 1},
		{"bench --truth " + shipped, syscall.SIGTERM, "controlplane: interrupted; what it started has ended\n", 1},
		{"up", 0, "", 1}, // its log's reader goes away, as with `| head`
	} {
		t.Run(fmt.Sprintf("%s, %v", c.args, c.signal), func(t *testing.T) {
			dir := t.TempDir()
			program := exec.Command(os.Args[0], "-test.run=^TestNothingIsLeftBehind$")
			program.Env = append(os.Environ(), "COTENANT_TEST_ARGS="+c.args, "TMPDIR="+dir)
			log, err := program.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := program.Start(); err != nil {
				t.Fatal(err)
			}
			kill := time.AfterFunc(2*time.Minute, func() { _ = program.Process.Kill() })
			defer kill.Stop()
			// Its first lines: etcd serves, and the API server is waited for.
			lines := bufio.NewReader(log)
			for line := ""; !strings.HasPrefix(line, "etcd "); {
				if line, err = lines.ReadString('\n'); err != nil {
					t.Fatal(err)
				}
			}
			var rest []byte
			if c.signal == 0 {
				_ = log.Close()
			} else {
				_ = program.Process.Signal(c.signal)
				if rest, err = io.ReadAll(lines); err != nil {
					t.Fatal(err)
				}
			}
			_ = program.Wait()
			if code := program.ProcessState.ExitCode(); code != c.code || string(rest) != c.says {
				t.Errorf("exit code %d, want %d, and it says %q, want %q", code, c.code, rest, c.says)
			}
			if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) > 0 {
				t.Errorf("it left %q (%v)", left, err)
			}
		})
	}
}
