package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/jobs"
)

// jobPlan is what one policy decided about one job: an object of -o json.
type jobPlan struct {
	Policy   string `json:"policy"`
	Job      string `json:"job"`
	Workload string `json:"workload"`
	Tasks    int    `json:"tasks"`
	// Workers is how many it is to have, where that is another number than now.
	Workers int `json:"workers,omitempty"`
	// Decision is place, wait, move or resize (which may move tasks, too).
	Decision string          `json:"decision"`
	Bind     []place.Binding `json:"bind"`
	Move     []place.Move    `json:"move,omitempty"`
	// Progress is the job's expected progress there; null where it waits.
	Progress number `json:"progress"`
	Why      string `json:"why"`
	// Before and After are the sums of the progress of all jobs.
	Before number `json:"progress_of_all_before"`
	After  number `json:"progress_of_all_after"`
}

// describeJobs says what was decided of each job that waits, and which move.
func describeJobs(policy string, req place.Request, d place.Decision, after *cluster.Snapshot, speeds *jobs.Speeds) []jobPlan {
	before, _ := progressOf(req.View, speeds)
	total, byJob := progressOf(after, speeds)
	bind, hold, move := map[cluster.TaskID]place.Binding{}, map[cluster.TaskID]string{}, map[cluster.TaskID]place.Move{}
	for _, b := range d.Bind {
		bind[b.Task] = b
	}
	for _, h := range d.Hold {
		hold[h.Task] = h.Why
	}
	for _, m := range d.Move {
		move[m.Task] = m
	}
	sizes := map[string]int{}
	for _, z := range d.Resize {
		sizes[z.Group] = z.Workers
	}
	var out []jobPlan
	for _, g := range req.Pending {
		p := jobPlan{
			Policy: policy, Job: g.Name, Workload: g.Tasks[0].Workload, Tasks: len(g.Tasks), Decision: "wait", Bind: []place.Binding{},
			Progress: number(math.NaN()), Before: number(before), After: number(total),
		}
		ids := make([]cluster.TaskID, 0, len(g.Tasks))
		for _, t := range g.Tasks {
			ids = append(ids, t.ID)
		}
		if n, ok := sizes[g.Name]; ok {
			p.Workers = n
			ids = append(ids, added(g.Sizes(), g.Name, len(g.Sizes().Workers), n)...)
		}
		for _, id := range ids {
			if b, ok := bind[id]; ok {
				p.Decision = "place"
				p.Bind = append(p.Bind, b)
				p.Progress = number(byJob[g.Name])
			} else if p.Why == "" {
				p.Why = hold[id]
			}
		}
		if p.Decision == "place" {
			p.Tasks = len(p.Bind)
			p.Why = d.Why[p.Bind[0].Task].Words
		}
		out = append(out, p)
	}
	moved := map[string]int{}
	workers := map[string]int{}
	for _, r := range req.View.Running() {
		if r.Role == cluster.Worker {
			workers[jobOf(r)]++
		}
	}
	for _, r := range req.View.Running() {
		m, ok := move[r.ID]
		n, scaled := sizes[jobOf(r)]
		if !ok && (!scaled || n == workers[jobOf(r)]) {
			continue
		}
		at, seen := moved[jobOf(r)]
		if !seen {
			at = len(out)
			moved[jobOf(r)] = at
			out = append(out, jobPlan{
				Policy: policy, Job: jobOf(r), Workload: r.Workload, Decision: "move", Bind: []place.Binding{},
				Progress: number(byJob[jobOf(r)]), Before: number(before), After: number(total), Why: d.Why[r.ID].Words,
			})
			if scaled && r.Sizes != nil {
				p := &out[at]
				p.Decision, p.Workers = "resize", n
				for _, id := range added(r.Sizes, jobOf(r), workers[jobOf(r)], n) {
					p.Bind = append(p.Bind, bind[id])
				}
				p.Tasks = len(p.Bind)
				if p.Why == "" {
					p.Why = fmt.Sprintf("from %d workers to %d", workers[jobOf(r)], n)
				}
			}
		}
		if ok {
			out[at].Move = append(out[at].Move, m)
			out[at].Tasks++
		}
	}
	return out
}

// added are the workers that a job of some gets on the way to more.
func added(z *cluster.Sizes, job string, from, to int) []cluster.TaskID {
	var ids []cluster.TaskID
	for i := from; i < to; i++ {
		ids = append(ids, z.WorkerID(job, i))
	}
	return ids
}

func jobOf(r cluster.Running) string {
	if r.Group == "" {
		return string(r.ID)
	}
	return r.Group
}

// progressOf is what the jobs of a cluster are believed to make.
func progressOf(view *cluster.Snapshot, speeds *jobs.Speeds) (total float64, byJob map[string]float64) {
	b := jobs.NewBoard(speeds.Fork())
	b.Reset(place.Request{View: view})
	byJob = map[string]float64{}
	for i, t := range b.Running() {
		byJob[jobOf(view.Running()[i])] = b.Progress(b.GangOf(int(t)))
	}
	return b.Total(), byJob
}

func writeJobPlans(w io.Writer, form string, plans []jobPlan) error {
	switch form {
	case "json":
		return writeJSON(w, plans)
	case "yaml":
		return writeYAML(w, plans)
	}
	var cells [][]string
	for _, p := range plans {
		progress := p.Progress.text(3)
		if form == "csv" {
			progress = p.Progress.exact()
		}
		cells = append(cells, []string{p.Policy, p.Job, p.Workload, fmt.Sprint(p.Tasks), p.Decision, placesText(p), progress, p.Why})
	}
	if form == "csv" {
		return writeCSV(w, []string{"policy", "job", "workload", "tasks", "decision", "where", "progress", "why"}, cells)
	}
	if err := writeTable(w, []string{"policy", "job", "workload", " tasks", "decision", "where", " progress", "why"}, cells); err != nil {
		return err
	}
	for i, p := range plans {
		if i == 0 || plans[i-1].Policy != p.Policy {
			fmt.Fprintf(w, "%s: the sum of progress over all jobs goes from %s to %s.\n", p.Policy, p.Before.text(3), p.After.text(3))
		}
	}
	return nil
}

// placesText lists nodes with their devices: "v100-0:0, v100-1:0:1".
func placesText(p jobPlan) string {
	type put struct {
		node string
		on   []int
	}
	var puts []put
	for _, b := range p.Bind {
		puts = append(puts, put{b.Node, b.Devices})
	}
	for _, m := range p.Move {
		puts = append(puts, put{m.To, m.Devices})
	}
	var order []string
	on := map[string][]int{}
	for _, x := range puts {
		if !slices.Contains(order, x.node) {
			order = append(order, x.node)
		}
		on[x.node] = append(on[x.node], x.on...)
	}
	for i, node := range order {
		slices.Sort(on[node])
		order[i] = node + devicesText(on[node])
	}
	if len(order) == 0 {
		return "-"
	}
	return strings.Join(order, ", ")
}
