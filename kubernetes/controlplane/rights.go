package controlplane

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Allow gives the plane's schedulers rights beyond those of kube-scheduler, by a
// ClusterRole and a binding of that name.
func (p *Plane) Allow(ctx context.Context, name string, rules ...rbacv1.PolicyRule) error {
	meta, roles := metav1.ObjectMeta{Name: name}, p.client.RbacV1()
	if _, err := roles.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("rights of schedulers: %w", err)
	}
	_, err := roles.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "system:kube-scheduler"}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("rights of schedulers: %w", err)
	}
	return nil
}
