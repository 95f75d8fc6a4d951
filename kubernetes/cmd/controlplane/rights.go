package main

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	const name = "cotenant-scheduler-gangs"
	roles := plane.Client().RbacV1()
	if _, err := roles.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("rights of the schedulers: %w", err)
	}
	_, err := roles.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "system:kube-scheduler"}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("rights of the schedulers: %w", err)
	}
	return nil
}
