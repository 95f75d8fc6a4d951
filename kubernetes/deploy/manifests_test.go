package deploy_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cotenant/cotenant/data"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/kubernetes/controlplane"
	"github.com/cotenant/cotenant/kubernetes/controlplane/planetest"
)

// TestManifestsShadow applies the plain manifests and runs what they say: beside
// the stock scheduler, in the mode shadow, and at first without a model.
func TestManifestsShadow(t *testing.T) {
	i := &installed{cluster: newCluster(t, 3)}
	i.kubelet = newKubelet(t, i.plane)
	must(i.plane.StartScheduler(i.ctx, stock))(t)
	text, err := os.ReadFile("manifests.yaml")
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for range 2 { // what is applied again does not change
		for _, o := range objects(t, string(text)) {
			got, err := i.applied(o)
			if err != nil {
				t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
			}
			key := o.GetKind() + "/" + o.GetName()
			if now := fmt.Sprint(got.GetGeneration()); versions[key] == "" {
				versions[key] = now
			} else if versions[key] != now {
				t.Errorf("%s changed when it was applied again", key)
			}
		}
	}
	i.start()
	i.create(pod("early", "red"))
	i.bound("early")
	for _, r := range i.replicas {
		if e := i.event(namespace, r.name, "CotenantFilesRefused"); e.Type != corev1.EventTypeWarning || !strings.Contains(e.Note, "model.safetensors: no such file") || e.Series != nil {
			t.Errorf("without a model, event %s %q, again: %v", e.Type, e.Note, e.Series)
		}
		if err := r.probe(i.ctx, r.probes.LivenessProbe); err != nil {
			t.Errorf("without a model: %v", err)
		}
	}
	i.model(fitted(t, planetest.TwoColours))
	i.sync()
	for _, r := range i.replicas {
		i.event(namespace, r.name, "CotenantFilesLoaded")
	}
	i.create(pod("a", "red"), pod("b", "red"), pod("theirs", "red", func(p *corev1.Pod) { p.Spec.SchedulerName = "default-scheduler" }))
	i.bound("a", "b", "theirs")
	for _, name := range []string{"a", "b"} {
		i.event("default", name, "Scheduled")
		if e := i.event("default", name, "CotenantShadow"); !strings.Contains(e.Note, i.version(i.replicas[0])) {
			t.Errorf("the event does not name the version of the model: %s", e.Note)
		}
	}
	log, err := i.plane.AuditLog()
	if err != nil {
		t.Fatal(err)
	}
	if _, refused := asked(log); len(refused) > 0 {
		t.Errorf("the API server refused: %v", refused)
	}
	for _, r := range i.replicas {
		for _, line := range r.complaints(t) {
			t.Errorf("%s complains: %s", r.name, line)
		}
	}
}

// TestHelmLifecycle installs, upgrades, rolls back and uninstalls.
func TestHelmLifecycle(t *testing.T) {
	c := newCluster(t, 3)
	must(c.plane.StartScheduler(c.ctx, stock))(t)
	c.namespace()
	run := func(args ...string) string {
		t.Helper()
		out, err := helm(t, append(args, "--kubeconfig", c.plane.Kubeconfig(), "--namespace", namespace)...)
		if err != nil {
			t.Fatalf("helm %v: %v", args, err)
		}
		return out
	}
	configuration := func() string {
		t.Helper()
		m := must(c.kube.CoreV1().ConfigMaps(namespace).Get(c.ctx, scheduler, metav1.GetOptions{}))(t)
		return m.Data["scheduler.yaml"]
	}
	names := func() (all []string) {
		for _, p := range c.replicas(2) {
			all = append(all, p.Name)
		}
		return all
	}
	if notes := run("install", release, "chart", "--wait"); !strings.Contains(notes, "create configmap cotenant-model") || !strings.Contains(notes, "in the mode shadow") {
		t.Errorf("notes:\n%s", notes)
	}
	first := names()
	c.model(fitted(t, planetest.TwoColours))
	if notes := run("upgrade", release, "chart", "--wait", "--set", "cotenant.mode=enforce"); strings.Contains(notes, "create configmap") || !strings.Contains(notes, "It goes by model.safetensors") {
		t.Errorf("notes where there is a model:\n%s", notes)
	}
	if notes := run("upgrade", release, "chart", "--dry-run=server", "--set", "cotenant.samples.path=/etc/cotenant/samples.jsonl"); !strings.Contains(notes, "lacks samples.jsonl") {
		t.Errorf("notes where a file is not in the ConfigMap:\n%s", notes)
	}
	if !strings.Contains(configuration(), "mode: enforce") {
		t.Errorf("after the upgrade:\n%s", configuration())
	}
	c.until("the configuration's change makes other pods", func() (bool, error) {
		return !slices.ContainsFunc(names(), func(name string) bool { return slices.Contains(first, name) }), nil
	})
	run("rollback", release, "1", "--wait")
	if !strings.Contains(configuration(), "mode: shadow") {
		t.Errorf("after the rollback:\n%s", configuration())
	}
	run("uninstall", release, "--wait")
	for what, list := range left(c) {
		if len(list) > 0 {
			t.Errorf("left behind: %s %v", what, list)
		}
	}
}

// left is what the chart's objects left behind, by kind.
func left(c *cluster) map[string][]string {
	c.Helper()
	ours := metav1.ListOptions{LabelSelector: "app.kubernetes.io/part-of=cotenant"}
	out := map[string][]string{}
	note := func(kind string, names ...string) { out[kind] = append(out[kind], names...) }
	kube := c.kube
	for _, o := range must(kube.RbacV1().ClusterRoles().List(c.ctx, ours))(c.T).Items {
		note("ClusterRole", o.Name)
	}
	for _, o := range must(kube.RbacV1().ClusterRoleBindings().List(c.ctx, ours))(c.T).Items {
		note("ClusterRoleBinding", o.Name)
	}
	for _, o := range must(kube.RbacV1().RoleBindings("").List(c.ctx, ours))(c.T).Items {
		note("RoleBinding", o.Namespace, o.Name)
	}
	for _, o := range must(kube.RbacV1().Roles("").List(c.ctx, ours))(c.T).Items {
		note("Role", o.Name)
	}
	for _, o := range must(kube.CoreV1().ConfigMaps("").List(c.ctx, ours))(c.T).Items {
		note("ConfigMap", o.Name)
	}
	for _, o := range must(kube.CoreV1().ServiceAccounts("").List(c.ctx, ours))(c.T).Items {
		note("ServiceAccount", o.Name)
	}
	for _, o := range must(kube.AppsV1().Deployments("").List(c.ctx, ours))(c.T).Items {
		note("Deployment", o.Name)
	}
	for _, o := range must(kube.PolicyV1().PodDisruptionBudgets("").List(c.ctx, ours))(c.T).Items {
		note("PodDisruptionBudget", o.Name)
	}
	return out
}

// TestInPlaceOfTheStockScheduler shares the stock scheduler's lease and name: it
// stands by while that one runs, and goes on when it is gone.
func TestInPlaceOfTheStockScheduler(t *testing.T) {
	c := newCluster(t, 3)
	i := &installed{cluster: c, kubelet: newKubelet(t, c.plane)}
	theirs := must(c.plane.StartScheduler(c.ctx, controlplane.Scheduler{Program: "kube-scheduler", Configuration: "leaderElection: {leaderElect: true}"}))(t)
	c.namespace()
	c.model(fitted(t, planetest.TwoColours))
	if _, err := helm(t, "install", release, "chart", "--kubeconfig", c.plane.Kubeconfig(), "--namespace", namespace,
		"--set", "scheduler.name=default-scheduler,scheduler.lease.name=kube-scheduler,scheduler.lease.namespace=kube-system"); err != nil {
		t.Fatal(err)
	}
	i.start()
	named := func(p *corev1.Pod) { p.Spec.SchedulerName = "default-scheduler" }
	c.create(pod("before", "red", named))
	if p := c.bound("before")["before"]; p.Annotations["cotenant.dev/decision"] != "" {
		t.Error("ours bound a pod while the stock scheduler held the lease")
	}
	if err := theirs.Kill(); err != nil {
		t.Fatal(err)
	}
	c.create(pod("after", "red", named), pod("after-2", "red", named))
	c.bound("after", "after-2")
	if err := theirs.Start(c.ctx); err != nil { // stands by
		t.Fatal(err)
	}
	for _, r := range i.replicas {
		if err := r.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	c.create(pod("last", "red", named))
	c.bound("last")
	log := must(c.plane.AuditLog())(t)
	by := map[string]string{}
	for n := range log {
		e := &log[n]
		if e.ObjectRef != nil && e.ObjectRef.Subresource == "binding" && e.ObjectRef.Namespace == "default" {
			by[e.ObjectRef.Name] += e.User.Username
		}
	}
	ours := "system:serviceaccount:" + namespace + ":default-scheduler"
	want := map[string]string{"before": "system:kube-scheduler", "after": ours, "after-2": ours, "last": "system:kube-scheduler"}
	if fmt.Sprint(by) != fmt.Sprint(want) {
		t.Errorf("bound by %v, want %v", by, want)
	}
	if _, refused := asked(log); len(refused) > 0 {
		t.Errorf("the API server refused: %v", refused)
	}
}

// A ConfigMap holds 1 MiB. What ships, and models of what ships, are well below.
func TestModelsFitIntoConfigMaps(t *testing.T) {
	const most = corev1.MaxSecretSize // of ConfigMaps, too
	if interference.MaxFileSize >= most*3/4 {
		t.Errorf("cotenant fit warns above %d bytes; a ConfigMap holds %d", interference.MaxFileSize, most)
	}
	shipped, err := filepath.Glob("../../place/*/*.safetensors")
	if err != nil || len(shipped) == 0 {
		t.Fatalf("no policies ship (%v)", err)
	}
	for _, file := range shipped {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d bytes", filepath.Base(file), info.Size())
		if info.Size() > interference.MaxFileSize {
			t.Errorf("%s has %d bytes, more than %d", file, info.Size(), interference.MaxFileSize)
		}
	}
	samples, err := data.Samples()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range interference.Kinds() {
		model, err := interference.Fit(kind, samples, interference.Options{Steps: 1}) // as large as a trained one
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := interference.Save(&out, model); err != nil {
			t.Fatal(err)
		}
		t.Logf("a %s model of the measurements that ship: %d bytes", kind, out.Len())
		if out.Len() > interference.MaxFileSize {
			t.Errorf("a %s model has %d bytes, more than %d", kind, out.Len(), interference.MaxFileSize)
		}
	}
}
