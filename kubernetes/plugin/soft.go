package plugin

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/cotenant/cotenant/kubernetes/plugin/plan"
	"github.com/cotenant/cotenant/kubernetes/plugin/pods"
)

// Soft rules come before what a policy wants: a pod is planned onto the nodes
// that the scheduler's own scores rate best by its soft rules, and onto others
// only where there is no place on these. What is scored is what runs; so pods
// with soft rules about other pods are planned one at a time.

// mostRated bounds the sets of nodes that are tried one after the other.
const mostRated = 8

// softRules are the stock plugins that score by soft rules which the pod has, or
// nodes have for it; nil where there are none. The scheduler's default for spread
// is no rule of the pod, and rules of other pods about it are not its own.
func softRules(pod *v1.Pod, infos []fwk.NodeInfo) []string {
	var rules []string
	if pods.PrefersNodes(pod) {
		rules = append(rules, names.NodeAffinity)
	}
	if pods.PrefersPods(pod) {
		rules = append(rules, names.InterPodAffinity)
	}
	if pods.PrefersSpread(pod) {
		rules = append(rules, names.PodTopologySpread)
	}
	if slices.ContainsFunc(infos, func(info fwk.NodeInfo) bool { return info.Node() != nil && pods.Repels(info.Node()) }) {
		rules = append(rules, names.TaintToleration)
	}
	return rules
}

// preferred puts before the nodes that the filters admit the pod to those of them
// that its soft rules rate best, second best, and so on. state is that of the
// filters' cycle.
func (c *core) preferred(ctx context.Context, state *framework.CycleState, pod *v1.Pod, infos []fwk.NodeInfo, admitted *plan.Allowed) *plan.Allowed {
	rules := softRules(pod, infos)
	if len(rules) == 0 {
		return admitted
	}
	var at []int
	var fit []fwk.NodeInfo
	for i, ok := range admitted.Node {
		if ok {
			at, fit = append(at, i), append(fit, infos[i])
		}
	}
	if len(fit) < 2 || !c.framework.RunPreScorePlugins(ctx, state, pod, fit).IsSuccess() {
		return admitted
	}
	scores, status := c.framework.RunScorePlugins(ctx, state, pod, fit)
	if !status.IsSuccess() {
		return admitted
	}
	rated := map[int64][]int{}
	for i := range scores {
		sum := int64(0)
		for _, s := range scores[i].Scores { // with their weights
			if slices.Contains(rules, s.Name) {
				sum += s.Score
			}
		}
		rated[sum] = append(rated[sum], at[i])
	}
	return nested(rated, admitted)
}

// nested are the sets of the best, of the best and the second best, and so on,
// each before the next, and all before what is admitted.
func nested(rated map[int64][]int, admitted *plan.Allowed) *plan.Allowed {
	var ratings []int64
	for r := range rated {
		ratings = append(ratings, r)
	}
	slices.Sort(ratings)
	slices.Reverse(ratings)
	ratings = ratings[:min(len(ratings)-1, mostRated)] // with the last, they are all
	sets := make([][]bool, len(ratings))
	for i, r := range ratings {
		if i == 0 {
			sets[i] = make([]bool, len(admitted.Node))
		} else {
			sets[i] = slices.Clone(sets[i-1])
		}
		for _, node := range rated[r] {
			sets[i][node] = true
		}
	}
	out := admitted
	for _, set := range slices.Backward(sets) {
		out = &plan.Allowed{Name: nameOf(set) + "," + out.Name, Node: set, Else: out}
	}
	return out
}

// alone reports whether a pod is planned for at its own turn, and no other with it.
// A policy for jobs has gangs whole.
func (c *core) alone(e *entry) bool {
	return (pods.PrefersPods(e.pod) || pods.PrefersSpread(e.pod)) && (e.view.Gang == nil || c.args.JobsPolicy == nil)
}
