package sim_test

import (
	"fmt"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/sim"
)

// least puts each gang, in order, where the fewest tasks are: on the devices
// with the most free slots, or without devices on the nodes with the fewest
// tasks. It holds the rest. It knows nothing of speeds.
type least struct {
	free  [][]int
	tasks []int
	undo  []spot
	ints  []int
	bind  []place.Binding
}

type spot struct{ node, device int }

func (p *least) Place(req place.Request) (place.Decision, error) {
	nodes := req.View.Nodes()
	if len(p.free) != len(nodes) {
		p.free, p.tasks = make([][]int, len(nodes)), make([]int, len(nodes))
		for i := range nodes {
			p.free[i] = make([]int, len(nodes[i].Devices))
		}
	}
	slots := 0
	for i := range nodes {
		p.tasks[i] = 0
		for d := range nodes[i].Devices {
			p.free[i][d] = max(1, nodes[i].Devices[d].Slots)
			if nodes[i].Unschedulable {
				p.free[i][d] = 0
			}
			slots += p.free[i][d]
		}
	}
	running := req.View.Running()
	for i := range running {
		n, _ := req.View.NodeIndex(running[i].Node)
		p.tasks[n]++
		for _, d := range running[i].On {
			if p.free[n][d] > 0 {
				p.free[n][d]--
				slots--
			}
		}
	}
	p.bind, p.ints = p.bind[:0], p.ints[:0]
	for _, g := range req.Pending {
		if slots == 0 {
			break
		}
		from, fromInts := len(p.bind), len(p.ints)
		p.undo = p.undo[:0]
		for i := range g.Tasks {
			if !p.one(nodes, &g.Tasks[i]) {
				for _, u := range p.undo {
					p.tasks[u.node]--
					if u.device >= 0 {
						p.free[u.node][u.device]++
						slots++
					}
				}
				p.bind, p.ints = p.bind[:from], p.ints[:fromInts]
				break
			}
			slots -= g.Tasks[i].Devices
		}
	}
	return place.Decision{Bind: p.bind}, nil
}

// one places a task of no device or one; more it holds.
func (p *least) one(nodes []cluster.Node, t *cluster.Task) bool {
	best, most := spot{-1, -1}, -1<<31
	for n := range nodes {
		if nodes[n].Unschedulable {
			continue
		}
		if t.Devices == 0 && -p.tasks[n] > most && (nodes[n].Slots == 0 || p.tasks[n] < nodes[n].Slots) {
			best, most = spot{n, -1}, -p.tasks[n]
		}
		if t.Devices == 1 {
			for d, free := range p.free[n] {
				if free > 0 && free > most {
					best, most = spot{n, d}, free
				}
			}
		}
	}
	if best.node < 0 {
		return false
	}
	p.undo = append(p.undo, best)
	p.tasks[best.node]++
	b := place.Binding{Task: t.ID, Node: nodes[best.node].Name}
	if best.device >= 0 {
		p.free[best.node][best.device]--
		p.ints = append(p.ints, best.device)
		b.Devices = p.ints[len(p.ints)-1:]
	}
	p.bind = append(p.bind, b)
	return true
}

// share is a truth in which the tasks on a device slow one another: with n of
// them each has the progress 1/(1+c(n-1)), c by workload.
type share struct {
	slow  map[string]float64
	rates map[cluster.TaskID]float64
	calls int
}

func (w *share) Rates(s *cluster.Snapshot, touched []cluster.TaskID) map[cluster.TaskID]float64 {
	w.calls++
	if w.rates == nil {
		w.rates = map[cluster.TaskID]float64{}
	}
	clear(w.rates)
	running := s.Running()
	for _, id := range touched {
		for i := range running {
			if running[i].ID == id {
				w.rates[id] = 1 / (1 + w.slow[running[i].Workload]*float64(neighbours(running, i)))
				break
			}
		}
	}
	return w.rates
}

// neighbours counts the tasks that share a device with the i-th.
func neighbours(running []cluster.Running, i int) int {
	a := &running[i]
	n := 0
	for k := range running {
		b := &running[k]
		if k == i || b.Node != a.Node {
			continue
		}
		for _, d := range a.On {
			for _, e := range b.On {
				if d == e {
					n++
				}
			}
		}
	}
	return n
}

func gpus(n, slots int) []cluster.Node {
	nodes := cluster.Nodes("v100", n, 1, 0)
	for i := range nodes {
		nodes[i].Devices[0].Slots = slots
	}
	return nodes
}

// single is a job of one worker.
func single(name, workload string, arrival time.Duration, work float64) sim.Job {
	return gang(name, workload, arrival, work, 1)
}

func gang(name, workload string, arrival time.Duration, work float64, workers int) sim.Job {
	j := sim.Job{Job: cluster.Job{Name: name, Arrival: arrival}, Work: work}
	for i := range workers {
		j.Tasks = append(j.Tasks, cluster.Task{
			ID: cluster.TaskID(fmt.Sprintf("%s/%d", name, i)), Workload: workload, Role: cluster.Worker, Devices: 1,
		})
	}
	return j
}
