package plugin

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/cotenant/cotenant/kubernetes/plugin/plan"
)

var (
	decisions = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "cotenant_pods_decided_total", StabilityLevel: metrics.ALPHA,
		Help: "Pods that got a node, by mode and by how it compares with their plan: planned (there), elsewhere, none (no plan).",
	}, []string{"mode", "outcome"})
	elsewhere = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name: "cotenant_pods_elsewhere_ratio", StabilityLevel: metrics.ALPHA,
		Help: "Share of pods with a plan that went to another node than planned, since the start, by mode.",
	}, []string{"mode"})
	fallbacks = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "cotenant_fallbacks_total", StabilityLevel: metrics.ALPHA,
		Help: "Pods left to the scheduler's own scores, by reason.",
	}, []string{"reason"})
	plansMade = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "cotenant_plans_total", StabilityLevel: metrics.ALPHA,
		Help: "Plans made, by why: first (pods without one), stale (the cluster changed under the last one).",
	}, []string{"why"})
	planSeconds = metrics.NewHistogram(&metrics.HistogramOpts{
		Name: "cotenant_plan_duration_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "How long a plan took, with what the filters were asked for it.",
		Buckets: metrics.ExponentialBuckets(0.0005, 2, 16),
	})
	planPods = metrics.NewHistogram(&metrics.HistogramOpts{
		Name: "cotenant_plan_pods", StabilityLevel: metrics.ALPHA,
		Help:    "Pods in a plan.",
		Buckets: metrics.ExponentialBuckets(1, 2, 13),
	})
	gangsEnded = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "cotenant_gangs_total", StabilityLevel: metrics.ALPHA,
		Help: "Attempts to place gangs, by how they ended: permitted, rejected, evicted.",
	}, []string{"end"})
	bindRetries = metrics.NewCounter(&metrics.CounterOpts{
		Name: "cotenant_bind_retries_total", StabilityLevel: metrics.ALPHA,
		Help: "Bindings tried again on the node that the pod holds.",
	})
	oddScores = metrics.NewCounter(&metrics.CounterOpts{
		Name: "cotenant_scores_replaced_total", StabilityLevel: metrics.ALPHA,
		Help: "Scores that were no number in 0 to 100 and became the neutral one.",
	})
	reloads = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "cotenant_reloads_total", StabilityLevel: metrics.ALPHA,
		Help: "Changed model and policy files, by outcome: loaded, refused (the old ones stay).",
	}, []string{"outcome"})
	version = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name: "cotenant_version_info", StabilityLevel: metrics.ALPHA,
		Help: "1 for the version of the model and policy files in use, by profile.",
	}, []string{"profile", "version"})

	registerOnce sync.Once
)

// registerMetrics puts them beside kube-scheduler's own, once for all profiles.
func registerMetrics() {
	registerOnce.Do(func() {
		legacyregistry.MustRegister(decisions, elsewhere, fallbacks, plansMade, planSeconds, planPods, gangsEnded, bindRetries, oddScores, reloads, version)
		// A rate over a counter that begins with its first count does not see that one.
		for _, code := range plan.Codes {
			fallbacks.WithLabelValues(string(code))
		}
		for counter, labels := range map[*metrics.CounterVec][]string{
			plansMade:  {"first", "stale"},
			gangsEnded: {"permitted", "rejected", "evicted"},
			reloads:    {"loaded", "refused"},
		} {
			for _, label := range labels {
				counter.WithLabelValues(label)
			}
		}
	})
}

var (
	versionMu sync.Mutex
	versions  = map[string]string{}
)

func noteVersion(profile, now string) {
	versionMu.Lock()
	defer versionMu.Unlock()
	if old, ok := versions[profile]; ok {
		version.DeleteLabelValues(profile, old)
	}
	versions[profile] = now
	version.WithLabelValues(profile, now).Set(1)
}

var (
	tallyMu sync.Mutex
	tally   = map[string][2]float64{} // by mode: pods with a plan, of them elsewhere
)

// decided counts a pod that got a node.
func decided(mode, planned, node string) {
	outcome := "planned"
	switch planned {
	case "":
		outcome = "none"
	case node:
	default:
		outcome = "elsewhere"
	}
	decisions.WithLabelValues(mode, outcome).Inc()
	if planned == "" {
		return
	}
	tallyMu.Lock()
	defer tallyMu.Unlock()
	t := tally[mode]
	t[0]++
	if outcome == "elsewhere" {
		t[1]++
	}
	tally[mode] = t
	elsewhere.WithLabelValues(mode).Set(t[1] / t[0])
}
