package contention

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"

	"github.com/cotenant/cotenant/cluster"
)

// Format is the version of the file of constants that Parse reads.
const Format = 1

// Constants describe a world: one class of servers, and workloads.
type Constants struct {
	// Format is the version of the layout: 1.
	Format    int        `json:"format"`
	Server    Server     `json:"server"`
	Workloads []Workload `json:"workloads"`
}

// Server is what every node has to share. Bandwidths are in GB/s (1e9 bytes).
type Server struct {
	// Devices, CPUs (hardware threads) and Memory (GiB) are what tasks request.
	Devices int     `json:"devices"`
	CPUs    float64 `json:"cpus"`
	Memory  float64 `json:"memory_gib"`
	// Compute is how many threads' worth of work the processors do when all
	// are busy; less than CPUs where threads share cores.
	Compute float64 `json:"compute_cpus"`
	// MemoryBandwidth is the node's; TaskMemoryBandwidth the most that one task
	// draws.
	MemoryBandwidth     float64 `json:"memory_bandwidth"`
	TaskMemoryBandwidth float64 `json:"task_memory_bandwidth"`
	// PCIe is the node's, all devices together; DevicePCIe one device's.
	PCIe       float64 `json:"pcie"`
	DevicePCIe float64 `json:"device_pcie"`
	// NIC is the network's, in each direction.
	NIC  float64 `json:"nic"`
	Disk float64 `json:"disk"`
	// Oversubscription is how much thinner a node's way to other racks is than
	// its NIC: at least 1.
	Oversubscription float64 `json:"rack_oversubscription"`
}

// Workload is a training program with a fixed global batch, which its workers
// divide. CPU-seconds are seconds of one thread.
type Workload struct {
	// Name is the workers' workload; the parameter servers' is Name + "/ps".
	Name  string `json:"name"`
	Batch int    `json:"batch"`
	// What a task requests; CPUs are also the most threads that it uses.
	WorkerCPUs   float64 `json:"worker_cpus"`
	WorkerMemory float64 `json:"worker_memory_gib"`
	PSCPUs       float64 `json:"ps_cpus"`
	PSMemory     float64 `json:"ps_memory_gib"`
	// Gradients is the size of the model, in MB: what a worker pushes, and
	// pulls, an iteration.
	Gradients float64 `json:"gradients_mb"`
	// SampleDisk and SampleDevice are the kB of one sample as stored, and as
	// copied to the device.
	SampleDisk   float64 `json:"sample_disk_kb"`
	SampleDevice float64 `json:"sample_device_kb"`
	// Device is the seconds a sample takes on the device; Fixed and PerWorker
	// are seconds an iteration that nothing shared slows: the second for each
	// worker of the job (waiting for each other).
	Device    float64 `json:"device_seconds_per_sample"`
	Fixed     float64 `json:"fixed_seconds"`
	PerWorker float64 `json:"fixed_seconds_per_worker"`
	// CPU-seconds of a worker: a sample's, and an iteration's.
	WorkerCPU      float64 `json:"worker_cpu_seconds_per_sample"`
	WorkerCPUFixed float64 `json:"worker_cpu_seconds"`
	// CPU-seconds of all parameter servers together: for an update of the
	// model, and for the gradients of each worker.
	UpdateCPU    float64 `json:"ps_cpu_seconds"`
	AggregateCPU float64 `json:"ps_cpu_seconds_per_worker"`
	// The part of the CPU time that waits for memory, 0..1.
	WorkerMemoryBound float64 `json:"worker_memory_bound"`
	PSMemoryBound     float64 `json:"ps_memory_bound"`
}

//go:embed constants.json
var shipped []byte

// Default is the world that ships: the six-server testbed's servers and the
// eight workloads of the Harmony paper. See docs/contention.md.
func Default() Constants {
	c, err := Parse(shipped)
	if err != nil {
		panic("contention: constants.json: " + err.Error()) // a test reads the file
	}
	return c
}

// Load reads a file of constants in JSON and checks it. Files in YAML are
// converted by whoever opens them.
func Load(r io.Reader) (Constants, error) {
	const most = 1 << 20
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return Constants{}, fmt.Errorf("read contention constants: %w", err)
	}
	if len(data) > most {
		return Constants{}, fmt.Errorf("contention constants: more than %d bytes; is this the right file?", most)
	}
	return Parse(data)
}

// Parse is Load for bytes. Unknown fields, missing ones and values that make
// no sense are errors that name the field.
func Parse(data []byte) (Constants, error) {
	var c Constants
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return Constants{}, fmt.Errorf("contention constants: %w", at(data, err))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Constants{}, errors.New("contention constants: something follows the object; keep one object a file")
	}
	if err := complete(data); err != nil {
		return Constants{}, fmt.Errorf("contention constants: %w", err)
	}
	if err := c.Validate(); err != nil {
		return Constants{}, fmt.Errorf("contention constants: %w", err)
	}
	return c, nil
}

// complete refuses what leaves out a field: a constant forgotten is not 0.
func complete(data []byte) error {
	var f struct {
		Server    map[string]any   `json:"server"`
		Workloads []map[string]any `json:"workloads"`
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	if err := has("server", f.Server, reflect.TypeFor[Server]()); err != nil {
		return err
	}
	for i, w := range f.Workloads {
		if err := has(fmt.Sprintf("workloads[%d] %q", i, w["name"]), w, reflect.TypeFor[Workload]()); err != nil {
			return err
		}
	}
	return nil
}

// has looks for every field of a type. As in encoding/json, case does not count.
func has(where string, got map[string]any, fields reflect.Type) error {
	for i := range fields.NumField() {
		name := fields.Field(i).Tag.Get("json")
		found := false
		for key, v := range got {
			found = found || v != nil && strings.EqualFold(key, name)
		}
		if !found {
			return fmt.Errorf("%s: %s is missing; give it, 0 where there is none", where, name)
		}
	}
	return nil
}

// at adds the line to errors of the decoder that know their offset.
func at(data []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	offset := int64(-1)
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		offset = kind.Offset
	}
	if offset < 0 || offset > int64(len(data)) {
		return err
	}
	return fmt.Errorf("line %d: %w", 1+bytes.Count(data[:offset], []byte("\n")), err)
}

// rule is a number and the range it must be in.
type rule struct {
	field    string
	value    float64
	positive bool
	most     float64
}

// Anything beyond is a slip of units.
const (
	mostRate    = 1e6
	mostSeconds = 1e5
	mostSize    = 1e7
)

func check(where string, rules []rule) error {
	for _, r := range rules {
		switch {
		case math.IsNaN(r.value) || r.value < 0 || r.positive && r.value == 0:
			least := "at least 0"
			if r.positive {
				least = "more than 0"
			}
			return fmt.Errorf("%s: %s is %g; give a number %s", where, r.field, r.value, least)
		case r.value > r.most:
			return fmt.Errorf("%s: %s is %g, more than %g; check its unit", where, r.field, r.value, r.most)
		}
	}
	return nil
}

// Validate reports the first constant that makes no sense.
func (c Constants) Validate() error {
	if c.Format != Format {
		return fmt.Errorf("format is %d; this version reads %d", c.Format, Format)
	}
	s := c.Server
	if s.Devices < 1 || s.Devices > 1024 {
		return fmt.Errorf("server: devices is %d; give 1 to 1024", s.Devices)
	}
	if err := check("server", []rule{
		{"cpus", s.CPUs, true, mostRate},
		{"memory_gib", s.Memory, true, mostSize},
		{"compute_cpus", s.Compute, true, mostRate},
		{"memory_bandwidth", s.MemoryBandwidth, true, mostRate},
		{"task_memory_bandwidth", s.TaskMemoryBandwidth, true, mostRate},
		{"pcie", s.PCIe, true, mostRate},
		{"device_pcie", s.DevicePCIe, true, mostRate},
		{"nic", s.NIC, true, mostRate},
		{"disk", s.Disk, true, mostRate},
		{"rack_oversubscription", s.Oversubscription, true, mostRate},
	}); err != nil {
		return err
	}
	if s.Oversubscription < 1 {
		return fmt.Errorf("server: rack_oversubscription is %g; give 1 where racks do not matter, more where the way out is thinner", s.Oversubscription)
	}
	if len(c.Workloads) == 0 {
		return errors.New("workloads: none; list at least one")
	}
	seen := map[string]bool{}
	for i, w := range c.Workloads {
		where := fmt.Sprintf("workloads[%d] %q", i, w.Name)
		switch {
		case w.Name == "" || strings.TrimSpace(w.Name) != w.Name || strings.ContainsAny(w.Name, "+*\n\r\t"):
			return fmt.Errorf("%s: name must not be empty, begin or end with a space, or hold + or *", where)
		case strings.HasSuffix(w.Name, psSuffix):
			return fmt.Errorf("%s: name ends in %s, which names parameter servers; name the workers' workload", where, psSuffix)
		case seen[w.Name]:
			return fmt.Errorf("%s: listed twice", where)
		case w.Batch < 1 || w.Batch > 1<<20:
			return fmt.Errorf("%s: batch is %d; give 1 to %d", where, w.Batch, 1<<20)
		}
		seen[w.Name] = true
		if err := w.validate(where, s); err != nil {
			return err
		}
	}
	return nil
}

func (w Workload) validate(where string, s Server) error {
	if err := check(where, []rule{
		{"worker_cpus", w.WorkerCPUs, true, s.CPUs},
		{"worker_memory_gib", w.WorkerMemory, false, s.Memory},
		{"ps_cpus", w.PSCPUs, true, s.CPUs},
		{"ps_memory_gib", w.PSMemory, false, s.Memory},
		{"gradients_mb", w.Gradients, false, mostSize},
		{"sample_disk_kb", w.SampleDisk, false, mostSize},
		{"sample_device_kb", w.SampleDevice, false, mostSize},
		{"device_seconds_per_sample", w.Device, false, mostSeconds},
		{"fixed_seconds", w.Fixed, false, mostSeconds},
		{"fixed_seconds_per_worker", w.PerWorker, false, mostSeconds},
		{"worker_cpu_seconds_per_sample", w.WorkerCPU, false, mostSeconds},
		{"worker_cpu_seconds", w.WorkerCPUFixed, false, mostSeconds},
		{"ps_cpu_seconds", w.UpdateCPU, false, mostSeconds},
		{"ps_cpu_seconds_per_worker", w.AggregateCPU, false, mostSeconds},
		{"worker_memory_bound", w.WorkerMemoryBound, false, 1},
		{"ps_memory_bound", w.PSMemoryBound, false, 1},
	}); err != nil {
		return err
	}
	if w.Device+w.Fixed+w.WorkerCPU+w.WorkerCPUFixed < 1e-9 {
		return fmt.Errorf("%s: a worker takes no time; give device_seconds_per_sample, fixed_seconds or worker_cpu_seconds", where)
	}
	return nil
}

// psSuffix makes the name of the parameter servers' workload.
const psSuffix = "/ps"

const gib = 1 << 30

// Requests are the workloads as the cluster sees them: each workload of the
// world and its parameter servers, with what a task requests. A worker needs
// one device besides.
func (c Constants) Requests() []cluster.Workload {
	out := make([]cluster.Workload, 0, 2*len(c.Workloads))
	ask := func(cpus, memory float64) cluster.Resources {
		return cluster.Resources{cluster.CPU: int64(math.Ceil(cpus * 1000)), cluster.Memory: int64(math.Ceil(memory * gib))}
	}
	for _, w := range c.Workloads {
		out = append(out,
			cluster.Workload{Name: w.Name, Requests: ask(w.WorkerCPUs, w.WorkerMemory)},
			cluster.Workload{Name: w.Name + psSuffix, Requests: ask(w.PSCPUs, w.PSMemory)})
	}
	return out
}

// Nodes makes n servers, "server-0" and on. With perRack > 0 they carry the
// label cluster.RackKey, perRack nodes a rack; with 0 they share one rack.
func (c Constants) Nodes(n, perRack int) []cluster.Node {
	nodes := cluster.Nodes("", n, c.Server.Devices, 0)
	for i := range nodes {
		nodes[i].Name = fmt.Sprintf("server-%d", i)
		nodes[i].Capacity = cluster.Resources{
			cluster.CPU:    int64(c.Server.CPUs * 1000),
			cluster.Memory: int64(c.Server.Memory * gib),
		}
		if perRack > 0 {
			nodes[i].Labels = map[string]string{cluster.RackKey: fmt.Sprintf("rack-%d", i/perRack)}
		}
	}
	return nodes
}
