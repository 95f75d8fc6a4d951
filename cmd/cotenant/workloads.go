package main

import (
	"fmt"
	"maps"

	"github.com/cotenant/cotenant/cluster"
)

// workloadsFile is what --workloads reads.
type workloadsFile struct {
	Workloads []workloadEntry `json:"workloads"`
}

type workloadEntry struct {
	Name     string         `json:"name"`
	Requests quantities     `json:"requests"`
	Limits   quantities     `json:"limits"`
	Edges    []cluster.Edge `json:"edges"`
}

func readWorkloads(in *inputs, file string) ([]cluster.Workload, error) {
	data, err := in.text("workloads", file)
	if err != nil {
		return nil, err
	}
	var f workloadsFile
	what := "workloads " + file
	if err := decodeStrict(what, data, &f); err != nil {
		return nil, err
	}
	if len(f.Workloads) == 0 {
		return nil, fmt.Errorf("%s: no workloads; list them under \"workloads\"", what)
	}
	seen := map[string]bool{}
	out := make([]cluster.Workload, 0, len(f.Workloads))
	for i, e := range f.Workloads {
		at := fmt.Sprintf("%s: workloads[%d] (%s)", what, i, e.Name)
		switch {
		case e.Name == "":
			return nil, fmt.Errorf("%s: workloads[%d]: no name", what, i)
		case seen[e.Name]:
			return nil, fmt.Errorf("%s: listed before; keep one", at)
		}
		seen[e.Name] = true
		w := cluster.Workload{Name: e.Name, Edges: e.Edges}
		if w.Requests, err = e.Requests.resources(at + ": requests"); err != nil {
			return nil, err
		}
		if w.Limits, err = e.Limits.resources(at + ": limits"); err != nil {
			return nil, err
		}
		// As Kubernetes does: a limit without a request is also the request.
		if len(w.Limits) > 0 {
			requests := maps.Clone(w.Limits)
			maps.Copy(requests, w.Requests)
			w.Requests = requests
		}
		for _, r := range w.Limits.Names() {
			if w.Requests[r] > w.Limits[r] {
				return nil, fmt.Errorf("%s: the request of %s is above its limit", at, r)
			}
		}
		for _, edge := range e.Edges {
			if edge.To == "" || edge.Weight < 0 {
				return nil, fmt.Errorf("%s: edges: to %q, weight %g; name a workload and give a weight of 0 or more", at, edge.To, edge.Weight)
			}
		}
		out = append(out, w)
	}
	return out, nil
}
