package bench

import (
	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/metis"
)

// Model is the table as a model, for policies that place by the truth.
func (t *Truth) Model() interference.Model { return t.model }

// Sequence is what the policy that ships makes of the batch, service after
// service, as `cotenant plan services` would: what our scheduler is held
// against where services arrive one by one.
func (t *Truth) Sequence(b Batch) (Worth, error) {
	file, err := metis.Shipped("")
	if err != nil {
		return Worth{}, err
	}
	policy, err := file.Policy(metis.Settings{Model: t.model})
	if err != nil {
		return Worth{}, err
	}
	at, err := b.InSequence(policy)
	if err != nil {
		return Worth{}, err
	}
	return t.Judge(b, at)
}

// InSequence is the placement that a policy makes of the batch when its
// services come one after another, each to stay where it was put: what a
// scheduler can be held against that sees them arrive so. What the policy
// holds is left out.
func (b Batch) InSequence(p place.Policy) (map[string]string, error) {
	at := map[string]string{}
	for i := range b.Services {
		req, err := b.request(func(name string) bool { return at[name] != "" })
		if err != nil {
			return nil, err
		}
		running := make([]cluster.Running, 0, len(at))
		for _, task := range req.Tasks() {
			running = append(running, cluster.Running{Task: task, Node: at[string(task.ID)]})
		}
		if req.View, err = req.View.Next(nil, running); err != nil {
			return nil, err
		}
		one := Batch{Nodes: b.Nodes, Slots: b.Slots, Services: b.Services[i : i+1]}
		next, err := one.request(func(string) bool { return true })
		if err != nil {
			return nil, err
		}
		req.Pending = next.Pending
		d, err := p.Place(req)
		if err != nil {
			return nil, err
		}
		for _, bind := range d.Bind {
			at[string(bind.Task)] = bind.Node
		}
	}
	return at, nil
}
