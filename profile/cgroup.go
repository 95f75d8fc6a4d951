package profile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Cgroups makes one cgroup per task and limits it. It serves version 1 (a
// hierarchy per controller) and version 2 (one for all).
type Cgroups struct {
	// parents are the folders under which groups are made, by controller; in
	// version 2 both are the same.
	cpu, memory string
	unified     bool
	// moved is the leaf into which version 2 needed our own process moved.
	moved string
}

// Version is 1 or 2.
func (c *Cgroups) Version() int {
	if c.unified {
		return 2
	}
	return 1
}

// cpuPeriod is the kernel's default period of a CPU quota, which Kubernetes
// uses too.
const cpuPeriod = 100 * time.Millisecond

// FindCgroups finds the hierarchies in which this process may make groups of
// its own, and tries that: an error says why no limit can be set. Groups are
// made under the group this process is in.
func FindCgroups() (*Cgroups, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("cgroup: %w", err)
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("cgroup: %w", err)
	}
	c, err := findCgroups(mounts, own)
	if err != nil {
		return nil, err
	}
	if c.unified {
		if err := c.delegate(os.Getpid()); err != nil {
			return nil, err
		}
	}
	probe, err := c.New(fmt.Sprintf("cotenant-%d-probe", os.Getpid()), Limits{})
	if err != nil {
		return nil, err
	}
	return c, probe.Close()
}

// findCgroups reads /proc/self/mountinfo and /proc/self/cgroup.
func findCgroups(mountinfo, own []byte) (*Cgroups, error) {
	at := map[string]string{} // controller ("" for version 2) -> folder of our own group
	paths := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(own))
	for lines.Scan() { // "4:memory:/some/group", "0::/some/group"
		f := strings.SplitN(lines.Text(), ":", 3)
		if len(f) != 3 {
			continue
		}
		for name := range strings.SplitSeq(f[1], ",") {
			paths[name] = f[2]
		}
	}
	lines = bufio.NewScanner(bytes.NewReader(mountinfo))
	for lines.Scan() { // "... root mountpoint options - type source superoptions"
		left, right, ok := strings.Cut(lines.Text(), " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if !ok || len(l) < 5 || len(r) < 3 {
			continue
		}
		join := func(name string) {
			path, has := paths[name]
			if !has {
				return
			}
			if rel, err := filepath.Rel(l[3], path); err == nil && !strings.HasPrefix(rel, "..") {
				path = rel
			}
			at[name] = filepath.Join(l[4], path)
		}
		switch r[0] {
		case "cgroup":
			for name := range strings.SplitSeq(r[2], ",") {
				join(name)
			}
		case "cgroup2":
			join("")
		}
	}
	if at["cpu"] != "" && at["memory"] != "" {
		return &Cgroups{cpu: at["cpu"], memory: at["memory"]}, nil
	}
	if at[""] != "" {
		return &Cgroups{cpu: at[""], memory: at[""], unified: true}, nil
	}
	return nil, errors.New("cgroup: neither version 1 (cpu and memory) nor version 2 is mounted; limits can't be set here")
}

const remedy = "start under systemd-run --user --scope -p Delegate=yes, or as root"

// delegate turns the controllers on for groups below ours. A group with
// processes can't do that, so ours first move into a leaf.
func (c *Cgroups) delegate(pid int) error {
	have, err := os.ReadFile(filepath.Join(c.cpu, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("cgroup: %w", err)
	}
	for _, name := range []string{"cpu", "memory"} {
		if !bytes.Contains(append([]byte(" "), bytes.ReplaceAll(have, []byte("\n"), []byte(" "))...), []byte(" "+name+" ")) {
			return fmt.Errorf("cgroup: %s offers no %s controller (it has %q); limits can't be set here; %s", c.cpu, name, strings.TrimSpace(string(have)), remedy)
		}
	}
	control := filepath.Join(c.cpu, "cgroup.subtree_control")
	enable := func() error { return os.WriteFile(control, []byte("+cpu +memory"), 0o644) }
	if err := enable(); err == nil {
		return nil
	} else if !errors.Is(err, syscall.EBUSY) {
		return fmt.Errorf("cgroup: turning on cpu and memory: %w; %s", err, remedy)
	}
	c.moved = filepath.Join(c.cpu, fmt.Sprintf("cotenant-%d-self", pid))
	if err := os.Mkdir(c.moved, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("cgroup: %w", err)
	}
	if err := os.WriteFile(filepath.Join(c.moved, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
		return fmt.Errorf("cgroup: moving into a leaf: %w", err)
	}
	if err := enable(); err != nil {
		return fmt.Errorf("cgroup: turning on cpu and memory, with other processes in %s: %w; %s", c.cpu, err, remedy)
	}
	return nil
}

// Group is the cgroup of one task.
type Group struct {
	// Dirs are its folders; a process joins by writing its id into each one's
	// cgroup.procs.
	Dirs []string
}

// New makes a group with limits.
func (c *Cgroups) New(name string, l Limits) (*Group, error) {
	g := &Group{}
	for _, parent := range slices.Compact([]string{c.cpu, c.memory}) {
		d := filepath.Join(parent, name)
		if err := os.Mkdir(d, 0o755); err != nil {
			_ = g.Close()
			return nil, fmt.Errorf("cgroup: %w; limits need root or a delegated group", err)
		}
		g.Dirs = append(g.Dirs, d)
	}
	if err := c.limit(g, l); err != nil {
		_ = g.Close()
		return nil, err
	}
	return g, nil
}

func (c *Cgroups) limit(g *Group, l Limits) error {
	write := func(dir, file, text string) error {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			return fmt.Errorf("cgroup: limit %q: %w", text, err)
		}
		return nil
	}
	cpuDir, memDir := g.Dirs[0], g.Dirs[len(g.Dirs)-1]
	if l.CPU != "" {
		q, err := resource.ParseQuantity(l.CPU)
		if err != nil {
			return fmt.Errorf("limits.cpu %q: %w", l.CPU, err)
		}
		period := cpuPeriod.Microseconds()
		quota := q.MilliValue() * period / 1000
		if c.unified {
			err = write(cpuDir, "cpu.max", fmt.Sprintf("%d %d", quota, period))
		} else if err = write(cpuDir, "cpu.cfs_period_us", strconv.FormatInt(period, 10)); err == nil {
			err = write(cpuDir, "cpu.cfs_quota_us", strconv.FormatInt(quota, 10))
		}
		if err != nil {
			return err
		}
	}
	if l.Memory != "" {
		q, err := resource.ParseQuantity(l.Memory)
		if err != nil {
			return fmt.Errorf("limits.memory %q: %w", l.Memory, err)
		}
		file := "memory.limit_in_bytes"
		if c.unified {
			file = "memory.max"
		}
		return write(memDir, file, strconv.FormatInt(q.Value(), 10))
	}
	return nil
}

// Processes lists the ids of the processes in the group.
func (g *Group) Processes() []int {
	var ids []int
	for _, d := range g.Dirs {
		text, err := os.ReadFile(filepath.Join(d, "cgroup.procs"))
		if err != nil {
			continue
		}
		for f := range strings.FieldsSeq(string(text)) {
			if id, err := strconv.Atoi(f); err == nil && id > 1 {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// Close kills what is left in the group and removes it.
func (g *Group) Close() error {
	deadline := time.Now().Add(5 * time.Second)
	for {
		for _, id := range g.Processes() {
			kill(id)
		}
		var left error
		for _, d := range g.Dirs {
			if err := os.Remove(d); err != nil && !errors.Is(err, os.ErrNotExist) {
				left = err
			}
		}
		if left == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("cgroup: %w", left)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Close undoes what finding the hierarchy changed: our own process goes back
// where it was.
func (c *Cgroups) Close() error {
	if c.moved == "" {
		return nil
	}
	_ = os.WriteFile(filepath.Join(c.cpu, "cgroup.subtree_control"), []byte("-cpu -memory"), 0o644)
	if err := os.WriteFile(filepath.Join(c.cpu, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0o644); err != nil {
		return fmt.Errorf("cgroup: %w", err)
	}
	return os.Remove(c.moved)
}
