package plugin

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"sync"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/explain"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/kubernetes/plugin/brain"
	"github.com/cotenant/cotenant/kubernetes/plugin/config"
	"github.com/cotenant/cotenant/kubernetes/plugin/plan"
	"github.com/cotenant/cotenant/kubernetes/plugin/pods"
	"github.com/cotenant/cotenant/place"
)

// scoreKey holds what a pod adds to each node, from PreScore to Score.
const scoreKey fwk.StateKey = "cotenant.dev/score"

// gains are by node: by how much the sum of the performances on it rises with
// the pod.
type gains struct {
	state    *brain.State
	workload string
}

func (g *gains) Clone() fwk.StateData { return g }

// scoreMemory remembers the sums of performances of co-locations, for one
// version of the files.
type scoreMemory struct {
	mu    sync.Mutex
	state *brain.State
	sums  map[string]float64
	// panicked is of what the model panicked.
	panicked string
}

// mostSums bounds the memory, some 100 bytes each.
const mostSums = 1 << 17

// PreScore implements framework.PreScorePlugin: it scores in the mode assist,
// what the model knows.
func (p *Plugin) PreScore(_ context.Context, state fwk.CycleState, pod *v1.Pod, _ []fwk.NodeInfo) *fwk.Status {
	if p.args.ModeOf(pod.Namespace) != config.Assist {
		return fwk.NewStatus(fwk.Skip)
	}
	s, w := p.brain.Now(), pods.Workload(pod)
	if !s.Known(w) {
		return fwk.NewStatus(fwk.Skip)
	}
	state.Write(scoreKey, &gains{s, w})
	return nil
}

// assisted notes what was decided of a pod in the mode assist. It is for Reserve:
// PreScore is left out where one node alone takes the pod, and where it is batched.
func (p *Plugin) assisted(state fwk.CycleState, pod *v1.Pod, node string) {
	s := p.brain.Now()
	d := &Decision{explain.Decision{Mode: string(config.Assist), Version: s.Version, Policy: "score", Node: node}}
	var why plan.Reason
	if w := pods.Workload(pod); !s.Known(w) {
		why = unknown(s, w)
	} else if words := p.scores.broken(s); words != "" {
		why = plan.Reason{Code: plan.PolicyPanicked, Words: "the model panicked: " + words}
	}
	if why.Code != "" {
		d.give(why)
		p.record.fallback(pod, why)
	}
	state.Write(decisionKey, d)
}

// Score implements framework.ScorePlugin. It depends on nothing but the pod's
// workload and what is on the node, so that OpportunisticBatching may keep it.
func (p *Plugin) Score(_ context.Context, state fwk.CycleState, _ *v1.Pod, info fwk.NodeInfo) (int64, *fwk.Status) {
	data, err := state.Read(scoreKey)
	g, ok := data.(*gains)
	if err != nil || !ok || info.Node() == nil {
		return *p.args.Neutral, nil
	}
	on, class := colocation(info, g.state), g.state.Class(pods.Class(info.Node()))
	before, after := p.scores.sum(g.state, class, on), p.scores.sum(g.state, class, on.With(g.workload))
	score, odd := scoreOf(after-before, *p.args.Neutral)
	if odd {
		oddScores.Inc()
	}
	return score, nil
}

// ScoreExtensions implements framework.ScorePlugin.
func (p *Plugin) ScoreExtensions() fwk.ScoreExtensions { return nil }

func colocation(info fwk.NodeInfo, s *brain.State) cluster.Colocation {
	on := cluster.Colocation{}
	for _, p := range info.GetPods() {
		if w := pods.Workload(p.GetPod()); s.Known(w) && !pods.Ended(p.GetPod()) {
			on[w]++
		}
	}
	return on
}

// scoreOf maps a gain to 0..100: -1 and less to 0, 0 to 50, 1 (the pod runs as
// alone and slows nobody) and more to 100. What is no number is neutral.
func scoreOf(gain float64, neutral int64) (score int64, odd bool) {
	if math.IsNaN(gain) || math.IsInf(gain, 0) {
		return neutral, true
	}
	return int64(math.Round(50 + 50*max(-1, min(1, gain)))), false
}

// sum is the sum of the performances in a co-location; NaN where the model is
// silent about one, or it is larger than any that was measured.
func (m *scoreMemory) sum(s *brain.State, class string, on cluster.Colocation) float64 {
	if on.Tasks() == 0 {
		return 0
	}
	key := class + "\x00" + on.Key()
	m.mu.Lock()
	if m.state != s || len(m.sums) > mostSums {
		m.state, m.sums, m.panicked = s, map[string]float64{}, ""
	}
	total, ok := m.sums[key]
	m.mu.Unlock()
	if ok {
		return total
	}
	total, panicked := predicted(s, class, on)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.state == s {
		m.sums[key] = total
		m.panicked = cmp.Or(m.panicked, panicked)
	}
	return total
}

// predicted is the sum as the model has it; panicked says of what the model
// panicked, "" where it did not.
func predicted(s *brain.State, class string, on cluster.Colocation) (total float64, panicked string) {
	defer func() {
		if r := recover(); r != nil {
			total, panicked = math.NaN(), fmt.Sprint(r)
		}
	}()
	if most := s.Most(class); most > 0 && on.Tasks() > most {
		return math.NaN(), ""
	}
	row := s.Model.Predict(place.ModelClass(s.Model, class), history.Rate, []cluster.Colocation{on})[0]
	return performances(row, on), ""
}

// broken says of what the model panicked, of the files in use; "" where it has not.
func (m *scoreMemory) broken(s *brain.State) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.state != s {
		return ""
	}
	return m.panicked
}

func performances(row []interference.Estimate, on cluster.Colocation) float64 {
	total := 0.0
	for i, w := range on.Workloads() {
		if !row[i].Known {
			return math.NaN()
		}
		total += float64(on[w]) * row[i].Value
	}
	return total
}
