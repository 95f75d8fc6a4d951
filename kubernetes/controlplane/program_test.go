package controlplane

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func shell(t *testing.T, script string) *Program {
	t.Helper()
	p := &Program{
		name: "shell", path: "/bin/sh", args: []string{"-c", script}, log: filepath.Join(t.TempDir(), "log"),
		ready: func(context.Context) error { return nil },
	}
	t.Cleanup(func() { _ = p.Kill() })
	return p
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func TestProgramIsStoppedKilledAndStartedAgain(t *testing.T) {
	p := shell(t, "echo begun; exec sleep 600")
	if err := p.Stop(); err != nil || p.PID() != 0 {
		t.Errorf("stopped before it was started: process %d, error %v", p.PID(), err)
	}
	seen := map[int]bool{}
	for _, end := range []func() error{p.Stop, p.Kill, p.Stop} {
		if err := p.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := p.Start(t.Context()); err == nil {
			t.Error("started twice: no error")
		}
		pid := p.PID()
		if seen[pid] || !alive(pid) {
			t.Errorf("process %d: new %v, alive %v", pid, !seen[pid], alive(pid))
		}
		seen[pid] = true
		if err := end(); err != nil || alive(pid) {
			t.Errorf("ended: error %v, alive %v", err, alive(pid))
		}
		if err := p.Died(); err != nil {
			t.Errorf("ended on purpose, and blamed for it: %v", err)
		}
	}
}

func TestProgramThatDiesSaysWhy(t *testing.T) {
	p := shell(t, "echo no such disk; exit 3")
	p.ready = func(context.Context) error { return errors.New("not yet") }
	err := p.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "no such disk") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("error %v", err)
	}
}

func TestProgramThatIsNeverReady(t *testing.T) {
	p := shell(t, "echo thinking; exec sleep 600")
	p.ready = func(context.Context) error { return errors.New("connection refused") }
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	err := p.Start(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "connection refused") || !strings.Contains(err.Error(), "thinking") {
		t.Errorf("error %v", err)
	}
}

// TestProgramDiesWithItsParent kills a parent that cannot tidy up.
func TestProgramDiesWithItsParent(t *testing.T) {
	if os.Getenv("COTENANT_TEST_PARENT") != "" {
		p := shell(t, "exec sleep 600")
		if err := p.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		fmt.Println(p.PID())
		time.Sleep(time.Minute)
		return
	}
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends children with their parent")
	}
	parent := exec.Command(os.Args[0], "-test.run=^TestProgramDiesWithItsParent$")
	parent.Env = append(os.Environ(), "COTENANT_TEST_PARENT=1")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || !alive(pid) {
		t.Fatalf("the parent wrote %q (%v)", line, err)
	}
	_ = parent.Process.Kill()
	_ = parent.Wait()
	for deadline := time.Now().Add(10 * time.Second); alive(pid); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatalf("process %d outlived its parent", pid)
		}
	}
}

func TestConfigurationIsCompleted(t *testing.T) {
	text, err := Scheduler{Configuration: "profiles: [{schedulerName: x}]\nclientConnection: {qps: 500}\n"}.configuration("/k")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"kind: KubeSchedulerConfiguration", "leaderElect: false", "qps: 500", "kubeconfig: /k", "schedulerName: x"} {
		if !strings.Contains(string(text), part) {
			t.Errorf("%q is not in:\n%s", part, text)
		}
	}
	if _, err := (Scheduler{Configuration: "clientConnection: 7"}).configuration("/k"); err == nil {
		t.Error("clientConnection: 7: no error")
	}
	elects := Scheduler{Configuration: "leaderElection: {leaderElect: true}"}
	if text, err := elects.configuration("/k"); err != nil || !strings.Contains(string(text), "leaderElect: true") {
		t.Errorf("what is given does not stay: %s (%v)", text, err)
	}
	elects.Sole = true
	if text, err := elects.configuration("/k"); err != nil || !strings.Contains(string(text), "leaderElect: false") {
		t.Errorf("the only one elects a leader: %s (%v)", text, err)
	}
}
