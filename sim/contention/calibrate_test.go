package contention

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// speedsFile holds speeds measured by others, for measuring here only.
const speedsFile = "../../../shared/data/dl2/config_speed.txt"

// run is one measurement: a job alone, with the mean CPU use of its tasks.
type run struct {
	ps, workers int
	seconds     float64 // of an iteration
	workerCPU   float64 // threads in use
	speeds      []float64
}

var speedLine = regexp.MustCompile(`^\('([^']+)', 'dist_sync', (\d+), (\d+), (\d+), \[([^\]]*)\], \[([^\]]*)\], \[([^\]]*)\]\)$`)

// readRuns gives the measured runs by workload; those with a speed of 0 were
// not measured.
func readRuns(t *testing.T) map[string][]run {
	data, err := os.ReadFile(speedsFile)
	if err != nil {
		t.Skipf("../shared/data/dl2/config_speed.txt is absent: %v", err)
	}
	out := map[string][]run{}
	for i, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		f := speedLine.FindStringSubmatch(strings.TrimSpace(line))
		if f == nil {
			t.Fatalf("line %d: %q", i+1, line)
		}
		whole := func(s string) int { n, _ := strconv.Atoi(s); return n }
		floats := func(s string) (out []float64) {
			for _, x := range strings.Split(s, ",") {
				v, err := strconv.ParseFloat(strings.TrimSpace(x), 64)
				if err != nil {
					t.Fatalf("line %d: %v", i+1, err)
				}
				out = append(out, v)
			}
			return out
		}
		r := run{ps: whole(f[3]), workers: whole(f[4]), speeds: floats(f[5])}
		if slices.Min(r.speeds) <= 0 {
			continue
		}
		// The global batch is divided: 32 over 5 workers is 7, 7, 6, 6, 6, and the
		// speeds differ by that much.
		r.seconds = float64(whole(f[2])) / sum(r.speeds)
		if cpu := floats(f[7]); slices.Min(cpu) > 0 {
			r.workerCPU = sum(cpu) / float64(len(cpu))
		}
		name := f[1] + "/" + f[2]
		out[name] = append(out[name], r)
	}
	return out
}

func sum(xs []float64) (s float64) {
	for _, x := range xs {
		s += x
	}
	return s
}

// leastSquares solves min |A x - b| over x >= 0 by coordinate descent; rows
// are few columns wide.
func leastSquares(a [][]float64, b []float64) []float64 {
	n := len(a[0])
	q, c, x := make([][]float64, n), make([]float64, n), make([]float64, n)
	for i := range n {
		q[i] = make([]float64, n)
		for r := range a {
			c[i] += a[r][i] * b[r]
			for j := range n {
				q[i][j] += a[r][i] * a[r][j]
			}
		}
	}
	for range 200000 {
		moved := 0.0
		for i := range n {
			if q[i][i] == 0 {
				continue
			}
			g := c[i]
			for j := range n {
				g -= q[i][j] * x[j]
			}
			next := max(0, x[i]+g/q[i][i])
			moved = max(moved, math.Abs(next-x[i]))
			x[i] = next
		}
		if moved < 1e-12 {
			break
		}
	}
	return x
}

// apart is a job with every task on a node of its own: how the speeds are
// taken to be measured.
func (m *model) apart(w *Workload, workers, ps int) *job {
	j := &job{workload: w, workers: workers, ps: ps}
	for i := range workers + ps {
		p := &part{job: j, node: i}
		if i < workers {
			p.workers = 1
		} else {
			p.ps = 1
		}
		j.parts = append(j.parts, p)
	}
	m.place(j)
	return j
}

// fit finds a workload's times by least squares on relative errors, given what
// is known of it (batch, gradients, sample sizes).
func fit(m *model, w Workload, runs []run) Workload {
	w.Device, w.Fixed, w.PerWorker, w.WorkerCPU, w.WorkerCPUFixed, w.UpdateCPU, w.AggregateCPU = 0, 0, 0, 0, 0, 0, 0
	var a, use [][]float64
	var b, used []float64
	for _, r := range runs {
		n, k := float64(r.workers), float64(r.ps)
		samples := float64((w.Batch + r.workers - 1) / r.workers)
		rest := r.seconds - m.apart(&w, r.workers, r.ps).base // network, PCIe, disk
		t := r.seconds
		a = append(a, []float64{samples / t, 1 / t, 1 / k / t, n / k / t, n / t})
		b = append(b, rest/t)
		if r.workerCPU > 0 {
			use = append(use, []float64{samples / t, 1 / t})
			used = append(used, r.workerCPU)
		}
	}
	x := leastSquares(a, b)
	cpu := leastSquares(use, used)
	// What a worker computes on processors is part of its time, and no more.
	w.WorkerCPU = min(cpu[0], x[0]*w.WorkerCPUs)
	w.WorkerCPUFixed = min(cpu[1], x[1]*w.WorkerCPUs)
	w.Device = x[0] - w.WorkerCPU/w.WorkerCPUs
	w.Fixed = x[1] - w.WorkerCPUFixed/w.WorkerCPUs
	w.UpdateCPU, w.AggregateCPU, w.PerWorker = x[2]*w.PSCPUs, x[3]*w.PSCPUs, x[4]
	for _, v := range []*float64{&w.Device, &w.Fixed, &w.PerWorker, &w.WorkerCPU, &w.WorkerCPUFixed, &w.UpdateCPU, &w.AggregateCPU} {
		*v, _ = strconv.ParseFloat(fmt.Sprintf("%.4g", max(0, *v)), 64)
	}
	return w
}

// TestCalibrate fits the workloads anew, prints the error of the fit, and
// holds the shipped constants against it:
//
//	go test ./sim/contention -run Calibrate -v
func TestCalibrate(t *testing.T) {
	runs := readRuns(t)
	m, err := newModel(Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%-28s %5s %8s %8s %8s %20s", "workload", "runs", "mean", "median", "p95", "mean to 4 and 4")
	for i := range m.Workloads {
		w := fit(m, m.Workloads[i], runs[m.Workloads[i].Name])
		var errs, small []float64
		for _, r := range runs[w.Name] {
			off := math.Abs(r.seconds/m.apart(&w, r.workers, r.ps).base - 1)
			errs = append(errs, off)
			if r.workers <= defaultTasks && r.ps <= defaultTasks {
				small = append(small, off)
			}
		}
		slices.Sort(errs)
		t.Logf("%-28s %5d %7.1f%% %7.1f%% %7.1f%% %8.1f%% of %2d runs", w.Name, len(errs), 100*sum(errs)/float64(len(errs)),
			100*errs[len(errs)/2], 100*errs[len(errs)*95/100], 100*sum(small)/float64(len(small)), len(small))
		if w != m.Workloads[i] {
			fitted, _ := json.MarshalIndent(w, "    ", "  ")
			t.Errorf("constants.json differs from the fit, which gives\n    %s,", fitted)
		}
	}
}
