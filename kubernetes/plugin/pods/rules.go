package pods

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// matches reports whether a pod's own term is about itself.
func matches(t v1.PodAffinityTerm, pod *v1.Pod) bool {
	if len(t.Namespaces) > 0 && !slices.Contains(t.Namespaces, pod.Namespace) {
		return false
	}
	s, err := metav1.LabelSelectorAsSelector(t.LabelSelector)
	return err == nil && s.Matches(labels.Set(pod.Labels))
}

// Spread is the strictest rule by which pods of the kind spread over the
// domains of each topology key, where the rule is hard and about the pods
// themselves.
func Spread(pod *v1.Pod) map[string]int {
	var out map[string]int
	for _, c := range pod.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable != v1.DoNotSchedule {
			continue
		}
		s, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
		if err != nil || !s.Matches(labels.Set(pod.Labels)) {
			continue
		}
		if out == nil {
			out = map[string]int{}
		}
		if old, ok := out[c.TopologyKey]; !ok || int(c.MaxSkew) < old {
			out[c.TopologyKey] = int(c.MaxSkew)
		}
	}
	return out
}

// PrefersNodes reports whether the pod says which nodes it would rather be on.
func PrefersNodes(pod *v1.Pod) bool {
	a := pod.Spec.Affinity
	return a != nil && a.NodeAffinity != nil && len(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0
}

// PrefersPods reports whether the pod says which pods it would rather be near, or
// away from.
func PrefersPods(pod *v1.Pod) bool {
	a := pod.Spec.Affinity
	return a != nil && (a.PodAffinity != nil && len(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0 ||
		a.PodAntiAffinity != nil && len(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0)
}

// PrefersSpread reports whether the pod would rather be where few of some pods are.
func PrefersSpread(pod *v1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.TopologySpreadConstraints, func(c v1.TopologySpreadConstraint) bool {
		return c.WhenUnsatisfiable == v1.ScheduleAnyway
	})
}

// Repels reports whether a node would rather not have pods that do not tolerate it.
func Repels(node *v1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t v1.Taint) bool { return t.Effect == v1.TaintEffectPreferNoSchedule })
}
