package bench

import (
	"math"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

const page = `
# TYPE waits histogram
waits_bucket{attempts="1",le="1"} 50
waits_bucket{attempts="1",le="2"} 90
waits_bucket{attempts="1",le="+Inf"} 90
waits_sum{attempts="1"} 1
waits_count{attempts="1"} 90
waits_bucket{attempts="2",le="1"} 0
waits_bucket{attempts="2",le="2"} 5
waits_bucket{attempts="2",le="+Inf"} 10
waits_sum{attempts="2"} 1
waits_count{attempts="2"} 10
# TYPE none histogram
none_bucket{le="1"} 0
none_bucket{le="+Inf"} 0
none_sum 0
none_count 0
# TYPE tries_total counter
tries_total{profile="a",result="scheduled"} 3
tries_total{profile="b",result="scheduled"} 4
tries_total{profile="b",result="error"} 1
`

func families(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	all, err := parser.TextToMetricFamilies(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestQuantile(t *testing.T) {
	all := families(t)
	for _, c := range []struct {
		name    string
		q, want float64
	}{
		{"waits", .25, .5},
		{"waits", .5, 1},
		{"waits", .725, 1.5},
		{"waits", .95, 2},
		{"waits", .99, 2}, // above all finite buckets: the last end
		{"none", .99, 0},
		{"absent", .99, 0},
	} {
		if got := quantile(all[c.name], c.q); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("the %g-quantile of %s is %g, want %g", c.q, c.name, got, c.want)
		}
	}
}

func TestSumsByLabelAndPrefix(t *testing.T) {
	all := families(t)
	if got := ByLabel(all["tries_total"], "result"); got["scheduled"] != 7 || got["error"] != 1 || len(got) != 2 {
		t.Errorf("by result: %v", got)
	}
	if got := totals(all, "tries_"); got["tries_total"] != 8 || len(got) != 1 {
		t.Errorf("totals: %v", got)
	}
}
