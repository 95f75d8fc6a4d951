package deploy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cotenant/cotenant/kubernetes/controlplane"
	"github.com/cotenant/cotenant/kubernetes/controlplane/planetest"
)

// TestBesideTheStockSchedulerWithoutAChart starts what docs/kubernetes.md shows,
// with the rights that it names, while the stock scheduler elects by its own
// lease: both schedule.
func TestBesideTheStockSchedulerWithoutAChart(t *testing.T) {
	planetest.Needs(t, "kube-scheduler", "cotenant-scheduler")
	page := string(must(os.ReadFile("../../docs/kubernetes.md"))(t))
	block := regexp.MustCompile("(?s)\n```yaml\n(apiVersion: kubescheduler.*?)\n```\n").FindStringSubmatch(page)
	if block == nil {
		t.Fatal("docs/kubernetes.md shows no configuration")
	}
	model := filepath.Join(t.TempDir(), "model.safetensors")
	if err := os.WriteFile(model, fitted(t, planetest.TwoColours), 0o600); err != nil {
		t.Fatal(err)
	}
	configuration := strings.ReplaceAll(block[1], "/etc/cotenant/model.safetensors", model)
	c := newCluster(t, 3)
	rbac := c.kube.RbacV1()
	must(rbac.Roles("kube-system").Create(c.ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: scheduler},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{scheduler}, Verbs: []string{"get", "update"},
		}},
	}, metav1.CreateOptions{}))(t)
	must(rbac.RoleBindings("kube-system").Create(c.ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: scheduler},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: scheduler},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "system:kube-scheduler"}},
	}, metav1.CreateOptions{}))(t)
	for _, s := range []controlplane.Scheduler{
		{Program: "kube-scheduler", Configuration: "leaderElection: {leaderElect: true}"},
		{Program: scheduler, Configuration: configuration},
	} {
		must(c.plane.StartScheduler(c.ctx, s))(t)
	}
	c.create(pod("theirs", "red", func(p *corev1.Pod) { p.Spec.SchedulerName = corev1.DefaultSchedulerName }), pod("ours", "red"))
	c.bound("theirs", "ours")
	c.event("default", "ours", "CotenantShadow")
	for _, lease := range []string{"kube-scheduler", scheduler} {
		if l := must(c.kube.CoordinationV1().Leases("kube-system").Get(c.ctx, lease, metav1.GetOptions{}))(t); l.Spec.HolderIdentity == nil {
			t.Errorf("nobody holds the lease %s", lease)
		}
	}
	if _, refused := asked(must(c.plane.AuditLog())(t)); len(refused) > 0 {
		t.Errorf("the API server refused: %v", refused)
	}
}
