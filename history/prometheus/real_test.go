package prometheus_test

import (
	"context"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/history/prometheus"
)

// past is a history to hand to a real Prometheus: a value every 30 seconds.
type past struct {
	from  time.Time
	steps int
	text  strings.Builder
	typed map[string]bool
}

const scrape = 30 * time.Second

// series adds one; value says what it is at a step, and whether it is there.
func (p *past) series(name, kind, labels string, value func(k int) (float64, bool)) {
	family := strings.TrimSuffix(name, "_total")
	if !p.typed[family] {
		p.typed[family] = true
		fmt.Fprintf(&p.text, "# TYPE %s %s\n", family, kind)
	}
	for k := range p.steps {
		v, ok := value(k)
		if !ok {
			continue
		}
		text := fmt.Sprint(v)
		if math.IsInf(v, 1) {
			text = "+Inf"
		}
		fmt.Fprintf(&p.text, "%s{%s} %s %d\n", name, labels, text, p.from.Add(time.Duration(k)*scrape).Unix())
	}
}

// between is 1 from one step to another.
func between(first, last int) func(int) (float64, bool) {
	return func(k int) (float64, bool) { return 1, k >= first && k < last }
}

// except leaves out the steps at which nobody looked.
func except(first, last int, value func(int) (float64, bool)) func(int) (float64, bool) {
	return func(k int) (float64, bool) {
		v, ok := value(k)
		return v, ok && (k < first || k >= last)
	}
}

// counter grows by rate(k) a second.
func counter(first, last int, rate func(k int) float64) func(int) (float64, bool) {
	total := 0.0
	return func(k int) (float64, bool) {
		if k < first || k >= last {
			return 0, false
		}
		total += rate(k) * scrape.Seconds()
		return total, true
	}
}

// serve hands the history to a real Prometheus and starts it.
func (p *past) serve(t *testing.T) string {
	t.Helper()
	for _, program := range []string{"prometheus", "promtool"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is absent (Debian's package prometheus has it): %v", program, err)
		}
	}
	dir := t.TempDir()
	file, data := filepath.Join(dir, "metrics"), filepath.Join(dir, "data")
	if err := os.WriteFile(file, []byte(p.text.String()+"# EOF\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("promtool", "tsdb", "create-blocks-from", "openmetrics", file, data).CombinedOutput(); err != nil {
		t.Fatalf("promtool: %v\n%s", err, out)
	}
	empty := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(empty, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	// What is handed over has no marks of when series end; a short look back ends
	// them instead.
	cmd := exec.CommandContext(ctx, "prometheus", "--config.file="+empty, "--storage.tsdb.path="+data, "--storage.tsdb.retention.time=10y",
		"--web.listen-address="+address, "--query.lookback-delta=29s", "--log.level=error")
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
	})
	server := "http://" + address
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		res, err := http.Get(server + "/-/ready")
		if err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return server
			}
		}
		if time.Now().After(end) {
			t.Fatalf("prometheus is not ready after 30 s: %v\n%s", err, log.String())
		}
	}
}

// twoHours is a cluster over two hours: on n1 redis, and from minute 60 on nginx,
// too; on n2 another nginx, and a job that has ended. Each node has its daemon.
// From minute 100 to 104 nobody looked.
func twoHours(from time.Time, exported string) *past {
	p := &past{from: from, steps: 240, typed: map[string]bool{}}
	blind := func(v func(int) (float64, bool)) func(int) (float64, bool) { return except(200, 208, v) }
	ksm := ""
	if exported != "" {
		ksm = `,namespace="monitoring",pod="kube-state-metrics-0"`
	}
	of := func(namespace, pod string) string {
		return fmt.Sprintf(`%snamespace=%q,%spod=%q`, exported, namespace, exported, pod)
	}
	pods := []struct {
		namespace, name, node, kind, image, phase string
		first, last                               int
	}{
		{"shop", "redis-0", "n1", "StatefulSet", "registry:5000/redis:7", "Running", 0, 240},
		{"shop", "web-a", "n1", "ReplicaSet", "nginx@sha256:00", "Running", 120, 240},
		{"shop", "web-b", "n2", "ReplicaSet", "nginx:1", "Running", 0, 240},
		{"shop", "once", "n2", "Job", "busybox", "Succeeded", 0, 240},
		{"kube-system", "proxy-1", "n1", "DaemonSet", "kube-proxy", "Running", 0, 240},
		{"kube-system", "proxy-2", "n2", "DaemonSet", "kube-proxy", "Running", 0, 240},
	}
	for _, pod := range pods {
		p.series("kube_pod_info", "gauge", of(pod.namespace, pod.name)+fmt.Sprintf(`,node=%q,uid="u-%s",created_by_kind=%q`, pod.node, pod.name, pod.kind)+ksm,
			blind(between(pod.first, pod.last)))
	}
	for _, pod := range pods {
		for _, phase := range []string{"Pending", "Running", "Succeeded"} {
			p.series("kube_pod_status_phase", "gauge", of(pod.namespace, pod.name)+fmt.Sprintf(`,phase=%q`, phase)+ksm, blind(func(k int) (float64, bool) {
				is := phase == pod.phase
				if pod.phase == "Running" && k < pod.first+4 && pod.first > 0 { // two minutes to pull its image
					is = phase == "Pending"
				}
				v := 0.0
				if is {
					v = 1
				}
				return v, k >= pod.first && k < pod.last
			}))
		}
	}
	for _, pod := range pods {
		p.series("kube_pod_container_info", "gauge", of(pod.namespace, pod.name)+fmt.Sprintf(`,container="c",image=%q`, pod.image)+ksm, blind(between(pod.first, pod.last)))
	}
	for _, node := range []string{"n1", "n2"} {
		p.series("kube_node_labels", "gauge", fmt.Sprintf(`node=%q,label_node_kubernetes_io_instance_type="c5.xlarge"`, node)+ksm, blind(between(0, 240)))
	}
	p.series("ops_total", "counter", of("shop", "redis-0"), counter(0, 240, func(k int) float64 {
		if k > 120 {
			return 80
		}
		return 100
	}))
	p.series("requests_total", "counter", of("shop", "web-a"), counter(120, 240, func(int) float64 { return 45 }))
	p.series("requests_total", "counter", of("shop", "web-b"), counter(0, 240, func(int) float64 { return 60 }))
	p.series("latency_seconds", "gauge", of("shop", "web-b"), func(k int) (float64, bool) {
		switch k % 10 {
		case 3:
			return math.NaN(), true
		case 7:
			return math.Inf(1), true
		}
		return 0.25, true
	})
	p.series("DCGM_FI_DEV_GPU_UTIL", "gauge", of("shop", "redis-0"), func(k int) (float64, bool) { return 9223372036854775794, true })
	return p
}

func config(t testing.TB, text string) prometheus.Config {
	t.Helper()
	c, err := prometheus.ReadConfig([]byte(text), "queries.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// samplesOf reads all of a span, piece by piece.
func samplesOf(t *testing.T, c prometheus.Config, s prometheus.Span) (samples []history.Sample, counts prometheus.Counts, warnings []string) {
	t.Helper()
	client, err := prometheus.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, piece := range s.Aligned(c).Pieces(c) {
		more, n, warned, err := prometheus.Samples(t.Context(), client, c, piece)
		if err != nil {
			t.Fatal(err)
		}
		samples, warnings = append(samples, more...), append(warnings, warned...)
		counts.Add(n)
	}
	return samples, counts, warnings
}

// What a real Prometheus tells of two hours becomes samples: alone, together, and
// nothing of what is not known.
func TestARealPrometheus(t *testing.T) {
	from := time.Now().Add(-5 * time.Hour).Truncate(time.Hour).UTC()
	for _, exported := range []string{"", "exported_"} {
		t.Run(exported, func(t *testing.T) {
			server := twoHours(from, exported).serve(t)
			by := "by (" + exported + "namespace, " + exported + "pod)"
			c := config(t, fmt.Sprintf(`
server: %s
workloads:
- {name: redis, rate: 'sum %s (rate(ops_total[1m]))'}
- {name: nginx, rate: 'sum %s (rate(requests_total[1m]))', p99: 'max %s (latency_seconds)'}
`, server, by, by, by))
			span := prometheus.Span{From: from, To: from.Add(2 * time.Hour)}
			samples, counts, warnings := samplesOf(t, c, span)
			if len(warnings) > 0 {
				t.Error(warnings)
			}
			cells := map[string]history.Sample{}
			for _, s := range history.Joined(samples) {
				if s.Class != "c5.xlarge" || s.Source != "prometheus" {
					t.Errorf("class %q, source %q", s.Class, s.Source)
				}
				cells[s.Colocation.Key()+" "+s.Workload+" "+string(s.Metric)] = s
			}
			for cell, want := range map[string][2]float64{
				"redis redis rate": {100, 100}, "nginx nginx rate": {60, 60}, "nginx nginx p99": {0.25, 0.25},
				"nginx+redis redis rate": {80, 100}, "nginx+redis nginx rate": {45, 60},
			} {
				s, ok := cells[cell]
				if !ok || math.Abs(s.Value-want[0]) > 0.01*want[0] || math.Abs(s.Alone-want[1]) > 0.01*want[1] {
					t.Errorf("%s: %g, alone %g; want %g and %g", cell, s.Value, s.Alone, want[0], want[1])
				}
				delete(cells, cell)
			}
			for cell := range cells {
				t.Errorf("%s: nobody ran so", cell)
			}
			if counts.Blind != 8 || counts.NotFinite == 0 || counts.Unsettled == 0 || counts.Unplaced != 0 {
				t.Errorf("%+v", counts)
			}
			for _, s := range samples {
				// The pods settle for five minutes after one came, and after nobody looked.
				for _, minutes := range [][2]int{{0, 5}, {60, 67}, {100, 109}} {
					a, b := from.Add(time.Duration(minutes[0])*time.Minute), from.Add(time.Duration(minutes[1])*time.Minute)
					if minutes[0] == 60 && !strings.Contains(s.Colocation.Key(), "redis") {
						continue // on the other node nothing changed
					}
					if s.Start.Before(b) && s.End.After(a) {
						t.Errorf("a sample from %s to %s, though the pods had not settled", s.Start, s.End)
					}
				}
			}
		})
	}
}

// How a span is cut, and what the server can bear at a time, changes nothing.
func TestPiecesDoNotMatter(t *testing.T) {
	from := time.Now().Add(-5 * time.Hour).Truncate(time.Hour).UTC()
	c := config(t, `
server: `+twoHours(from, "").serve(t)+`
workloads: [{name: redis, rate: 'rate(ops_total[1m])'}]
`)
	client, err := prometheus.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	read := func(length time.Duration) string {
		var out strings.Builder
		for at := from; at.Before(from.Add(2 * time.Hour)); at = at.Add(length) {
			samples, _, _, err := prometheus.Samples(t.Context(), client, c, prometheus.Span{From: at, To: at.Add(length)})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range samples {
				fmt.Fprintf(&out, "%s %s %s %.6g\n", s.Start, s.Colocation.Key(), s.Workload, s.Value)
			}
		}
		return out.String()
	}
	whole := read(2 * time.Hour)
	if parts := read(20 * time.Minute); parts != whole || strings.Count(whole, "\n") < 10 {
		t.Errorf("in one piece:\n%s\nin six:\n%s", whole, parts)
	}
}

func TestARealPrometheusRefuses(t *testing.T) {
	from := time.Now().Add(-5 * time.Hour).Truncate(time.Hour).UTC()
	p := twoHours(from, "")
	p.series("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge", `GPU_I_ID="3",namespace="shop",pod="web-b"`, between(0, 240))
	p.series("ops_by_shard_total", "counter", `shard="a",namespace="shop",pod="redis-0"`, counter(0, 240, func(int) float64 { return 1 }))
	p.series("ops_by_shard_total", "counter", `shard="b",namespace="shop",pod="redis-0"`, counter(0, 240, func(int) float64 { return 1 }))
	server := p.serve(t)
	for query, want := range map[string]string{
		"rate(ops_total[1m]":           "bad_data: ",
		"sum(ops_total)":               "names no pod: aggregate by (namespace, pod)",
		"rate(ops_by_shard_total[1m])": `two series of pod shop/redis-0`,
		"DCGM_FI_DEV_GPU_UTIL":         "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
	} {
		c := config(t, fmt.Sprintf("server: %s\nworkloads: [{name: redis, rate: '%s'}]\n", server, query))
		client, err := prometheus.Open(c)
		if err != nil {
			t.Fatal(err)
		}
		_, _, _, err = prometheus.Samples(t.Context(), client, c, prometheus.Span{From: from, To: from.Add(time.Hour)})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "workloads[0] (redis): rate: ") {
			t.Errorf("%s: %v; want %q", query, err, want)
		}
	}
}

// DCGM's word for "not available" is a number, and no rate.
func TestNotAvailableIsNoValue(t *testing.T) {
	from := time.Now().Add(-5 * time.Hour).Truncate(time.Hour).UTC()
	c := config(t, `
server: `+twoHours(from, "").serve(t)+`
workloads: [{name: redis, rate: DCGM_FI_DEV_GPU_UTIL}]
`)
	samples, counts, warnings := samplesOf(t, c, prometheus.Span{From: from, To: from.Add(time.Hour)})
	if len(samples) > 0 || counts.NotAvailable == 0 || len(warnings) != 1 || !strings.Contains(warnings[0], "how busy") {
		t.Errorf("%v, %+v, %q", samples, counts, warnings)
	}
}
