package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/data"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/profile"
	"github.com/cotenant/cotenant/profile/suite"
	"github.com/cotenant/cotenant/report"
)

// describeShipped says on what machine the measurements that ship were made,
// and what their workloads are. What cannot be read is left out.
func describeShipped(m *report.Measured) {
	var on profile.Machine
	if json.Unmarshal(data.Machine, &on) == nil {
		m.Machine = machineWords(on)
	}
	if s, err := profile.ParseSuite(suite.Text()); err == nil {
		m.Notes, m.Units = map[string]string{}, map[string]string{}
		for _, w := range s.Workloads {
			m.Notes[w.Name], m.Units[w.Name] = w.About, w.Read.Rate.Unit
		}
	}
}

func machineWords(m profile.Machine) string {
	words := fmt.Sprintf("%d cores of %s", m.Cores, m.CPU)
	if m.Virtual {
		words = "virtual machine, " + words
	}
	if m.Memory > 0 {
		words += fmt.Sprintf(", %.0f GB of memory", float64(m.Memory)/1e9)
	}
	if n := len(m.Caches); n > 0 {
		words += ", " + m.Caches[n-1]
	}
	for _, part := range []string{m.System, m.Kernel} {
		if part != "" {
			words += ", " + part
		}
	}
	return words
}

// policyWords say in a sentence what each built-in policy does.
var policyWords = map[string]string{
	"spread":        "to the node with the most free room: the default of Kubernetes",
	"binpack":       "to the fullest node that has room",
	"random":        "to any node that has room",
	"tetris":        "where demand and free resources align best",
	"paragon":       "classifies workloads by what they cause and bear, then pairs them greedily",
	"medea":         "turns measurements into rules of who may share a node, then solves an integer program; at the threshold that is best by the model",
	"measured":      "plans with measured co-locations alone, without a model",
	"greedy":        "to the node where the predicted gain is largest",
	onePass:         "the policy that was trained, in one pass: each task once, no search",
	metisName:       "the policy that was trained, then swaps and moves while they help",
	"greedy-search": "greedy, then swaps and moves while they help",
	"bound":         "a linear program over all co-locations, rounded and improved",
}

// wordsOf is policyWords for a policy with parameters too.
func wordsOf(policy string) string {
	if words, known := policyWords[policy]; known {
		return words
	}
	name, params, _ := strings.Cut(policy, ":")
	words := policyWords[name]
	if params == "pessimism=0" {
		words += "; takes predictions as they are"
	}
	return words
}

// whyCareful says what it brings here that policies which search take
// predictions lower, by the plans of those that do and those that do not.
func (p *planInput) whyCareful(plans []plan) string {
	if p.unsure < doubtful {
		return fmt.Sprintf("The model is unsure of what it predicts by %.0f %% (median), so policies take it as it is.", 100*p.unsure)
	}
	by := map[string]plan{}
	for _, r := range plans {
		by[r.Policy] = r
	}
	var parts []string
	for _, text := range trusting {
		name, _, _ := strings.Cut(text, ":")
		parts = append(parts, fmt.Sprintf("%s was promised %s and reached %s; %s reached %s",
			text, by[text].ValuePredicted.text(4), by[text].ValueTrue.text(4), name, by[name].ValueTrue.text(4)))
	}
	return fmt.Sprintf("The model is unsure of what it predicts by %.0f %% (median). A search finds first what it over-predicts, so policies that search take predictions\nlower by a standard deviation; pessimism=0 turns that off:\n%s.", 100*p.unsure, strings.Join(parts, "\n"))
}

// report is what the policies made of the batch, for the page.
func (p *planInput) report(limit limitOf, plans []plan, failures []failure) report.Plan {
	out := report.Plan{
		Batch: map[string]int{}, Nodes: len(p.snapshot.Nodes()), Objective: measureWords(p.objective), Minimises: p.objective.Minimises(),
		Sees: p.source.beliefName, Judge: "what was measured", Bound: report.Bound{Value: limit.value, Proven: limit.proven},
	}
	for i, w := range p.batch.workloads {
		out.Batch[w] = p.batch.counts[i]
	}
	for i, n := range p.snapshot.Nodes() {
		if i == 0 {
			out.Slots = n.Slots
		} else if n.Slots != out.Slots {
			out.Slots = 0
		}
	}
	for _, r := range plans {
		out.Policies = append(out.Policies, report.Policy{
			Name: r.Policy, Words: wordsOf(r.Policy), Predicted: float64(r.ValuePredicted), True: float64(r.ValueTrue),
			Share: float64(r.Share), Held: len(r.Held), Seconds: float64(r.Seconds), Nodes: p.loads(r),
		})
	}
	for _, f := range failures {
		out.Policies = append(out.Policies, report.Policy{
			Name: f.policy, Words: wordsOf(f.policy), Error: f.err.Error(),
			Predicted: math.NaN(), True: math.NaN(), Share: math.NaN(), Seconds: math.NaN(),
		})
	}
	return out
}

// loads is what every node runs in the end, and how fast.
func (p *planInput) loads(r plan) []report.Node {
	with := map[string]cluster.Colocation{}
	for _, n := range r.Placement {
		with[n.Node] = n.Colocation
	}
	judge, _ := p.source.judge()
	var out []report.Node
	for _, n := range p.snapshot.Nodes() {
		load := report.Node{Name: n.Name, Class: n.Class, Slots: n.Slots, Tasks: with[n.Name], Performance: map[string]float64{}}
		if len(load.Tasks) > 0 {
			row := judge.Predict(place.ModelClass(judge, n.Class), history.Rate, []cluster.Colocation{load.Tasks})[0]
			for i, w := range load.Tasks.Workloads() {
				if row[i].Known {
					load.Performance[w] = row[i].Value
				}
			}
		}
		out = append(out, load)
	}
	return out
}
