package main

import (
	"strings"
	"testing"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
)

// elastic is a node of four devices on which the job r runs with one worker of
// one or two, while the job w of two workers, of one to three, waits.
func elastic(t *testing.T) place.Request {
	t.Helper()
	worker := func(id cluster.TaskID) cluster.Task {
		return cluster.Task{ID: id, Workload: "a", Role: cluster.Worker, Devices: 1}
	}
	n := cluster.Node{Name: "n", Class: "v100"}
	for _, name := range []string{"0", "1", "2", "3"} {
		n.Devices = append(n.Devices, cluster.Device{Name: name, Class: "v100", Slots: 1})
	}
	view, err := cluster.NewSnapshot(cluster.Spec{Nodes: []cluster.Node{n}, Running: []cluster.Running{
		{Task: worker("r/worker-0"), Node: "n", On: []int{0}, Group: "r", Sizes: &cluster.Sizes{Workers: []cluster.TaskID{"r/worker-0"}, MinWorkers: 1, MaxWorkers: 2}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return place.Request{View: view, Pending: []cluster.Group{{
		Name: "w", Gang: true, Tasks: []cluster.Task{worker("w/worker-0"), worker("w/worker-1")}, MinWorkers: 1, MaxWorkers: 3,
	}}}
}

func on(id cluster.TaskID, device int) place.Binding {
	return place.Binding{Task: id, Node: "n", Devices: []int{device}}
}

func TestCarryOutScales(t *testing.T) {
	hold := []place.Hold{{Task: "w/worker-0"}, {Task: "w/worker-1"}}
	size := func(job string, n int) []place.Resize { return []place.Resize{{Group: job, Workers: n}} }
	for name, c := range map[string]struct {
		d     place.Decision
		tasks int
		says  string
	}{
		"nothing":                  {place.Decision{Hold: hold}, 1, ""},
		"what runs grows":          {place.Decision{Hold: hold, Resize: size("r", 2), Bind: []place.Binding{on("r/worker-1", 1)}}, 2, ""},
		"what waits begins small":  {place.Decision{Resize: size("w", 1), Bind: []place.Binding{on("w/worker-0", 1)}}, 2, ""},
		"what waits begins large":  {place.Decision{Resize: size("w", 3), Bind: []place.Binding{on("w/worker-0", 1), on("w/worker-1", 2), on("w/worker-2", 3)}}, 4, ""},
		"a new worker is missing":  {place.Decision{Hold: hold, Resize: size("r", 2)}, 0, `0 of 1 new workers of job "r"`},
		"a worker is missing":      {place.Decision{Resize: size("w", 3), Bind: []place.Binding{on("w/worker-0", 1), on("w/worker-1", 2)}}, 0, `2 of 3 tasks of job "w"`},
		"too large":                {place.Decision{Hold: hold, Resize: size("r", 3)}, 0, "its bounds do not allow"},
		"too small":                {place.Decision{Hold: hold, Resize: size("r", 0)}, 0, "its bounds do not allow"},
		"nobody":                   {place.Decision{Hold: hold, Resize: size("x", 1)}, 0, "neither waits nor runs"},
		"twice":                    {place.Decision{Hold: hold, Resize: append(size("r", 2), size("r", 1)...)}, 0, "twice"},
		"a worker that is no more": {place.Decision{Resize: size("w", 1), Bind: []place.Binding{on("w/worker-1", 1)}}, 0, `task "w/worker-1" does not wait`},
	} {
		t.Run(name, func(t *testing.T) {
			after, err := carryOut(elastic(t), c.d)
			switch {
			case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
				t.Errorf("error %v, want %q", err, c.says)
			case c.says == "" && err != nil:
				t.Error(err)
			case c.says == "" && len(after.Running()) != c.tasks:
				t.Errorf("%d tasks run after it, want %d", len(after.Running()), c.tasks)
			}
		})
	}
}

func TestJobsFileBounds(t *testing.T) {
	for _, bounds := range []string{"min_workers: 1", "max_workers: 1", "min_workers: 3, max_workers: 4", "min_workers: -1, max_workers: 4"} {
		_, errs, code := cotenant(t, waiting("--nodes", "v100:1x4", "--jobs", file(t, "q.yaml", "jobs: [{name: n, workload: a3c, workers: 2, "+bounds+"}]"), "--scale", "1s")...)
		if code == 0 || !strings.Contains(errs, "must lie between") || !strings.Contains(errs, "jobs[0] (n)") {
			t.Errorf("%s: exit %d: %s", bounds, code, errs)
		}
	}
}
