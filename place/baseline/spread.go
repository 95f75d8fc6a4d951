package baseline

import (
	"fmt"
	"math"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/place"
)

var spreadEntry = entry{
	name: "spread",
	params: []Param{
		{"topology", "on", "on or off: count PodTopologySpread's soft defaults"},
		{"ties", "random", "random or first: which of the best nodes"},
	},
	make: func(o Options, s settings) (place.Policy, error) {
		topology, err := s.choice("topology", "on", "off")
		if err != nil {
			return nil, err
		}
		ties, err := s.choice("ties", "random", "first")
		return Spread{Topology: topology == "on", RandomTies: ties == "random", Explain: o.Explain}, err
	},
}

// Spread is kube-scheduler with its default plugins and weights, as far as
// they concern what a Snapshot holds: NodeResourcesFit by LeastAllocated (1),
// NodeResourcesBalancedAllocation (1), PodTopologySpread by its soft system
// defaults (2; a workload's tasks apart over hosts with maxSkew 3 and zones
// with maxSkew 5) and TaintToleration (3; PreferNoSchedule). Scores are whole
// numbers from 0 to 100, as there.
//
// Source: kubernetes.io/docs/reference/scheduling/config and
// .../concepts/scheduling-eviction/topology-spread-constraints.
type Spread struct {
	// Topology counts PodTopologySpread.
	Topology bool
	// RandomTies draws among the best nodes, as kube-scheduler does; otherwise,
	// or without a Request.Rand, the first of them is taken.
	RandomTies bool
	Explain    bool
}

// Place implements place.Policy.
func (s Spread) Place(req place.Request) (place.Decision, error) {
	p := cluster.NewPlacement(req.View, req.Tasks())
	r := &spreadRank{allocation: newAllocation(req, p), topology: s.Topology}
	r.findTaints(req.View)
	if s.Topology {
		r.countZones()
	}
	return newRanked(req, p, r, s.RandomTies).place(s.Explain), nil
}

// numberDomains numbers the domains of a key by first node; -1 for nodes
// without the label.
func numberDomains(nodes []cluster.Node, key string) (of []int, n int) {
	index := map[string]int{}
	of = make([]int, len(nodes))
	for i := range nodes {
		of[i] = -1
		if d, ok := nodes[i].Domain(key); ok {
			if _, seen := index[d]; !seen {
				index[d] = len(index)
			}
			of[i] = index[d]
		}
	}
	return of, len(index)
}

func (r *spreadRank) countZones() {
	r.zoneOf, r.zones = numberDomains(r.nodes, cluster.ZoneKey)
	r.inZone = make([]int, len(r.placement.Workloads())*r.zones)
	for n, z := range r.zoneOf {
		if z >= 0 {
			for w, k := range r.placement.Counts(n) {
				r.inZone[w*r.zones+z] += k
			}
		}
	}
}

func (r *spreadRank) counted(kind, node, by int) {
	r.allocation.counted(kind, node, by)
	if r.zones > 0 && r.zoneOf[node] >= 0 {
		r.inZone[r.placement.Workload(kind)*r.zones+r.zoneOf[node]] += by
	}
}

type spreadRank struct {
	*allocation
	topology bool
	zoneOf   []int
	zones    int
	soft     [][]int // by workload, then node: PreferNoSchedule taints not tolerated; nil where there are none

	inZone []int // [workload*zones+zone]: its tasks in the zone

	apart    []float64 // scratch of rank
	fraction []float64
}

func (r *spreadRank) findTaints(view *cluster.Snapshot) {
	tolerations := view.Constraints().Tolerations
	r.soft = make([][]int, len(r.placement.Workloads()))
	for w, name := range r.placement.Workloads() {
		for n := range r.nodes {
			for _, taint := range r.nodes[n].Taints {
				tolerated := taint.Effect != cluster.PreferNoSchedule
				for _, t := range tolerations[name] {
					tolerated = tolerated || t.Tolerates(taint)
				}
				if !tolerated {
					if r.soft[w] == nil {
						r.soft[w] = make([]int, len(r.nodes))
					}
					r.soft[w][n]++
				}
			}
		}
	}
}

// Weights of the default plugins.
const (
	topologyWeight = 2
	taintWeight    = 3
)

func (r *spreadRank) rank(kind int, candidates []int, fit int, scores []float64) {
	w := r.placement.Workload(kind)
	for i, n := range candidates {
		scores[i] = r.least(kind, n) + r.balanced(kind, n)
	}
	if r.topology {
		for i, s := range r.topologyScores(w, candidates, fit) {
			scores[i] += topologyWeight * s
		}
	}
	if soft := r.soft[w]; soft != nil {
		most := 0
		for _, n := range candidates {
			most = max(most, soft[n])
		}
		for i, n := range candidates {
			if most > 0 {
				scores[i] += taintWeight * math.Floor(100-100*float64(soft[n])/float64(most))
			}
		}
	}
}

// least is LeastAllocated: the mean free share of the resources, in whole per
// cent each.
func (r *spreadRank) least(kind, node int) float64 {
	r.fraction = r.fractions(kind, node, r.fraction[:0])
	if len(r.fraction) == 0 {
		return 0
	}
	sum := 0.0
	for _, f := range r.fraction {
		sum += wholePercent(1 - f)
	}
	return math.Floor(sum / float64(len(r.fraction)))
}

// wholePercent rounds down, but not where floating point fell just short.
func wholePercent(share float64) float64 { return math.Floor(100*share + 1e-9) }

// balanced is BalancedAllocation: 100 less the standard deviation of the
// taken shares.
func (r *spreadRank) balanced(kind, node int) float64 {
	r.fraction = r.fractions(kind, node, r.fraction[:0])
	if len(r.fraction) < 2 {
		return 100
	}
	// Of two numbers, which CPU and memory are, it is half their distance.
	return wholePercent(1 - math.Abs(r.fraction[0]-r.fraction[1])/2)
}

// topologyScores is PodTopologySpread's score: per constraint the tasks of
// the workload in the node's domain, weighted by log(domains+2), plus
// maxSkew-1; then turned round so that the fewest score 100.
func (r *spreadRank) topologyScores(w int, candidates []int, fit int) []float64 {
	const hostSkew, zoneSkew = 3, 5
	hosts, zones := math.Log(float64(fit+2)), math.Log(float64(r.zones+2))
	r.apart = r.apart[:0]
	least, most := math.Inf(1), 0.0
	for _, n := range candidates {
		s := float64(r.placement.Counts(n)[w])*hosts + hostSkew - 1
		if r.zones > 0 && r.zoneOf[n] >= 0 {
			s += float64(r.inZone[w*r.zones+r.zoneOf[n]])*zones + zoneSkew - 1
		}
		s = math.Round(s)
		least, most = min(least, s), max(most, s)
		r.apart = append(r.apart, s)
	}
	for i, s := range r.apart {
		r.apart[i] = 100
		if most > 0 {
			r.apart[i] = math.Floor(100 * (most + least - s) / most)
		}
	}
	return r.apart
}

func (r *spreadRank) reason(kind, node int) place.Reason {
	name := r.placement.Workloads()[r.placement.Workload(kind)]
	tasks := "tasks"
	if r.tasks(node) == 1 {
		tasks = "task"
	}
	return place.Reason{
		Words: fmt.Sprintf("%s has the most room and the fewest of %s: it runs %d %s, %d of them %s",
			r.nodes[node].Name, name, r.tasks(node), tasks, r.placement.Counts(node)[r.placement.Workload(kind)], name),
		Scores: map[string]float64{"least_allocated": r.least(kind, node), "balanced_allocation": r.balanced(kind, node)},
	}
}
