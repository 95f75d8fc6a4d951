package main

import (
	"encoding/json"
	"strings"
	"testing"
)

const waitingPods = `{"kind":"List","items":[
 {"kind":"Node","metadata":{"name":"n1"},"status":{"allocatable":{"cpu":"4","pods":"110"}}},
 {"kind":"Node","metadata":{"name":"n2"},"status":{"allocatable":{"cpu":"4","pods":"110"}}},
 {"kind":"Pod","metadata":{"name":"t1","namespace":"a","labels":{"cotenant.dev/workload":"train"}},"spec":{"nodeName":"n1","containers":[{"name":"c"}]},"status":{"phase":"Running"}},
 {"kind":"Pod","metadata":{"name":"t2","namespace":"a","labels":{"cotenant.dev/workload":"train"}},"spec":{"containers":[{"name":"c"}]},"status":{"phase":"Pending"}},
 {"kind":"Pod","metadata":{"name":"huge","namespace":"b","labels":{"cotenant.dev/workload":"cache"}},"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"64"}}}]},"status":{"phase":"Pending"}},
 {"kind":"Pod","metadata":{"name":"odd","namespace":"b","labels":{"cotenant.dev/workload":"foo"}},"spec":{"tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},{"key":"own","operator":"Exists"}],"nodeSelector":{"disk":"ssd"},"containers":[{"name":"c"}]},"status":{"phase":"Pending"}}]}`

// Pods that wait are planned for by one policy, which is said; each has its node or
// the one reason why it waits, and the plan is held against what is.
func TestPlanSaysWherePodsGo(t *testing.T) {
	path := file(t, "c.json", waitingPods)
	args := []string{"plan", "services", "--samples", "testdata/samples.jsonl", "--cluster", path}
	out, errs, code := cotenant(t, args...)
	for _, want := range []string{
		"metis, as cotenant-scheduler does, has a node for 1 of 3 pods that wait\n",
		"b/huge  cache     none            -  waits: 0 of 2 nodes fit; ",
		"b/odd   foo       none            -  waits: nobody measured foo; ",
		"a/t2    train     n2          1.000  beside none\n",
		"of 2 tasks and 1 that runs on 2 nodes", "\nspread  ", "what runs (1 pod): mean performance 1.0000 now, 1.0000 with the plan",
	} {
		if code != exitFailed || !strings.Contains(out, want) {
			t.Errorf("exit %d\n%s%s lacks %q", code, out, errs, want)
		}
	}
	if !strings.Contains(errs, "of what waits, 1 pod left out: nobody measured the workload") {
		t.Error(errs)
	}
	out, _, _ = cotenant(t, append(args, "-o", "json")...)
	var plans []struct {
		Policy string
		Pods   []struct{ Pod, Node, Why string }
		Spread *float64 `json:"value_spread"`
		Now    *float64 `json:"running_now"`
	}
	if err := json.Unmarshal([]byte(out), &plans); err != nil || len(plans) != 1 || len(plans[0].Pods) != 3 || plans[0].Spread == nil || plans[0].Now == nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if p := plans[0].Pods; plans[0].Policy != "metis" || p[0].Node != "n2" || p[1].Node != "" || p[1].Why == "" || p[2].Why == "" {
		t.Error(out)
	}

	// As kubectl has it, of one namespace; and with more policies, a table of them.
	out, errs, code = cotenant(t, "plan", "services", "--samples", "testdata/samples.jsonl", "--kubeconfig", path, "-n", "a", "--policy", "greedy")
	if code != exitDone || !strings.HasPrefix(out, "greedy has a node for 1 of 1 pod that waits\n") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	out, _, _ = cotenant(t, append(args, "-n", "a", "--policy", "greedy,spread")...)
	if strings.Contains(out, "a/t2") || !strings.Contains(out, "where the pods go: name one policy") {
		t.Error(out)
	}
	if _, errs, code = cotenant(t, append(args, "-n", "nowhere")...); code != exitWrongUse || !strings.Contains(errs, "no pod of namespace nowhere waits") {
		t.Errorf("exit %d: %s", code, errs)
	}
}
