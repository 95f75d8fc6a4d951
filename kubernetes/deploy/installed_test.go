package deploy_test

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cotenant/cotenant/kubernetes/controlplane/planetest"
)

// installed is a cluster in which the chart is installed and its pods run.
type installed struct {
	*cluster
	kubelet  *kubelet
	values   []string
	replicas []*replica
	reader   string // token of somebody who may read metrics
}

// install installs the chart as a user does, and starts its pods.
func install(t *testing.T, c *cluster, values ...string) *installed {
	t.Helper()
	i := &installed{cluster: c, kubelet: newKubelet(t, c.plane)}
	args := []string{"install", release, "chart", "--kubeconfig", c.plane.Kubeconfig(), "--namespace", namespace}
	for _, v := range values {
		i.values = append(i.values, "--set", v)
	}
	c.namespace()
	c.model(fitted(t, planetest.TwoColours))
	if _, err := c.plane.StartScheduler(c.ctx, stock); err != nil {
		t.Fatal(err)
	}
	if _, err := helm(t, append(args, i.values...)...); err != nil {
		t.Fatal(err)
	}
	i.start()
	return i
}

// start runs the pods of the Deployment.
func (i *installed) start() {
	i.Helper()
	i.reader = i.who("prometheus", "/metrics")
	for _, p := range i.cluster.replicas(2) {
		i.replicas = append(i.replicas, i.kubelet.run(i.ctx, &p))
	}
}

// metrics are the lines of a replica's metrics.
func (i *installed) metrics(r *replica) string {
	i.Helper()
	code, text, err := r.get(i.ctx, "/metrics", i.reader)
	if err != nil || code != http.StatusOK {
		i.Fatalf("metrics of %s: %d %v %.300s", r.name, code, err, text)
	}
	return text
}

var versionLine = regexp.MustCompile(`(?m)^cotenant_version_info\{profile="cotenant-scheduler",version="([0-9a-f]+)"\} 1$`)

func (i *installed) version(r *replica) string {
	i.Helper()
	found := versionLine.FindStringSubmatch(i.metrics(r))
	if found == nil {
		i.Fatalf("%s has no cotenant_version_info", r.name)
	}
	return found[1]
}

// leading is a line of the metrics of the replica that leads.
const leading = `leader_election_master_status{name="kube-scheduler"} 1`

// leads checks that a replica which has acted was the leader.
func (i *installed) leads(r *replica) {
	i.Helper()
	if !strings.Contains(i.metrics(r), leading) {
		i.Errorf("%s acts, and does not say that it leads", r.name)
	}
}

// leader waits until one of the replicas leads.
func (i *installed) leader() (leader, other *replica) {
	i.Helper()
	i.until("one of the replicas leads", func() (bool, error) {
		for n, r := range i.replicas {
			if strings.Contains(i.metrics(r), leading) {
				leader, other = r, i.replicas[1-n]
				return true, nil
			}
		}
		return false, nil
	})
	return leader, other
}

// TestInstalled installs the chart, starts what it says from the image with the
// ServiceAccount's token, and has it do all that it may: then what it asked of
// the API server must be what its roles allow, no less and no more.
func TestInstalled(t *testing.T) {
	c := newCluster(t, 6)
	planetest.ServeGangs(t, c.plane)
	i := install(t, c,
		"cotenant.mode=enforce", "cotenant.evictPartialGangs=true", "cotenant.waitTimeout=3s", "cotenant.reloadPeriod=200ms",
		"cotenant.timeBudget=10s", // a busy machine is late, and this is of other things
		"scheduler.featureGates.GenericWorkload=true", "scheduler.featureGates.TopologyAwareWorkloadScheduling=true")
	i.healthAndMetrics()
	i.services()
	i.gangs()
	i.stockBehaviours()
	i.partialGangs()
	i.reload()
	i.failover()
	for _, r := range i.replicas {
		if err := r.Stop(); err != nil { // so that watches are in the audit log
			t.Error(err)
		}
		for _, line := range r.complaints(t) {
			t.Errorf("%s complains: %s", r.name, line)
		}
	}
	log, err := i.plane.AuditLog()
	if err != nil {
		t.Fatal(err)
	}
	roles, err := helm(t, append([]string{"template", release, "chart", "--namespace", namespace}, i.values...)...)
	if err != nil {
		t.Fatal(err)
	}
	leastPrivilege(t, objects(t, roles), log)
	changes := 0
	order := deciders(log)
	for n := 1; n < len(order); n++ {
		if order[n] != order[n-1] {
			changes++
		}
	}
	if changes != 1 {
		t.Errorf("bindings and evictions changed hands %d times, want 1 (one leader was killed): %v", changes, order)
	}
}

func (i *installed) healthAndMetrics() {
	i.Helper()
	nobody := i.who("nobody")
	for _, r := range i.replicas {
		if err := r.probe(i.ctx, r.probes.LivenessProbe); err != nil {
			i.Error(err)
		}
		if err := r.probe(i.ctx, r.probes.StartupProbe); err != nil {
			i.Error(err)
		}
		for _, path := range []string{"/livez", "/readyz", "/healthz"} {
			if code, text, err := r.get(i.ctx, path, ""); err != nil || code != http.StatusOK || text != "ok" {
				i.Errorf("%s of %s: %d %q %v", path, r.name, code, text, err)
			}
		}
		for token, want := range map[string]int{"": http.StatusForbidden, nobody: http.StatusForbidden, "no token": http.StatusUnauthorized, i.reader: http.StatusOK} {
			if code, _, err := r.get(i.ctx, "/metrics", token); err != nil || code != want {
				i.Errorf("/metrics of %s: %d %v, want %d", r.name, code, err, want)
			}
		}
	}
}

func (i *installed) services() {
	i.Helper()
	var names []string
	for n := range 6 {
		for _, w := range []string{"red", "blue"} {
			name := fmt.Sprintf("%s-%d", w, n)
			names = append(names, name)
			i.create(pod(name, w))
		}
	}
	pods := i.bound(names...)
	leader, _ := i.leader()
	at := map[string]int{}
	for name, p := range pods {
		d := i.decision(p)
		if d.Planned != p.Spec.NodeName || d.Version != i.version(leader) {
			i.Errorf("pod %s on %s: %+v", name, p.Spec.NodeName, d)
		}
		at[p.Spec.NodeName+"/"+p.Labels["cotenant.dev/workload"]]++
	}
	for where, n := range at {
		if n > 1 { // one of each to a node is best, and possible
			i.Errorf("%d pods at %s", n, where)
		}
	}
	if e := i.event("default", "red-0", "Scheduled"); e.ReportingController != scheduler {
		i.Errorf("event Scheduled is by %s", e.ReportingController)
	}
	i.create(pod("unknown", "purple"))
	i.bound("unknown")
	if e := i.event("default", "unknown", "CotenantFallback"); !strings.Contains(e.Note, "workload-unknown") {
		i.Errorf("event %q", e.Note)
	}
	text := i.metrics(leader)
	for _, line := range []string{
		`cotenant_pods_decided_total{mode="enforce",outcome="planned"} 12`, `cotenant_fallbacks_total{reason="workload-unknown"} 1`,
		"cotenant_plan_duration_seconds_count", "cotenant_plans_total", `scheduler_schedule_attempts_total{profile="cotenant-scheduler",result="scheduled"} 13`,
	} {
		if !strings.Contains(text, line) {
			i.Errorf("metrics lack %s", line)
		}
	}
	i.clear()
}

// object creates what a YAML text describes.
func (i *installed) object(text string) {
	i.Helper()
	for _, o := range objects(i.T, text) {
		if err := i.apply(o); err != nil {
			i.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

func gang(name string, size int) option {
	return func(p *corev1.Pod) {
		p.Labels["scheduling.x-k8s.io/pod-group"] = name
		p.Annotations["cotenant.dev/gang-minimum"] = fmt.Sprint(size)
	}
}

func (i *installed) gangs() {
	i.Helper()
	i.create(pod("labelled-0", "red", gang("labelled", 2)))
	time.Sleep(500 * time.Millisecond) // longer than the window in which the others may come
	if p := must(i.kube.CoreV1().Pods("default").Get(i.ctx, "labelled-0", metav1.GetOptions{}))(i.T); p.Spec.NodeName != "" {
		i.Error("a gang of two has one of its pods bound")
	}
	i.create(pod("labelled-1", "red", gang("labelled", 2)))
	i.bound("labelled-0", "labelled-1")

	i.object(`{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: {name: native, namespace: default}, spec: {schedulingPolicy: {gang: {minCount: 2}}}}`)
	native := func(p *corev1.Pod) {
		name := "native"
		p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name}
	}
	i.create(pod("native-0", "blue", native), pod("native-1", "blue", native))
	for _, p := range i.bound("native-0", "native-1") {
		if d := i.decision(p); d.Planned != p.Spec.NodeName {
			i.Errorf("pod %s of a PodGroup, on %s: %+v", p.Name, p.Spec.NodeName, d)
		}
	}
	i.clear()
}

// whole asks for a node; the scheduler's own pod may be there, too.
func whole(p *corev1.Pod) {
	p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "node-0000"}
	p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("3500m")
}

// stockBehaviours are those that ask for what nothing else does: preemption,
// volumes, devices.
func (i *installed) stockBehaviours() {
	i.Helper()
	i.object(`
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: local}, provisioner: kubernetes.io/no-provisioner, volumeBindingMode: WaitForFirstConsumer}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: local
  local: {path: /disk}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [node-0002]}]}]}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: default}
spec: {storageClassName: local, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec:
  extendedResourceName: example.com/gpu
  selectors: [{cel: {expression: device.driver == "gpu.example.com"}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: node-0003}
spec: {driver: gpu.example.com, nodeName: node-0003, pool: {name: node-0003, resourceSliceCount: 1}, devices: [{name: gpu-0}, {name: gpu-1}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu, namespace: default}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
`)
	i.create(pod("low", "red", whole))
	i.bound("low")
	i.create(pod("high", "red", whole, func(p *corev1.Pod) { p.Spec.PriorityClassName = "high" }))
	i.gone("low")
	i.create(
		pod("disk", "red", func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
		}),
		pod("device", "red", func(p *corev1.Pod) {
			claim := "gpu"
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim}}
			p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
		}),
		pod("extended", "red", func(p *corev1.Pod) {
			r := corev1.ResourceList{"example.com/gpu": resource.MustParse("1"), corev1.ResourceCPU: resource.MustParse("500m")}
			p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: r, Limits: r}
		}),
	)
	for name, p := range i.bound("high", "disk", "device", "extended") {
		if want := map[string]string{"high": "node-0000", "disk": "node-0002", "device": "node-0003", "extended": "node-0003"}[name]; p.Spec.NodeName != want {
			i.Errorf("pod %s is on %s, want %s", name, p.Spec.NodeName, want)
		}
	}
	i.create(pod("huge", "red", func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("100")
	}))
	i.event("default", "huge", "FailedScheduling")
	i.clear()
}

// partialGangs are evicted, as the values say.
func (i *installed) partialGangs() {
	i.Helper()
	i.create(pod("part-0", "red", gang("part", 2)), pod("part-1", "red", gang("part", 2)))
	i.bound("part-0", "part-1")
	if err := i.kube.CoreV1().Pods("default").Delete(i.ctx, "part-0", metav1.DeleteOptions{}); err != nil {
		i.Fatal(err)
	}
	i.gone("part-1")
}

// reload changes the model's ConfigMap: a good file is used, a bad one refused.
func (i *installed) reload() {
	i.Helper()
	first := i.version(i.replicas[0])
	good := fitted(i.T, planetest.TwoColours+green)
	i.model(good)
	i.sync()
	i.until("the new model is in use", func() (bool, error) {
		return i.version(i.replicas[0]) != first && i.version(i.replicas[1]) == i.version(i.replicas[0]), nil
	})
	second := i.version(i.replicas[0])
	i.create(pod("green", "green"))
	if d := i.decision(i.bound("green")["green"]); d.Version != second || d.Planned == "" {
		i.Errorf("a pod that the new model alone knows: %+v, version %s", d, second)
	}
	for _, r := range i.replicas {
		if e := i.event(namespace, r.name, "CotenantFilesLoaded"); !strings.Contains(e.Note, second) {
			i.Errorf("event %q does not name version %s", e.Note, second)
		}
	}
	broken := bytes.Clone(good)
	broken[len(broken)-1] ^= 1
	i.model(broken)
	i.sync()
	for _, r := range i.replicas {
		i.until("the broken model is refused", func() (bool, error) {
			return strings.Contains(i.metrics(r), `cotenant_reloads_total{outcome="refused"} 1`), nil
		})
		if e := i.event(namespace, r.name, "CotenantFilesRefused"); e.Type != corev1.EventTypeWarning || !strings.Contains(e.Note, second) {
			i.Errorf("event %s %q, which version stays is %s", e.Type, e.Note, second)
		}
		if v := i.version(r); v != second {
			i.Errorf("%s uses version %s after a broken file, want %s", r.name, v, second)
		}
		if !strings.Contains(i.metrics(r), `cotenant_reloads_total{outcome="loaded"} 1`) {
			i.Errorf("%s: metrics do not count the good file", r.name)
		}
		if err := r.probe(i.ctx, r.probes.LivenessProbe); err != nil {
			i.Errorf("after a broken file: %v", err)
		}
	}
	i.create(pod("still", "green"))
	if d := i.decision(i.bound("still")["still"]); d.Version != second || d.Planned == "" {
		i.Errorf("a pod after a broken file: %+v, want version %s", d, second)
	}
	i.model(good)
	i.sync()
	i.clear()
}

func (i *installed) sync() {
	for _, r := range i.replicas {
		i.kubelet.sync(i.ctx, r)
	}
}

// failover kills the leader: the other goes on, and first, though no pod waits,
// with a gang that is in part by then.
func (i *installed) failover() {
	i.Helper()
	leader, other := i.leader()
	i.create(pod("left-0", "red", gang("left", 2)), pod("left-1", "red", gang("left", 2)))
	i.bound("left-0", "left-1")
	if err := leader.Kill(); err != nil {
		i.Fatal(err)
	}
	begin := time.Now()
	if err := i.kube.CoreV1().Pods("default").Delete(i.ctx, "left-0", metav1.DeleteOptions{}); err != nil {
		i.Fatal(err)
	}
	i.gone("left-1")
	i.leads(other)
	i.Logf("killed %s; a gang in part was evicted by %s after %.1f s", leader.name, other.name, time.Since(begin).Seconds())
	var names []string
	for n := range 10 {
		names = append(names, fmt.Sprintf("after-%d", n))
		i.create(pod(names[n], "blue"))
	}
	for name, p := range i.bound(names...) {
		if d := i.decision(p); d.Planned != p.Spec.NodeName {
			i.Errorf("pod %s, on %s: %+v", name, p.Spec.NodeName, d)
		}
	}
	i.Logf("all pods were bound by %s after %.1f s", other.name, time.Since(begin).Seconds())
	i.leads(other)
	// It comes back, and stands by.
	if err := leader.Start(i.ctx); err != nil {
		i.Fatal(err)
	}
	i.create(pod("back", "red"))
	i.bound("back")
}
