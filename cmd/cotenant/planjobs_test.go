package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// waiting is `plan jobs` on the made-up workloads.
func waiting(more ...string) []string {
	return append([]string{"plan", "jobs", "--throughputs", "testdata/throughputs.json"}, more...)
}

const queueYAML = `jobs:
- {name: late, workload: a3c, arrival: 2h}
- {name: big, workload: resnet-50/32, workers: 2}
- {name: rest, workload: transformer/64, arrival: 90}
- {name: huge, workload: a3c, workers: 64, arrival: 100s}
`

const queueCSV = `name,workload,workers,arrival
late,a3c,,2h
big,resnet-50/32,2,
rest,transformer/64,1,90
huge,a3c,64,100s
`

func TestPlanJobsGolden(t *testing.T) {
	queue := file(t, "queue.yaml", queueYAML)
	for _, c := range []struct {
		name string
		args []string
	}{
		{"planjobs.table", waiting("--nodes", "v100:1x2,k80:1", "--jobs", queue, "--policy", "greedy-wait,spread")},
		{"planjobs.json", waiting("--nodes", "v100:1x2,k80:1", "--jobs", queue, "-o", "json")},
		{"planjobs-busy.csv", waiting("--cluster", "testdata/busy.json", "--migrate", "1s", "--policy", "greedy:horizon=100000,matching", "-o", "csv")},
		{"planjobs-elastic.csv", waiting("--cluster", "testdata/elastic.json", "--jobs", file(t, "n.yaml", "jobs: [{name: n, workload: resnet-50/32, workers: 2}]"), "--scale", "1s", "-o", "csv")},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, errs, code := cotenant(t, c.args...)
			if code != 0 {
				t.Fatalf("exit %d: %s", code, errs)
			}
			golden(t, c.name, out)
		})
	}
	table, _, _ := cotenant(t, waiting("--nodes", "v100:1x2,k80:1", "--jobs", file(t, "queue.csv", queueCSV), "-o", "json")...)
	same, _, _ := cotenant(t, waiting("--nodes", "v100:1x2,k80:1", "--jobs", queue, "-o", "json")...)
	if table != same {
		t.Errorf("the same queue as CSV:\n%s\nand as YAML:\n%s", table, same)
	}
}

func TestPlanJobsRefuses(t *testing.T) {
	queue := file(t, "queue.yaml", queueYAML)
	bad := func(text string) string { return file(t, "bad.yaml", text) }
	for _, c := range []struct {
		args []string
		want string
	}{
		{waiting("--nodes", "v100:1"), "which jobs? give --jobs FILE"},
		{waiting("--jobs", queue), "where to place?"},
		{[]string{"plan", "jobs", "--nodes", "v100:1", "--jobs", queue}, "give --throughputs FILE or --samples FILE"},
		{waiting("--nodes", "6", "--jobs", queue, "--contention"), "keep one"},
		{[]string{"plan", "jobs", "--contention", "--nodes", "v100:6", "--jobs", queue}, "servers of --contention are of one kind"},
		{waiting("--nodes", "v100:1", "--jobs", queue, "--policy", "greedy:truth"), "leave :truth out"},
		{waiting("--nodes", "v100:1", "--jobs", bad("jobs:\n- {name: a, workload: x, wrkers: 2}\n")), "wrkers"},
		{waiting("--nodes", "v100:1", "--jobs", bad("jobs:\n- {name: a}\n")), "jobs[0] (a): no workload"},
		{waiting("--nodes", "v100:1", "--jobs", bad("jobs:\n- {name: a, workload: x}\n- {name: a, workload: x}\n")), "jobs[1] (a): listed before"},
		{waiting("--nodes", "v100:1", "--jobs", bad("jobs:\n- {name: a, workload: x, arrival: soon}\n")), `arrival: "soon" is neither`},
		{waiting("--nodes", "v100:1", "--jobs", bad("jobs:\n- {name: a, workload: x, workers: -1}\n")), "-1 workers"},
		{waiting("--nodes", "v100:1", "--jobs", bad("name,workload,size\na,x,1\n")), `column "size"`},
		{waiting("--nodes", "v100:1", "--jobs", bad("name,workload,workers\na,x,many\n")), `line 2: workers: "many" is not a whole number`},
		{waiting("--nodes", "v100:1", "--jobs", bad("jobs: []\n")), "no jobs"},
	} {
		_, errs, code := cotenant(t, c.args...)
		if code == 0 || !strings.Contains(errs, c.want) {
			t.Errorf("%v: exit %d, %s; want %q", c.args[4:], code, errs, c.want)
		}
	}
}

// A decision that cannot be carried out is refused, whoever made it.
func TestPlanJobsChecksPrograms(t *testing.T) {
	queue := file(t, "queue.yaml", "jobs:\n- {name: a, workload: a3c, workers: 2}\n")
	for bind, want := range map[string]string{
		`{"task":"a/worker-0","node":"v100-0","devices":[0]}`:                                                          "1 of 2 tasks of job \"a\" are placed",
		`{"task":"a/worker-0","node":"v100-0","devices":[0]},{"task":"a/worker-1","node":"v100-0","devices":[7]}`:      "device 7",
		`{"task":"a/worker-0","node":"v100-0"},{"task":"a/worker-1","node":"v100-0","devices":[0]}`:                    "needs 1 devices and is on 0",
		`{"task":"a/worker-0","node":"nowhere","devices":[0]},{"task":"a/worker-1","node":"v100-0","devices":[0]}`:     `"nowhere" is not in the cluster`,
		`{"task":"b","node":"v100-0","devices":[0]}`:                                                                   `task "b" does not wait`,
		`{"task":"a/worker-0","node":"v100-0","devices":[0]},{"task":"a/worker-0","node":"v100-0","devices":[0]}`:      "decided twice",
		`{"task":"a/worker-0","node":"v100-0","devices":[0]},{"task":"a/worker-1","node":"v100-0","devices":[0]},null`: "does not wait",
	} {
		program := file(t, "policy.sh", "read line\necho '{\"id\": 1, \"bind\": ["+bind+"]}'\ncat >/dev/null\n")
		_, errs, code := cotenant(t, waiting("--nodes", "v100:1", "--jobs", queue, "--policy", "exec:/bin/sh "+program)...)
		if code != exitFailed || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d, %s; want %q", bind, code, errs, want)
		}
	}
}

func TestPlanJobsJSONHasEveryJob(t *testing.T) {
	out, errs, code := cotenant(t, waiting("--nodes", "v100:1x2,k80:1", "--jobs", file(t, "queue.yaml", queueYAML), "--policy", "greedy,greedy-wait", "-o", "json")...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	var plans []map[string]any
	if err := json.Unmarshal([]byte(out), &plans); err != nil {
		t.Fatal(err)
	}
	if len(plans) != 8 {
		t.Fatalf("%d objects; want one for each policy and job", len(plans))
	}
	for _, p := range plans {
		if p["why"] == "" || p["decision"] == "wait" && p["progress"] != nil {
			t.Errorf("%v", p)
		}
	}
}

// Servers have requests and parameter servers, and a model is fitted to what the
// profiler measured.
func TestPlanJobsOnServers(t *testing.T) {
	queue := file(t, "queue.yaml", "jobs:\n- {name: a, workload: resnet-50/32, workers: 2, parameter_servers: 2}\n- {name: b, workload: vgg-16/32, workers: 4, parameter_servers: 1}\n")
	out, errs, code := cotenant(t, "plan", "jobs", "--contention", "--profile", "40", "--nodes", "6", "--jobs", queue, "--policy", "harmony,consolidate", "-o", "json")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	var plans []struct {
		Policy, Job, Decision string
		Progress              float64
		Bind                  []struct{ Node string }
	}
	if err := json.Unmarshal([]byte(out), &plans); err != nil {
		t.Fatal(err)
	}
	if len(plans) != 4 {
		t.Fatalf("%d plans of two jobs by two policies", len(plans))
	}
	for _, p := range plans {
		if p.Decision != "place" || p.Progress <= 0 || len(p.Bind) < 4 {
			t.Errorf("%+v; want it placed, where there is room for all", p)
		}
	}
}
