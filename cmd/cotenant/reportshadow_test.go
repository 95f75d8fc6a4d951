package main

import (
	"fmt"
	"strings"
	"testing"
)

// The headline says of how many pods it tells, and nothing of a gain where no plan
// is recorded, or where most pods cannot be valued.
func TestReportShadowSaysItsBase(t *testing.T) {
	pod := func(name, node, workload, more string) string {
		return fmt.Sprintf(`{"kind":"Pod","metadata":{"name":%q,"namespace":"d","labels":{"cotenant.dev/workload":%q}%s},"spec":{"nodeName":%q,"containers":[{"name":"c"}]},"status":{"phase":"Running"}}`,
			name, workload, more, node)
	}
	nodes := `{"kind":"Node","metadata":{"name":"n1"},"status":{"allocatable":{"pods":"9"}}},{"kind":"Node","metadata":{"name":"n2"},"status":{"allocatable":{"pods":"9"}}}`
	plan := `{"kind":"Event","involvedObject":{"kind":"Pod","namespace":"d","name":"p"},"reason":"CotenantShadow","message":"decision: {\"mode\":\"shadow\",\"plan\":1,\"planned\":\"n2\",\"node\":\"n1\"}"}`
	enforced := `,"annotations":{"cotenant.dev/decision":"{\"mode\":\"enforce\",\"planned\":\"n1\",\"node\":\"n1\"}"}`
	for _, c := range []struct {
		name    string
		objects []string
		want    []string
	}{
		{"gain", []string{pod("p", "n1", "web", ""), pod("q", "n1", "web", ""), pod("e", "n1", "cache", enforced), pod("x", "n2", "foo", ""), plan}, []string{
			"by the plans the mean performance of 3 of 3 pods would be ", "1 of 1 pod that a scheduler in the mode shadow saw (100 %) has a plan; 1 would have other neighbours by it",
			"1 pod placed in the modes assist and enforce can have no plan", "1 pod without a record stays where it is", "1 pod of workloads that are unknown, foo",
		}},
		{"no plan", []string{pod("p", "n1", "web", "")}, []string{"no plan of the mode shadow is recorded: what follows is the performance as it is, of 1 of 1 pod", "       -     -\n"}},
		{"too few", []string{
			pod("p", "n1", "web", ""), plan, pod("a", "n2", "web", ""), pod("b", "n2", "web", ""), pod("c", "n2", "web", ""), pod("d", "n2", "web", ""),
			pod("e", "n2", "web", ""), pod("f", "n2", "web", ""), pod("g", "n2", "cache", ""), pod("h", "n2", "train", ""),
		}, []string{
			"what the plans would have gained cannot be told: both places of only 0 of 9 pods can be valued", "nobody measured ",
		}},
	} {
		path := file(t, "c.json", `{"kind":"List","items":[`+nodes+","+strings.Join(c.objects, ",")+`]}`)
		out, errs, code := cotenant(t, "report", "shadow", "--cluster", path, "--samples", "testdata/samples.jsonl")
		for _, want := range c.want {
			if code != exitDone || !strings.Contains(out, want) {
				t.Errorf("%s: exit %d\n%s%s lacks %q", c.name, code, out, errs, want)
			}
		}
	}
}
