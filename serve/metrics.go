package serve

import (
	"context"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// metrics are what /metrics shows; docs/glossary.md explains each.
type metrics struct {
	registry       *prometheus.Registry
	requests       *prometheus.HistogramVec
	decision       prometheus.Histogram
	taken, refused prometheus.Counter
	changes        prometheus.Counter
}

// times from a tenth of a millisecond to a few seconds.
var times = prometheus.ExponentialBuckets(1e-4, 2.5, 12)

func newMetrics(c *Coordinator) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "cotenant_balance_request_seconds", Help: "Time to answer a request, by method and code.", Buckets: times,
		}, []string{"method", "code"}),
		decision: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "cotenant_balance_decision_seconds", Help: "Time from a read report to its shares.", Buckets: times,
		}),
		changes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "cotenant_balance_share_changes_total", Help: "Vectors handed out that differ from the ones before.",
		}),
	}
	reports := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "cotenant_balance_reports_total", Help: "Workers' reports, by what became of them.",
	}, []string{"outcome"})
	m.taken, m.refused = reports.WithLabelValues("taken"), reports.WithLabelValues("refused")
	m.registry.MustRegister(m.requests, m.decision, m.changes, reports, jobGauges{c},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// intercept times every call.
func (m *metrics) intercept(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		begun := time.Now()
		answer, err := next(ctx, r)
		code := "ok"
		if err != nil {
			code = connect.CodeOf(err).String()
		}
		m.requests.WithLabelValues(method(r.Spec().Procedure), code).Observe(time.Since(begun).Seconds())
		return answer, err
	}
}

// method is the last part of "/package.Service/Method".
func method(procedure string) string {
	for i := len(procedure) - 1; i >= 0; i-- {
		if procedure[i] == '/' {
			return procedure[i+1:]
		}
	}
	return procedure
}

// jobGauges look at the jobs when they are asked, so that what is closed is
// gone from the next answer.
type jobGauges struct{ c *Coordinator }

var (
	jobsGauge      = prometheus.NewDesc("cotenant_balance_jobs", "Open jobs.", nil, nil)
	workersGauge   = prometheus.NewDesc("cotenant_balance_workers", "Workers of a job.", []string{"job"}, nil)
	iterationGauge = prometheus.NewDesc("cotenant_balance_reported_iteration", "Last iteration of a job that was reported.", []string{"job"}, nil)
	slowestGauge   = prometheus.NewDesc("cotenant_balance_slowest_compute_seconds", "Computing time of a job's slowest worker, last measured.", []string{"job"}, nil)
	meanGauge      = prometheus.NewDesc("cotenant_balance_mean_compute_seconds", "Mean computing time of a job's workers, last measured.", []string{"job"}, nil)
)

// Describe is part of prometheus.Collector.
func (jobGauges) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{jobsGauge, workersGauge, iterationGauge, slowestGauge, meanGauge} {
		out <- d
	}
}

// Collect is part of prometheus.Collector.
func (g jobGauges) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	open := 0
	for _, j := range g.c.all() {
		j.mu.Lock()
		if j.gone || j.balancer == nil {
			j.mu.Unlock()
			continue
		}
		workers, reported, slowest, sum, known := len(j.workers), j.reported, 0.0, 0.0, 0
		for _, s := range j.seconds {
			if s > 0 {
				slowest, sum, known = max(slowest, s), sum+s, known+1
			}
		}
		j.mu.Unlock()
		open++
		gauge(workersGauge, float64(workers), j.name)
		gauge(iterationGauge, float64(reported), j.name)
		if known > 0 {
			gauge(slowestGauge, slowest, j.name)
			gauge(meanGauge, sum/float64(known), j.name)
		}
	}
	gauge(jobsGauge, float64(open))
}
