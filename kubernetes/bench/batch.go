package bench

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
)

// Batch is services to place on alike nodes. A task takes one of a node's
// slots, which stand for a core and 4 GiB each.
type Batch struct {
	Nodes, Slots int
	Services     []Service
}

// Service is replicas of one workload with one owner.
type Service struct {
	Name, Workload string
	Replicas       int
}

// Even is a batch of one service a workload, named after it, with as many replicas each as
// there are tasks, give or take one.
func (t *Truth) Even(tasks, nodes int) Batch {
	b := Batch{Nodes: nodes, Slots: t.Slots}
	for i, w := range t.Workloads {
		n := len(t.Workloads)
		b.Services = append(b.Services, Service{Name: strings.ReplaceAll(w, "_", "-"), Workload: w, Replicas: (i+1)*tasks/n - i*tasks/n})
	}
	return b
}

// Mixed is a batch of services of 1 to 16 replicas, drawn by seed.
func (t *Truth) Mixed(tasks, nodes int, seed uint64) Batch {
	b := Batch{Nodes: nodes, Slots: t.Slots}
	r := rand.New(rand.NewPCG(seed, 0))
	for left := tasks; left > 0; {
		s := Service{
			Name:     fmt.Sprintf("service-%04d", len(b.Services)),
			Workload: t.Workloads[r.IntN(len(t.Workloads))],
			Replicas: min(left, 1+r.IntN(16)),
		}
		b.Services = append(b.Services, s)
		left -= s.Replicas
	}
	return b
}

// Tasks is the number of replicas of all services.
func (b Batch) Tasks() int {
	n := 0
	for _, s := range b.Services {
		n += s.Replicas
	}
	return n
}

// podName is also the ID of the task.
func podName(s Service, replica int) string { return fmt.Sprintf("%s-%d", s.Name, replica) }

// nodeName is that of controlplane.Nodes.
func nodeName(i int) string { return fmt.Sprintf("node-%04d", i) }

// request is what a policy is asked for the batch, or for those of its tasks
// whose names are wanted.
func (b Batch) request(wanted func(name string) bool) (place.Request, error) {
	nodes := cluster.Nodes("", b.Nodes, 1, b.Slots)
	for i := range nodes {
		nodes[i].Name = nodeName(i)
	}
	view, err := cluster.NewSnapshot(cluster.Spec{Nodes: nodes})
	if err != nil {
		return place.Request{}, err
	}
	req := place.Request{View: view, Objective: place.MeanPerformance}
	for _, s := range b.Services {
		g := cluster.Group{Name: s.Name}
		for i := range s.Replicas {
			name := podName(s, i)
			if wanted(name) {
				g.Tasks = append(g.Tasks, cluster.Task{ID: cluster.TaskID(name), Workload: s.Workload})
			}
		}
		if len(g.Tasks) > 0 {
			req.Pending = append(req.Pending, g)
		}
	}
	return req, nil
}

// On is the name of the i-th node and what a placement puts there, as
// cluster.Colocation.Key has it.
func (b Batch) On(i int, at map[string]string) (node, key string) {
	node = nodeName(i)
	c := cluster.Colocation{}
	for _, s := range b.Services {
		for r := range s.Replicas {
			if at[podName(s, r)] == node {
				c[s.Workload]++
			}
		}
	}
	return node, c.Key()
}
