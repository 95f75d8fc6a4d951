package prometheus_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/history/prometheus"
)

func TestBadConfigurations(t *testing.T) {
	const good = "workloads: [{name: a, rate: x}]\n"
	for text, want := range map[string]string{
		"":                                  "it is empty",
		"workloads: []":                     "workloads: none",
		"- a":                               "line 1",
		good + "pods: x\n":                  `line 2: unknown field "pods"`,
		good + "variation: much\n":          `line 2: variation: "much", where a number belongs`,
		"workloads: 3\n":                    `line 1: workloads: "3", where a list belongs`,
		good + "step: fast\n":               `line 2: "fast" is no duration`,
		good + "step: 500ms\n":              "step: 500ms; give whole seconds",
		good + "window: 45s\n":              "window: 45s is no multiple of step 30s",
		good + "settle: 1s\n":               "settle: 1s is less than step 30s",
		good + "variation: -1\n":            "variation: -1",
		good + "server: localhost:9090\n":   `server: "localhost:9090" is no address`,
		good + "background: ['(']\n":        "background[0]",
		good + "---\n" + good:               "more than one document",
		"workloads: [{rate: x}]":            "workloads[0]: name: missing",
		"workloads: [{name: a}]":            "workloads[0] (a): rate: missing",
		"workloads: [{name: a*2, rate: x}]": "rename the workload",
		"workloads: [{name: a, rate: x}, {name: a, rate: y}]": "workloads[1] (a): name: it comes twice",
		"workloads: [{name: a, rate: x, pods: '['}]":          "workloads[0] (a): pods:",
		"workloads: [{name: a, rate: x, alone: 0}]":           "workloads[0] (a): alone: 0",
		"workloads: [{name: a, rate: x, alone: {c5: .nan}}]":  `alone: NaN on class "c5"`,
	} {
		_, err := prometheus.ReadConfig([]byte(text), "queries.yaml")
		if err == nil || !strings.HasPrefix(err.Error(), "queries.yaml: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
	c, err := prometheus.ReadConfig([]byte(good+"settle: 2m\nstep: 10s\nwindow: 1d\n"), "queries.yaml")
	if err != nil || time.Duration(c.Window) != 24*time.Hour || *c.Variation != 0.5 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestBadAnswers(t *testing.T) {
	for text, want := range map[string]string{
		"<html>": "not Prometheus' JSON",
		`{}`:     "status",
		`{"status":"success","data":{"resultType":"vector","result":[]}}`: "where a matrix belongs",
		`{"status":"error","errorType":"bad_data","error":"parse"}`:       "bad_data: parse",
		matrix(`{"metric":{"a":"b"},"histograms":[[1,{}]]}`):              `result[0]: {a="b"}: native histograms`,
		matrix(`{"metric":{},"values":[[1,2]]}`):                          "result[0].values[0]: value 2: no string",
		matrix(`{"metric":{},"values":[[1,"two"]]}`):                      `value "two": no number`,
		matrix(`{"metric":{},"values":[["1","2"]]}`):                      "no number of seconds",
		matrix(`{"metric":{},"values":[[1e99,"2"]]}`):                     "no number of seconds",
		matrix(`{"metric":{},"values":[[2,"1"],[2,"1"]]}`):                "values[1]: time 1970-01-01T00:00:02Z is not after",
	} {
		if _, _, err := prometheus.ParseMatrix(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
	series, warnings, err := prometheus.ParseMatrix(strings.NewReader(
		`{"status":"success","warnings":["half"],"data":{"resultType":"matrix","result":[{"metric":{"pod":"p"},"values":[[1.5,"NaN"],[2,"+Inf"],[3,"9223372036854775794"]]}]}}`))
	if err != nil || len(series) != 1 || !math.IsNaN(series[0].Values[0]) || !math.IsInf(series[0].Values[1], 1) || series[0].Times[0].UnixMilli() != 1500 || len(warnings) != 1 {
		t.Errorf("%+v, %q, %v", series, warnings, err)
	}
}

func matrix(series string) string {
	return `{"status":"success","data":{"resultType":"matrix","result":[` + series + `]}}`
}

func FuzzParseMatrix(f *testing.F) {
	f.Add(matrix(`{"metric":{"pod":"p"},"values":[[1,"2"],[2,"NaN"]]}`))
	f.Add(`{"status":"error","errorType":"timeout"}`)
	f.Add(matrix(`{"metric":null,"values":[[null,null]]}`))
	f.Fuzz(func(t *testing.T, text string) {
		series, _, err := prometheus.ParseMatrix(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, s := range series {
			if len(s.Times) != len(s.Values) {
				t.Error("times and values differ in number")
			}
		}
	})
}

func FuzzReadConfig(f *testing.F) {
	f.Add("server: http://h:1\nstep: 1d\nworkloads: [{name: a, rate: x, p99: y, pods: a/b.*, alone: {c: 1}}]\nbackground: [x]\n")
	f.Add("workloads: &a [*a]")
	f.Add("alone: 1e999")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := prometheus.ReadConfig([]byte(text), "fuzz")
		if err == nil && (len(c.Workloads) == 0 || c.Window < 2*c.Step || c.Step <= 0) {
			t.Errorf("%+v was taken", c)
		}
	})
}

// aServer answers each query with one series of the pod's value, for a step of the
// range each; it refuses more than most steps.
func aServer(most int, value map[string]string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, _ := strconv.ParseFloat(r.FormValue("start"), 64)
		to, _ := strconv.ParseFloat(r.FormValue("end"), 64)
		step, _ := strconv.ParseFloat(r.FormValue("step"), 64)
		if (to-from)/step > float64(most) {
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprint(w, `{"status":"error","errorType":"execution","error":"query processing would load too many samples into memory in query execution"}`)
			return
		}
		v, ok := value[r.FormValue("query")]
		if !ok {
			fmt.Fprint(w, matrix(""))
			return
		}
		var pairs []string
		for at := from; at <= to; at += step {
			pairs = append(pairs, fmt.Sprintf(`[%.0f,"%s"]`, at, v))
		}
		fmt.Fprint(w, matrix(`{"metric":{"namespace":"d","pod":"p","node":"n","created_by_kind":"ReplicaSet"},"values":[`+strings.Join(pairs, ",")+`]}`))
	})
}

var onePod = map[string]string{`kube_pod_info{node!=""}`: "1", "speed": "40"}

const oneWorkload = "workloads: [{name: redis, pods: 'd/p', rate: speed, alone: {'': 80}}]\nserver: "

func TestAServerThatCanDoLittleIsAskedForLess(t *testing.T) {
	server := httptest.NewServer(aServer(60, onePod))
	defer server.Close()
	c := config(t, oneWorkload+server.URL)
	client, err := prometheus.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	from := time.Unix(1_800_000_000, 0).UTC()
	samples, counts, warnings, err := prometheus.Samples(t.Context(), client, c, prometheus.Span{From: from, To: from.Add(2 * time.Hour)})
	if err != nil || len(samples) != 24 || counts.Windows != 24 {
		t.Errorf("%d samples, %+v, %v", len(samples), counts, err)
	}
	if len(warnings) == 0 || !strings.Contains(warnings[0], "kube_pod_status_phase") {
		t.Errorf("%q", warnings)
	}
}

func TestRatesAloneOfTheConfiguration(t *testing.T) {
	c := config(t, "workloads: [{name: a, rate: x, alone: {c5: 80}}, {name: b, rate: x}]")
	sample := func(class string, on cluster.Colocation, w string, v float64) history.Sample {
		return history.Sample{Start: time.Unix(1, 0), End: time.Unix(2, 0), Class: class, Colocation: on, Workload: w, Metric: history.Rate, Value: v}
	}
	ab := cluster.Colocation{"a": 1, "b": 1}
	got := history.Joined(prometheus.WithAlone([]history.Sample{
		sample("c5", cluster.Colocation{"a": 1}, "a", 10), sample("c5", ab, "a", 40), sample("c5", ab, "b", 3), sample("m5", ab, "a", 9),
	}, c))
	var text []string
	for _, s := range got {
		text = append(text, fmt.Sprintf("%s %s %s %g/%g", s.Class, s.Colocation.Key(), s.Workload, s.Value, s.Alone))
	}
	if want := "c5 a a 80/80, c5 a+b a 40/80, c5 a+b b 3/0, m5 a+b a 9/0"; strings.Join(text, ", ") != want {
		t.Errorf("%q; want %q", text, want)
	}
}

func ExampleSamples() {
	server := httptest.NewServer(aServer(10000, onePod))
	defer server.Close()
	c, err := prometheus.ReadConfig([]byte(oneWorkload+server.URL), "queries.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := prometheus.Open(c)
	if err != nil {
		fmt.Println(err)
		return
	}
	from := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	samples, _, _, err := prometheus.Samples(context.Background(), client, c, prometheus.Span{From: from, To: from.Add(10 * time.Minute)})
	for _, s := range samples {
		fmt.Println(s.Start.Format(time.TimeOnly), s.Colocation.Key(), s.Workload, s.Value)
	}
	fmt.Println(err)
	// Output:
	// 03:00:00 redis redis 40
	// 03:05:00 redis redis 40
	// <nil>
}
