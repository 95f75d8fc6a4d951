package harmony

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/jobs"
	"github.com/cotenant/cotenant/place/placetest"
)

func newSpeeds(scope history.Scope) *jobs.Speeds {
	m := placetest.Known{Model: placetest.Model{Names: []string{"a", "b"}, Silence: 5}, List: placetest.Workloads(4)}
	return jobs.NewSpeeds(m, jobs.Options{Scope: scope, Alone: placetest.Rates{}, Misfits: placetest.Clash{}, Pessimism: .5})
}

// after is who runs where once a decision is carried out.
func after(t *rapid.T, req place.Request, d place.Decision) []cluster.Running {
	running := slices.Clone(req.View.Running())
	for _, m := range d.Move {
		i := slices.IndexFunc(running, func(r cluster.Running) bool { return r.ID == m.Task })
		if i < 0 || !running[i].Movable {
			t.Fatalf("task %s is moved and does not run or must not be", m.Task)
		}
		running[i].Node, running[i].On = m.To, m.Devices
	}
	for _, g := range req.Pending {
		for _, task := range g.Tasks {
			if i := slices.IndexFunc(d.Bind, func(b place.Binding) bool { return b.Task == task.ID }); i >= 0 {
				running = append(running, cluster.Running{Task: task, Group: g.Name, Node: d.Bind[i].Node, On: d.Bind[i].Devices, Started: req.Now})
			}
		}
	}
	return running
}
