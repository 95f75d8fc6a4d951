package misfit_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/cotenant/cotenant/internal/misfit"
)

type file struct {
	Name string             `json:"name" yaml:"name"`
	On   bool               `json:"on" yaml:"on"`
	Size float64            `json:"size" yaml:"size"`
	N    int                `json:"n" yaml:"n"`
	Wait time.Duration      `json:"wait" yaml:"wait"`
	List []file             `json:"list" yaml:"list"`
	By   map[string]float64 `json:"by" yaml:"by"`
}

func ExampleJSON() {
	var pod struct {
		Metadata struct{ Name string }
	}
	err := json.Unmarshal([]byte(`{"metadata": {"name": 5}}`), &pod)
	fmt.Println(misfit.JSON(err))
	// Output: Metadata.Name: a number, where text belongs
}

func TestNoTypesOfGo(t *testing.T) {
	for text, want := range map[string]string{
		`{"name":3}`:             "name: a number, where text belongs",
		`{"on":"yes"}`:           "on: text, where true or false belongs",
		`{"n":1.5}`:              "n: 1.5, where a whole number belongs",
		`{"list":[{"size":[]}]}`: "list.size: a list, where a number belongs",
		`{"by":3}`:               "by: a number, where an object belongs",
		`[]`:                     "the top level: a list, where an object belongs",
		`{`:                      "unexpected end of JSON input",
	} {
		if got := misfit.JSON(json.Unmarshal([]byte(text), &file{})).Error(); got != want {
			t.Errorf("%s: %q; want %q", text, got, want)
		}
	}
	passedOn := errors.New("loading: json: cannot unmarshal number into Go struct field Config.clusters of type []v1.NamedCluster")
	if got := misfit.JSON(passedOn).Error(); got != "loading: clusters: a value of another kind (number) than belongs there" {
		t.Error(got)
	}
	for text, want := range map[string]string{
		"nam: x\n":                `line 1: unknown field "nam", misspelt or in the wrong place`,
		"name: x\nlist: 3\n":      `line 2: list: "3", where a list belongs`,
		"list:\n- size: much\n":   `line 2: size: "much", where a number belongs`,
		"name: [x]\n":             "line 1: name: a list, where text belongs",
		"wait: soon\n":            `line 1: wait: "soon", where a time such as 30s belongs`,
		"by: {a: b}\n":            `line 1: by: "b", where a number belongs`,
		"- name: x\n":             "line 1: a list, where a mapping of fields belongs",
		"name: x\nname: y\n":      `line 2: mapping key "name" already defined at line 1`,
		"name: [\n":               "line 1: did not find expected node content",
		"list:\n- list:\n  - 3\n": `line 3: "3", where a mapping of fields belongs`,
	} {
		d := yaml.NewDecoder(strings.NewReader(text))
		d.KnownFields(true)
		if got := misfit.YAML([]byte(text), d.Decode(&file{})).Error(); got != want {
			t.Errorf("%s: %q; want %q", text, got, want)
		}
	}
}
