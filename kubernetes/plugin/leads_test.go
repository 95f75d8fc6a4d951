package plugin

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics"

	"github.com/cotenant/cotenant/kubernetes/plugin/config"
)

// A registry that holds, or lacks, what a scheduler says of its leases.
func elections(held ...float64) metrics.KubeRegistry {
	r := metrics.NewKubeRegistry()
	if len(held) == 0 {
		return r
	}
	gauge := metrics.NewGaugeVec(&metrics.GaugeOpts{Name: leaderGauge, Help: "As kube-scheduler's."}, []string{"name"})
	r.MustRegister(gauge)
	for i, v := range held {
		gauge.WithLabelValues([]string{"kube-scheduler", "another"}[i]).Set(v)
	}
	return r
}

func TestLeads(t *testing.T) {
	for _, c := range []struct {
		held []float64
		want bool
	}{
		{nil, true}, // nothing is elected
		{[]float64{0}, false},
		{[]float64{1}, true},
		{[]float64{0, 1}, true},
	} {
		if got := leads(elections(c.held...)); got != c.want {
			t.Errorf("leases %v: leads is %v", c.held, got)
		}
	}
}

// Gangs in part are the leader's work: a replica that stands by asks and evicts
// nothing, and does as soon as it leads what was left.
func TestWhoStandsByLeavesGangsAlone(t *testing.T) {
	p := &Plugin{core: &core{args: &config.CotenantArgs{WaitTimeout: &metav1.Duration{Duration: time.Minute}}, waiting: newWaiting()}}
	one := pod("g-0", "red", gang("g", 2))
	one.Spec.NodeName = "n0"
	p.waiting.ran(one)
	begin := time.Now()
	look := func(after time.Duration, held float64) []partialGang {
		p.leases = elections(held)
		return p.partialGangs(begin.Add(after))
	}
	for after := time.Duration(0); after < 3*time.Minute; after += time.Second {
		if list := look(after, 0); len(list) != 0 {
			t.Fatalf("standing by, after %v it looks after %v", after, list)
		}
	}
	for after := 3 * time.Minute; ; after += time.Second {
		list := look(after, 1)
		if len(list) == 1 && list[0].late && len(list[0].pods) == 1 {
			break
		}
		if after > 5*time.Minute {
			t.Fatalf("leading, it looks after %v", list)
		}
	}
}
