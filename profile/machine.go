package profile

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Machine describes where samples were measured.
type Machine struct {
	Date   time.Time `json:"date"`
	CPU    string    `json:"cpu"`
	Cores  int       `json:"cores"`
	MHz    float64   `json:"mhz,omitempty"`
	Caches []string  `json:"caches,omitempty"`
	// Memory is in bytes.
	Memory  int64  `json:"memory"`
	Virtual bool   `json:"virtual"`
	Kernel  string `json:"kernel"`
	System  string `json:"system"`
	// Cgroups is the version that set the limits, 0 where none were set.
	Cgroups int `json:"cgroups"`
	// Packages are the versions of the Debian packages that the suite needs.
	Packages map[string]string `json:"packages,omitempty"`
}

// Describe reads /proc, /sys and the package database. What can't be read is
// left empty.
func Describe(ctx context.Context, s *Suite, c *Cgroups, now time.Time) Machine {
	m := Machine{Date: now.UTC().Truncate(time.Second), Cores: runtime.NumCPU(), Packages: map[string]string{}}
	if c != nil {
		m.Cgroups = c.Version()
	}
	for key, value := range fields("/proc/cpuinfo", ":") {
		switch key {
		case "model name":
			m.CPU = value
		case "cpu MHz":
			m.MHz, _ = strconv.ParseFloat(value, 64)
		case "flags":
			m.Virtual = slices.Contains(strings.Fields(value), "hypervisor")
		}
	}
	kib, _ := strconv.ParseInt(strings.TrimSuffix(fields("/proc/meminfo", ":")["MemTotal"], " kB"), 10, 64)
	m.Memory = kib << 10
	m.System = strings.Trim(fields("/etc/os-release", "=")["PRETTY_NAME"], `"`)
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(text))
	}
	caches, _ := filepath.Glob("/sys/devices/system/cpu/cpu0/cache/index*")
	for _, dir := range caches {
		read := func(name string) string {
			text, _ := os.ReadFile(filepath.Join(dir, name))
			return strings.TrimSpace(string(text))
		}
		m.Caches = append(m.Caches, "L"+read("level")+" "+strings.ToLower(read("type"))+" "+read("size")+", shared by cores "+read("shared_cpu_list"))
	}
	for _, w := range s.Workloads {
		for _, n := range w.Needs {
			if n.Package == "" || m.Packages[n.Package] != "" {
				continue
			}
			version, err := exec.CommandContext(ctx, "dpkg-query", "-W", "-f", "${Version}", n.Package).Output()
			if err == nil {
				m.Packages[n.Package] = string(version)
			}
		}
	}
	return m
}

// fields reads "key<sep>value" lines; of a key that occurs again, the first.
func fields(path, sep string) map[string]string {
	out := map[string]string{}
	f, err := os.Open(path)
	if err != nil {
		return out
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		key, value, ok := strings.Cut(lines.Text(), sep)
		key = strings.TrimSpace(key)
		if _, seen := out[key]; ok && !seen {
			out[key] = strings.TrimSpace(value)
		}
	}
	return out
}
