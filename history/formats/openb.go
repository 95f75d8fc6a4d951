package formats

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cotenant/cotenant/cluster"
)

// GPUMilli is the resource that openb's pods share GPUs by: thousandths of a
// GPU, over all GPUs of a node. That a pod's part must come from one GPU is
// not in this total.
const GPUMilli = "alibabacloud.com/gpu-milli"

var (
	openbNodeColumns = []string{"sn", "cpu_milli", "memory_mib", "gpu", "model"}
	openbPodColumns  = []string{
		"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "pod_phase",
		"creation_time", "deletion_time", "scheduled_time",
	}
)

// ReadOpenbNodes reads the node list of Alibaba's cluster trace gpu-v2023
// (openb): sn, cpu_milli, memory_mib, gpu, model. The model is the class of
// the node and of its devices; it can be empty.
func ReadOpenbNodes(r io.Reader, o Options) ([]cluster.Node, Report, error) {
	t, err := openTable(r, o, openbNodeColumns...)
	if err != nil {
		return nil, Report{}, err
	}
	if err := t.known(openbNodeColumns...); err != nil {
		return nil, t.Report, err
	}
	var nodes []cluster.Node
	err = t.things("sn", func() error {
		n, err := t.openbNode()
		if err == nil {
			nodes = append(nodes, n)
		}
		return err
	})
	if err != nil {
		return nil, t.Report, err
	}
	report, err := t.done(len(nodes), "nodes")
	return nodes, report, err
}

func (t *table) openbNode() (cluster.Node, error) {
	n := cluster.Node{Name: t.get("sn"), Class: t.get("model"), Capacity: cluster.Resources{}}
	cpu, err := t.amount("cpu_milli", 1<<40)
	if err != nil {
		return n, err
	}
	mib, err := t.amount("memory_mib", 1<<40)
	if err != nil {
		return n, err
	}
	gpus, err := t.amount("gpu", maxDevices)
	if err != nil {
		return n, err
	}
	n.Capacity[cluster.CPU], n.Capacity[cluster.Memory] = int64(cpu), int64(mib)<<20
	for i := range gpus {
		n.Devices = append(n.Devices, cluster.Device{Name: strconv.Itoa(i), Class: n.Class})
	}
	if gpus > 0 {
		n.Capacity[GPUMilli] = 1000 * int64(gpus)
	}
	return n, nil
}

// TracePod is a pod of a trace: what it asks for, and when.
type TracePod struct {
	Task cluster.Task `json:"task"`
	// Classes are those that its devices must be of; none means any.
	Classes []string `json:"classes,omitempty"`
	QoS     string   `json:"qos,omitempty"`
	Phase   string   `json:"phase"`
	// Created, Scheduled and Deleted count from the trace's zero, in JSON in
	// nanoseconds; Scheduled is nil where the pod never was.
	Created   time.Duration  `json:"created"`
	Scheduled *time.Duration `json:"scheduled,omitempty"`
	Deleted   time.Duration  `json:"deleted"`
	// Line is where the pod stands in its file.
	Line int `json:"-"`
}

// ReadOpenbPods reads the pod list of the same trace. Times are seconds. The
// trace names no programs: pods that ask for the same are of one workload,
// named by what they ask for ("openb-12000m-16384Mi-1x460"). Pods keep the
// order of the file, which need not be that of time.
func ReadOpenbPods(r io.Reader, o Options) ([]TracePod, Report, error) {
	p, report, err := readOpenbPods(r, o)
	if err != nil {
		return nil, report, err
	}
	if p.instant > 0 {
		p.warn("pods deleted when they were created: %d; kept", p.instant)
	}
	if p.early > 0 {
		p.warn("pods created before the pod above them: %d; the order of the file is kept", p.early)
	}
	report, err = p.done(len(p.pods), "pods")
	return p.pods, report, err
}

// openbPods is the pod list as it stands, and what is odd about it.
type openbPods struct {
	*table
	pods           []TracePod
	instant, early int
}

func readOpenbPods(r io.Reader, o Options) (*openbPods, Report, error) {
	t, err := openTable(r, o, openbPodColumns...)
	if err != nil {
		return nil, Report{}, err
	}
	if err := t.known(openbPodColumns...); err != nil {
		return nil, t.Report, err
	}
	l := &openbPods{table: t}
	err = t.things("name", func() error {
		p, err := t.openbPod()
		if err != nil {
			return err
		}
		if p.Deleted == p.Created {
			l.instant++
		}
		if len(l.pods) > 0 && p.Created < l.pods[len(l.pods)-1].Created {
			l.early++
		}
		p.Line = t.lines.number
		l.pods = append(l.pods, p)
		return nil
	})
	return l, t.Report, err
}

func (t *table) openbPod() (TracePod, error) {
	p := TracePod{QoS: t.get("qos"), Phase: t.get("pod_phase")}
	if !slices.Contains([]string{"Pending", "Running", "Succeeded", "Failed", "Unknown"}, p.Phase) {
		return p, badField("pod_phase", p.Phase, "is no phase of a pod")
	}
	var n [4]int
	for i, c := range []struct {
		column string
		most   int
	}{{"cpu_milli", 1 << 40}, {"memory_mib", 1 << 40}, {"num_gpu", maxDevices}, {"gpu_milli", 1000}} {
		var err error
		if n[i], err = t.amount(c.column, c.most); err != nil {
			return p, err
		}
	}
	cpu, mib, gpus, part := n[0], n[1], n[2], n[3]
	switch {
	case gpus == 0 && part != 0:
		return p, badField("gpu_milli", strconv.Itoa(part), "is a part of no GPU: num_gpu is 0")
	case gpus > 0 && part == 0:
		return p, badField("gpu_milli", "0", "is nothing of num_gpu %d", gpus)
	}
	p.Task = cluster.Task{
		ID: cluster.TaskID(t.get("name")), Workload: fmt.Sprintf("openb-%dm-%dMi", cpu, mib),
		Requests: cluster.Resources{cluster.CPU: int64(cpu), cluster.Memory: int64(mib) << 20}, Devices: gpus,
	}
	if gpus > 0 {
		p.Task.Workload += fmt.Sprintf("-%dx%d", gpus, part)
		p.Task.Requests[GPUMilli] = int64(gpus) * int64(part)
	}
	for class := range strings.SplitSeq(t.get("gpu_spec"), "|") {
		if class != "" && !slices.Contains(p.Classes, class) {
			p.Classes = append(p.Classes, class)
		}
	}
	var err error
	if p.Created, err = t.seconds("creation_time"); err != nil {
		return p, err
	}
	if p.Deleted, err = t.seconds("deletion_time"); err != nil {
		return p, err
	}
	if p.Deleted < p.Created {
		return p, badField("deletion_time", t.get("deletion_time"), "is before creation_time %s", t.get("creation_time"))
	}
	if t.get("scheduled_time") != "" {
		at, err := t.seconds("scheduled_time")
		if err != nil {
			return p, err
		}
		if at < p.Created {
			return p, badField("scheduled_time", t.get("scheduled_time"), "is before creation_time %s", t.get("creation_time"))
		}
		p.Scheduled = &at
	} else if p.Phase != "Pending" && p.Phase != "Failed" {
		return p, badField("scheduled_time", "", "is empty, where pod_phase is %s", p.Phase)
	}
	return p, nil
}

// things reads all records of a table of things with unique names. A record
// equal to an earlier one is counted and left out; another one of the same
// name is bad.
func (t *table) things(nameColumn string, read func() error) error {
	names := map[string]bool{}
	for {
		more, err := t.next()
		if err != nil || !more {
			return err
		}
		if t.duplicate(t.raw) {
			continue
		}
		name := t.get(nameColumn)
		switch {
		case name == "":
			err = fmt.Errorf("%s: missing", nameColumn)
		case names[name]:
			err = badField(nameColumn, name, "is listed twice, with different content")
		case t.Read == t.MaxSamples:
			return t.fatal("%w: more than %d records; raise the limit if the file is sound", ErrTooLarge, t.MaxSamples)
		default:
			err = read()
		}
		if err != nil {
			if err := t.bad(t.lines.number, err); err != nil {
				return err
			}
			continue
		}
		names[name] = true
		t.Read++
	}
}

// amount is a whole number from 0 to most that must be there.
func (t *table) amount(column string, most int) (int, error) {
	text := t.get(column)
	n, missing, err := parseCount(text, most)
	if missing {
		err = errors.New("is no number")
	}
	if err != nil {
		return 0, &fieldError{column, text, err}
	}
	return n, nil
}

// seconds is a time of the trace that must be there.
func (t *table) seconds(column string) (time.Duration, error) {
	text := t.get(column)
	at, err := parseSeconds(text)
	if err != nil {
		return 0, &fieldError{column, text, err}
	}
	return at, nil
}

// parseSeconds reads a time since a trace's zero.
func parseSeconds(text string) (time.Duration, error) {
	v, missing, err := parseNumber(text)
	const most = 1e9 // 31 years
	switch {
	case err != nil:
		return 0, err
	case missing:
		return 0, errors.New("is no time in seconds")
	case v < 0 || v > most:
		return 0, fmt.Errorf("is not within 0 to %g seconds", float64(most))
	}
	whole, part := math.Modf(v) // apart, so that whole seconds stay exact
	return time.Duration(whole)*time.Second + time.Duration(part*float64(time.Second)), nil
}

// Trace is nodes and the pods that came to them.
type Trace struct {
	Nodes []cluster.Node `json:"nodes"`
	Pods  []TracePod     `json:"pods,omitempty"`
}

// WriteTrace writes a trace in our own JSON; without pods ReadCluster reads it.
func WriteTrace(w io.Writer, t Trace) error { return writeJSON(w, t) }
