package deploy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/kubernetes/controlplane"
	"github.com/cotenant/cotenant/kubernetes/controlplane/planetest"
	"github.com/cotenant/cotenant/kubernetes/plugin"
)

const scheduler = "cotenant-scheduler"

// cluster is a plane, and somebody who administers it.
type cluster struct {
	*testing.T
	ctx   context.Context
	plane *controlplane.Plane
	kube  kubernetes.Interface
}

// newCluster starts a plane whose API server audits, with the controllers of
// Deployments and of volumes, a stock scheduler and nodes of 4 cores.
func newCluster(t *testing.T, nodes int) *cluster {
	t.Helper()
	plane := planetest.Start(t, controlplane.Config{
		Audit:       true,
		Controllers: []string{"deployment-controller", "replicaset-controller", "persistentvolume-binder-controller"},
	}.WithGangs())
	c := &cluster{t, t.Context(), plane, plane.Client()}
	if err := plane.AddNodes(c.ctx, controlplane.Nodes(nodes, controlplane.NodeShape{CPU: "4"})...); err != nil {
		t.Fatal(err)
	}
	return c
}

// until waits for something to hold.
func (c *cluster) until(what string, holds func() (bool, error)) {
	c.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	for {
		ok, err := holds()
		if err == nil && ok {
			return
		}
		if time.Now().After(deadline) || c.ctx.Err() != nil {
			c.Fatalf("%s: not in time (%v)", what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// must ends the test on an error.
func must[O any](object O, err error) func(t *testing.T) O {
	return func(t *testing.T) O {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return object
	}
}

// namespace makes the chart's, which lets no pod in that could harm its node.
func (c *cluster) namespace() {
	c.Helper()
	must(c.kube.CoreV1().Namespaces().Create(c.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}, metav1.CreateOptions{}))(c.T)
}

// green is a third workload beside planetest.TwoColours.
const green = `{"colocation":{"green":1},"workload":"green","metric":"rate","value":1,"alone":1}
`

// fitted is a model file of samples.
func fitted(t *testing.T, samples string) []byte {
	t.Helper()
	read, _, err := formats.ReadSamples(strings.NewReader(samples), formats.Options{Name: "samples.jsonl"})
	if err != nil {
		t.Fatal(err)
	}
	model, err := interference.Fit(interference.KindTable, read, interference.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := interference.Save(&out, model); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// model puts a file into the ConfigMap, as `kubectl create configmap
// --from-file` does.
func (c *cluster) model(content []byte) {
	c.Helper()
	maps := c.kube.CoreV1().ConfigMaps(namespace)
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cotenant-model"}, BinaryData: map[string][]byte{"model.safetensors": content}}
	if _, err := maps.Update(c.ctx, m, metav1.UpdateOptions{}); err == nil {
		return
	}
	must(maps.Create(c.ctx, m, metav1.CreateOptions{}))(c.T)
}

// replicas are the pods of the Deployment once there are n, and they have nodes.
func (c *cluster) replicas(n int) []corev1.Pod {
	c.Helper()
	var pods *corev1.PodList
	c.until(fmt.Sprintf("%d pods of the Deployment run", n), func() (ok bool, err error) {
		pods, err = c.kube.CoreV1().Pods(namespace).List(c.ctx, metav1.ListOptions{
			LabelSelector: "app.kubernetes.io/name=cotenant-scheduler", FieldSelector: "status.phase=Running",
		})
		return err == nil && len(pods.Items) == n, err
	})
	return pods.Items
}

type option func(*corev1.Pod)

// pod is one of a workload that asks for a core.
func pod(name, workload string, options ...option) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"cotenant.dev/workload": workload}, Annotations: map[string]string{}},
		Spec: corev1.PodSpec{SchedulerName: scheduler, Containers: []corev1.Container{{
			Name: "main", Image: workload,
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}},
		}}},
	}
	for _, o := range options {
		o(p)
	}
	return p
}

func (c *cluster) create(pods ...*corev1.Pod) {
	c.Helper()
	for _, p := range pods {
		must(c.kube.CoreV1().Pods("default").Create(c.ctx, p, metav1.CreateOptions{}))(c.T)
	}
}

// bound waits until pods have nodes and returns them.
func (c *cluster) bound(names ...string) map[string]*corev1.Pod {
	c.Helper()
	all := map[string]*corev1.Pod{}
	for _, name := range names {
		c.until("pod "+name+" is bound", func() (bool, error) {
			p, err := c.kube.CoreV1().Pods("default").Get(c.ctx, name, metav1.GetOptions{})
			all[name] = p
			return err == nil && p.Spec.NodeName != "", err
		})
	}
	return all
}

// gone waits until a pod is deleted.
func (c *cluster) gone(name string) {
	c.Helper()
	c.until("pod "+name+" is deleted", func() (bool, error) {
		list, err := c.kube.CoreV1().Pods("default").List(c.ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		return err == nil && len(list.Items) == 0, err
	})
}

// clear deletes all pods of the workloads.
func (c *cluster) clear() {
	c.Helper()
	now := int64(0)
	if err := c.kube.CoreV1().Pods("default").DeleteCollection(c.ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{}); err != nil {
		c.Fatal(err)
	}
	c.until("no pods are left", func() (bool, error) {
		list, err := c.kube.CoreV1().Pods("default").List(c.ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 0, err
	})
}

// decision is what was written down of a pod.
func (c *cluster) decision(p *corev1.Pod) (d plugin.Decision) {
	c.Helper()
	if err := json.Unmarshal([]byte(p.Annotations["cotenant.dev/decision"]), &d); err != nil {
		c.Fatalf("pod %s: annotation %q: %v", p.Name, p.Annotations["cotenant.dev/decision"], err)
	}
	return d
}

// event waits for one about an object of a namespace.
func (c *cluster) event(space, name, reason string) *eventsv1.Event {
	c.Helper()
	var found *eventsv1.Event
	c.until("event "+reason+" of "+name, func() (bool, error) {
		all, err := c.kube.EventsV1().Events(space).List(c.ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for i, e := range all.Items {
			if e.Regarding.Name == name && e.Reason == reason {
				found = &all.Items[i]
			}
		}
		return found != nil, nil
	})
	return found
}

// who makes a ServiceAccount that may read what it is given of the paths, and
// returns its token.
func (c *cluster) who(name string, paths ...string) string {
	c.Helper()
	must(c.kube.CoreV1().ServiceAccounts("default").Create(c.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}))(c.T)
	if len(paths) > 0 {
		must(c.kube.RbacV1().ClusterRoles().Create(c.ctx, &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Rules:      []rbacv1.PolicyRule{{NonResourceURLs: paths, Verbs: []string{"get"}}},
		}, metav1.CreateOptions{}))(c.T)
		must(c.kube.RbacV1().ClusterRoleBindings().Create(c.ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: name}},
		}, metav1.CreateOptions{}))(c.T)
	}
	return must(c.kube.CoreV1().ServiceAccounts("default").CreateToken(c.ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))(c.T).Status.Token
}
