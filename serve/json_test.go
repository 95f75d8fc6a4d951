package serve

import (
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	balancev1 "github.com/cotenant/cotenant/serve/proto/cotenant/balance/v1"
)

// usual are requests as clients write them, the first as the Python package does.
var usual = []string{
	`{"job": "mnist", "generation": 1, "iteration": 7, "heldIteration": 3, "reports": [{"worker": "0", "batchSize": 50, "computeSeconds": 0.25, "cpu": 1, "memory": 0.5}]}`,
	`{"job":"mnist","generation":"1","iteration":"7","reports":[{"worker":"0","batchSize":50,"computeSeconds":1e-3,"communicateSeconds":0,"iterationsAgo":2},{"worker":"1","outOfMemory":true}]}`,
	` {"reports" : [ ] , "job":"\u00e9\n\ud83d\ude00" } `,
	`{}`,
}

// unusual are left to protojson, to read or to refuse.
var unusual = []string{
	`{"generation":1e3}`, `{"generation":"007"}`, `{"generation":-0}`, `{"generation":9223372036854775808}`, `{"reports":[{"batchSize":2147483648}]}`,
	`{"reports":[{"computeSeconds":"NaN"}]}`, `{"reports":[{"computeSeconds":1e400}]}`, `{"held_iteration":2}`, `{"mood":"fine"}`, `{"job":null}`,
	`{"job":"a","job":"b"}`, `{} {}`, `{}x`, `{"job":"a"`, `{"reports":[null]}`, `{"reports":[{}}`, `{"job":"\ud800"}`, "{\"job\":\"\xff\"}", `[]`, `null`, ``, `{"job":1}`,
}

func TestUsualReportsAreReadFast(t *testing.T) {
	for _, text := range usual {
		if err := parseReportRequest([]byte(text), new(balancev1.ReportRequest)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range unusual {
		if parseReportRequest([]byte(text), new(balancev1.ReportRequest)) == nil {
			t.Errorf("%q is read fast", text)
		}
	}
}

// FuzzReportJSON holds the fast reader against protojson: what it reads is the same.
func FuzzReportJSON(f *testing.F) {
	for _, texts := range [][]string{usual, unusual} {
		for _, text := range texts {
			f.Add([]byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		fast, slow := new(balancev1.ReportRequest), new(balancev1.ReportRequest)
		if parseReportRequest(text, fast) != nil {
			return
		}
		if err := protojson.Unmarshal(text, slow); err != nil {
			t.Fatalf("%q: protojson says %v", text, err)
		}
		if !proto.Equal(fast, slow) {
			t.Fatalf("%q: %v, by protojson %v", text, fast, slow)
		}
	})
}
