package profile

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestFindCgroupsReadsBothVersions(t *testing.T) {
	v1 := `31 24 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct
32 24 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
33 24 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw`
	v2 := `30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev shared:4 - cgroup2 cgroup2 rw,nsdelegate`
	inner := `30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw`
	for _, c := range []struct {
		name, mounts, own string
		want              Cgroups
	}{
		{"v1", v1, "4:memory:/box/1\n2:cpu,cpuacct:/\n0::/x\n", Cgroups{cpu: "/sys/fs/cgroup/cpu,cpuacct", memory: "/sys/fs/cgroup/memory/box/1"}},
		{"v2", v2, "0::/user.slice/a.scope\n", Cgroups{cpu: "/sys/fs/cgroup/user.slice/a.scope", memory: "/sys/fs/cgroup/user.slice/a.scope", unified: true}},
		{"v2 in a container", inner, "0::/docker/abc\n", Cgroups{cpu: "/sys/fs/cgroup", memory: "/sys/fs/cgroup", unified: true}},
	} {
		got, err := findCgroups([]byte(c.mounts), []byte(c.own))
		if err != nil || *got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", c.name, got, err, c.want)
		}
	}
	if _, err := findCgroups([]byte("1 2 3:4 / / rw - ext4 /dev/sda rw\n"), []byte("0::/\n")); err == nil || !strings.Contains(err.Error(), "limits can't be set here") {
		t.Errorf("no cgroup mounted: %v", err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

func TestVersion2WritesItsFiles(t *testing.T) {
	dir := t.TempDir()
	c := &Cgroups{cpu: dir, memory: dir, unified: true}
	if err := os.WriteFile(filepath.Join(dir, "cgroup.controllers"), []byte("cpuset cpu io memory\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := c.delegate(os.Getpid()); err != nil {
		t.Fatal(err)
	}
	if got := read(t, filepath.Join(dir, "cgroup.subtree_control")); got != "+cpu +memory" {
		t.Errorf("turned on %q", got)
	}
	g, err := c.New("task", Limits{CPU: "1500m", Memory: "64Mi"})
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Dirs) != 1 {
		t.Errorf("folders %q", g.Dirs)
	}
	if got := read(t, filepath.Join(dir, "task", "cpu.max")); got != "150000 100000" {
		t.Errorf("cpu.max %q", got)
	}
	if got := read(t, filepath.Join(dir, "task", "memory.max")); got != "67108864" {
		t.Errorf("memory.max %q", got)
	}
	if _, err := c.New("task", Limits{}); err == nil || !strings.Contains(err.Error(), "limits need root or a delegated group") {
		t.Errorf("a group that exists: %v", err)
	}
}

func TestVersion2WithoutControllersSaysSo(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cgroup.controllers"), []byte("cpuset memory\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	err := (&Cgroups{cpu: dir, memory: dir, unified: true}).delegate(1)
	if err == nil || !strings.Contains(err.Error(), "offers no cpu controller") || !strings.Contains(err.Error(), "systemd-run") {
		t.Errorf("%v", err)
	}
}

// machineCgroups are those of the machine; the test is skipped where none can
// be made.
func machineCgroups(t *testing.T) *Cgroups {
	t.Helper()
	c, err := FindCgroups()
	if err != nil {
		t.Skipf("no cgroup can be made here: %v", err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestLimitsHoldOnThisMachine(t *testing.T) {
	c := machineCgroups(t)
	g, err := c.New(fmt.Sprintf("cotenant-test-%d", os.Getpid()), Limits{CPU: "200m", Memory: "32Mi"})
	if err != nil {
		t.Fatal(err)
	}
	k, err := startKeeper()
	if err != nil {
		t.Fatal(err)
	}
	defer k.close()
	p, err := k.start(launch{what: "spinner", argv: []string{"/bin/sh", "-c", "while :; do :; done"}, cgroup: g})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(600 * time.Millisecond)
	if got := g.Processes(); len(got) == 0 || got[0] != p.cmd.Process.Pid {
		t.Errorf("in the group: %v, want %d", got, p.cmd.Process.Pid)
	}
	p.stop(k)
	used := p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
	if used > 350*time.Millisecond {
		t.Errorf("0.2 cores for 0.75 s used %s", used)
	}
	err = k.run(t.Context(), launch{what: "hog", argv: []string{"dd", "if=/dev/zero", "of=/dev/null", "bs=200M", "count=1"}, cgroup: g})
	if err == nil || !strings.Contains(err.Error(), "hog signal: killed") {
		t.Errorf("200 MB under a limit of 32 MiB: %v", err)
	}
	// A process that left its group of processes is still in the cgroup.
	p, err = k.start(launch{what: "runaway", argv: []string{"/bin/sh", "-c", "setsid sleep 1000 & echo; wait"}, cgroup: g})
	if err != nil {
		t.Fatal(err)
	}
	for len(g.Processes()) < 2 {
		time.Sleep(5 * time.Millisecond)
	}
	ids := g.Processes()
	p.stop(k)
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if alive(id) {
			t.Errorf("process %d lives on", id)
		}
	}
	for _, d := range g.Dirs {
		if _, err := os.Stat(d); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", d, err)
		}
	}
}

// alive reports whether a process runs: neither gone nor a zombie.
func alive(id int) bool {
	if Gone(id) {
		return false
	}
	out, err := exec.Command("ps", "-o", "stat=", "-p", fmt.Sprint(id)).Output()
	return err == nil && !strings.HasPrefix(strings.TrimSpace(string(out)), "Z")
}
