package report_test

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/report"
)

func ExampleWrite() {
	m := report.Measure([]history.Sample{{
		Colocation: cluster.Colocation{"redis": 1, "nginx": 1},
		Workload:   "redis", Metric: history.Rate, Value: 61e3, Alone: 80e3,
	}})
	m.Machine = "2 cores, 8 GB"
	var page bytes.Buffer
	if err := report.Write(&page, report.Data{Title: "Two services", Measured: m}); err != nil {
		fmt.Println(err)
	}
	fmt.Println(m.Classes[0].Pairs[1][0].Value)
	fmt.Println(strings.Contains(page.String(), "redis beside nginx: performance 0.76"))
	// Output:
	// 0.7625
	// true
}
