package baseline

import (
	"fmt"
	"math"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
)

var paragonEntry = entry{
	name:      "paragon",
	needModel: true,
	params:    []Param{{"qos", "0.95", "performance that a task must keep, 0 to 1"}},
	make: func(o Options, s settings) (place.Policy, error) {
		qos, err := s.number("qos", 0, 1)
		return Paragon{Model: o.Model, QoS: qos, Explain: o.Explain}, err
	},
}

// Paragon classifies each workload by the interference that it causes, c, and
// that it tolerates, t, and matches the two (Delimitrou and Kozyrakis:
// Paragon: QoS-aware scheduling for heterogeneous datacenters, ASPLOS 2013,
// classification for interference and greedy server selection). For a new task it computes on every node
//
//	D1 = t(node) - c(task)  what the residents can still stand
//	D2 = t(task) - c(node)  what the newcomer can still stand
//
// and takes, among the nodes with both at least 0, one with the least D1 + D2:
// the tightest match, so that tolerant nodes stay free for those who need
// them. Where no node has both, it relaxes the demand: the node with the
// smallest violation. Among equals the better platform wins, then the lowest
// node index.
//
// The paper measures c and t with microbenchmarks, one per shared resource.
// Here other workloads are the probes, and interference is one number: c of
// a workload is the performance that one task of it costs a neighbour, on
// average over the pairs that the model knows; the neighbours' losses against
// the c of what causes them give the slope of a workload's sensitivity, and
// t = (1 - QoS) / slope is the interference at which it falls to QoS. On a
// node, c adds up, and t is that of the most sensitive resident, less the c of
// its neighbours; an empty node tolerates everything that was seen. The platforms are the classes of nodes; the better one is
// where the workload keeps more performance over its pairs.
type Paragon struct {
	Model   interference.Model
	QoS     float64
	Explain bool
}

// Place implements place.Policy.
func (p Paragon) Place(req place.Request) (place.Decision, error) {
	placement := cluster.NewPlacement(req.View, req.Tasks())
	return newRanked(req, placement, newParagonRank(p, req, placement), false).place(p.Explain), nil
}

func newParagonRank(p Paragon, req place.Request, placement *cluster.Placement) *paragonRank {
	r := &paragonRank{placement: placement, nodes: req.View.Nodes(), classes: map[string]int{}}
	for _, n := range r.nodes {
		if _, ok := r.classes[n.Class]; !ok {
			r.classes[n.Class] = len(r.profiles)
			r.profiles = append(r.profiles, classify(p.Model, n.Class, placement.Workloads(), p.QoS))
		}
		r.class = append(r.class, r.classes[n.Class])
	}
	return r
}

// classification is what Paragon knows of the workloads on a class.
type classification struct {
	caused    []float64 // by workload number
	tolerated []float64
	platform  []float64 // mean performance over the pairs: how well the class suits the workload
	most      float64   // one task of everything: what no tolerance exceeds
}

// classify asks the model for every pair. A pair about which it is silent
// counts for nothing; a workload without known pairs causes nothing and
// tolerates everything that was seen.
func classify(m interference.Model, class string, workloads []string, qos float64) classification {
	n := len(workloads)
	var pairs []cluster.Colocation
	for i := range n {
		for j := i; j < n; j++ {
			pairs = append(pairs, cluster.Colocation{workloads[i]: 1}.With(workloads[j]))
		}
	}
	rows := m.Predict(place.ModelClass(m, class), history.Rate, pairs)
	// loss[i*n+j] is what a task of i loses beside one of j; NaN where unknown.
	loss := make([]float64, n*n)
	at := 0
	for i := range n {
		for j := i; j < n; j++ {
			row := rows[at]
			at++
			ij, ji := row[0], row[len(row)-1]
			if workloads[i] > workloads[j] {
				ij, ji = ji, ij
			}
			loss[i*n+j], loss[j*n+i] = lossOf(ij), lossOf(ji)
		}
	}
	c := classification{make([]float64, n), make([]float64, n), make([]float64, n), 0}
	for w := range n {
		caused, suffered, known := 0.0, 0.0, 0
		for v := range n {
			if in := loss[v*n+w]; !math.IsNaN(in) {
				caused += max(0, in)
				suffered += loss[w*n+v]
				known++
			}
		}
		if known > 0 {
			c.caused[w] = caused / float64(known)
			c.platform[w] = 1 - suffered/float64(known)
		}
		c.most += c.caused[w]
	}
	for w := range n {
		// Least squares through the origin: losses against what causes them.
		product, square := 0.0, 0.0
		for v := range n {
			if l := loss[w*n+v]; !math.IsNaN(l) {
				product += l * c.caused[v]
				square += c.caused[v] * c.caused[v]
			}
		}
		// Nothing tolerates more than one of everything; that also stands for
		// workloads that no neighbour was seen to harm.
		c.tolerated[w] = c.most
		if product > 0 {
			c.tolerated[w] = min(c.most, (1-qos)*square/product)
		}
	}
	return c
}

func lossOf(e interference.Estimate) float64 {
	if !e.Known {
		return math.NaN()
	}
	return 1 - e.Value
}

type paragonRank struct {
	placement *cluster.Placement
	nodes     []cluster.Node
	class     []int // by node
	classes   map[string]int
	profiles  []classification
}

// match is D1 and D2 of a task of workload w on a node.
func (r *paragonRank) match(w, node int) (d1, d2 float64) {
	c := &r.profiles[r.class[node]]
	counts := r.placement.Counts(node)
	total := 0.0
	for v, k := range counts {
		total += float64(k) * c.caused[v]
	}
	d1 = c.most
	for v, k := range counts {
		if k > 0 {
			d1 = min(d1, c.tolerated[v]-(total-c.caused[v]))
		}
	}
	return d1 - c.caused[w], c.tolerated[w] - total
}

// apart is how much better any score within tolerance is than one outside,
// and platformTie how little the platform may weigh against D1 + D2.
const (
	apart       = 1e6
	platformTie = 1e-6
)

func (r *paragonRank) score(w, node int) float64 {
	d1, d2 := r.match(w, node)
	tie := platformTie * r.profiles[r.class[node]].platform[w]
	if d1 >= 0 && d2 >= 0 {
		return tie - (d1 + d2)
	}
	return tie - apart - max(0, -d1) - max(0, -d2)
}

func (r *paragonRank) rank(kind int, candidates []int, _ int, scores []float64) {
	w := r.placement.Workload(kind)
	for i, n := range candidates {
		scores[i] = r.score(w, n)
	}
}

func (*paragonRank) counted(int, int, int) {}

func (r *paragonRank) reason(kind, node int) place.Reason {
	d1, d2 := r.match(r.placement.Workload(kind), node)
	how := "within what both sides tolerate, and the tightest such match"
	if d1 < 0 || d2 < 0 {
		how = "beyond what is tolerated, but by less than elsewhere"
	}
	return place.Reason{
		Words:  fmt.Sprintf("%s: its tasks tolerate %+.3g more than the newcomer causes, the newcomer %+.3g more than they cause: %s", r.nodes[node].Name, d1, d2, how),
		Scores: map[string]float64{"residents_tolerate": d1, "newcomer_tolerates": d2},
	}
}
