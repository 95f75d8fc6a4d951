package plugin

import (
	"testing"

	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/cotenant/cotenant/kubernetes/plugin/plan"
)

// Alerts look at what grows, which a counter does not that comes with its first
// count.
func TestCountersAreThereFromTheStart(t *testing.T) {
	registerMetrics()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, family := range families {
		for _, m := range family.Metric {
			for _, label := range m.Label {
				there[family.GetName()+" "+label.GetValue()] = true
			}
		}
	}
	want := map[string][]string{
		"cotenant_plans_total":   {"first", "stale"},
		"cotenant_gangs_total":   {"permitted", "rejected", "evicted"},
		"cotenant_reloads_total": {"loaded", "refused"},
	}
	for _, code := range plan.Codes {
		want["cotenant_fallbacks_total"] = append(want["cotenant_fallbacks_total"], string(code))
	}
	for name, labels := range want {
		for _, label := range labels {
			if !there[name+" "+label] {
				t.Errorf("%s of %s is not there", name, label)
			}
		}
	}
}
