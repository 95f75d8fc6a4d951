package external

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The JSON of the documentation is what the code reads and writes.
func TestTheDocumentedLinesAreTheProtocol(t *testing.T) {
	text, err := os.ReadFile("../docs/external-policies.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(text, -1)
	if len(blocks) != 5 {
		t.Fatalf("%d JSON blocks; want 5", len(blocks))
	}
	strict := func(i int, into any) {
		d := json.NewDecoder(strings.NewReader(string(blocks[i][1])))
		d.DisallowUnknownFields()
		if err := d.Decode(into); err != nil {
			t.Errorf("block %d: %v", i, err)
		}
	}
	var r request
	strict(0, &r)
	if r.Version != Version || len(r.Cluster.Nodes) != 2 || len(r.Pending[0].Tasks) != 2 {
		t.Errorf("the documented request reads as %+v", r)
	}
	strict(2, &reply{})
	for _, i := range []int{1, 3, 4} {
		a, err := parse(blocks[i][1])
		if err != nil {
			t.Errorf("block %d: %v", i, err)
			continue
		}
		if a.Predict == nil {
			_, err := a.decision(1)
			if refused := i == 4; (err != nil) != refused {
				t.Errorf("block %d: error %v", i, err)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"id":1,"bind":[{"task":"a","node":"n"}]}`, `{"predict":{"colocations":[{"a":1}]}}`, `null`, `[]`, `{"id":-1}`, `{"id":1}x`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		a, err := parse([]byte(line))
		if err != nil {
			return
		}
		if a.Predict != nil {
			_, _ = a.Predict.answer(1, nil) // must not panic
		}
		_, _ = a.decision(1) // likewise
	})
}
