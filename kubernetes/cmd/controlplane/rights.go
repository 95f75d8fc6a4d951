package main

import (
	"context"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/kubernetes/controlplane"
)

// allowGangs gives the schedulers of a plane the rights that the chart gives ours
// beyond kube-scheduler's own: to read the objects of gangs, and to evict.
func allowGangs(ctx context.Context, plane *controlplane.Plane) error {
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}}}
	for _, r := range formats.GangResources {
		at := slices.IndexFunc(rules, func(p rbacv1.PolicyRule) bool { return p.APIGroups[0] == r.Group })
		if at < 0 {
			at = len(rules)
			rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{r.Group}, Verbs: []string{"list", "watch"}})
		}
		rules[at].Resources = append(rules[at].Resources, r.Resource)
	}
	return plane.Allow(ctx, "cotenant-scheduler-gangs", rules...)
}
