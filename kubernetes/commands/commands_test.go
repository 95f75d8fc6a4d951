package commands

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cotenant/cotenant/explain"
	"github.com/cotenant/cotenant/kubernetes/controlplane"
	"github.com/cotenant/cotenant/kubernetes/controlplane/planetest"
	"github.com/cotenant/cotenant/kubernetes/plugin"
	"github.com/cotenant/cotenant/kubernetes/plugin/plan"
)

// bench is a plane and the command line.
type bench struct {
	*testing.T
	plane   *controlplane.Plane
	cli     string
	samples string
}

func start(t *testing.T) *bench {
	t.Helper()
	planetest.Needs(t)
	b := &bench{T: t, cli: filepath.Join(t.TempDir(), "kubectl-cotenant"), samples: filepath.Join(t.TempDir(), "samples.jsonl")}
	if out, err := exec.Command("go", "build", "-C", "../..", "-o", b.cli, "./cmd/cotenant").CombinedOutput(); err != nil {
		t.Fatalf("building the command line: %v\n%s", err, out)
	}
	if err := os.WriteFile(b.samples, []byte(planetest.TwoColours), 0o600); err != nil {
		t.Fatal(err)
	}
	b.plane = planetest.Start(t, controlplane.Config{})
	if err := b.plane.AddNodes(t.Context(), controlplane.Nodes(4, controlplane.NodeShape{CPU: "4"})...); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]string{"default-scheduler": "shadow", "ours": "enforce", "assisting": "assist"} {
		text := fmt.Sprintf(`
profiles:
- schedulerName: %s
  plugins: {multiPoint: {enabled: [{name: Cotenant}]}}
  pluginConfig:
  - name: Cotenant
    args: {mode: %s, slotsPerNode: 2, policy: {name: greedy}, samples: {path: %q}}
`, name, mode, b.samples)
		if _, err := b.plane.StartScheduler(t.Context(), controlplane.Scheduler{Name: name, Program: "cotenant-scheduler", Configuration: text}); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func (b *bench) create(name, workload, scheduler, cpu string, change ...func(*corev1.Pod)) {
	b.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"cotenant.dev/workload": workload}, Annotations: map[string]string{}},
		Spec: corev1.PodSpec{SchedulerName: scheduler, Containers: []corev1.Container{{
			Name: "main", Image: workload,
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
		}}},
	}
	for _, f := range change {
		f(p)
	}
	if _, err := b.plane.Client().CoreV1().Pods("default").Create(b.Context(), p, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
}

// run runs a command on the plane; it may fail.
func (b *bench) run(args ...string) (stdout, stderr string) {
	b.Helper()
	cmd := exec.Command(b.cli, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+b.plane.Kubeconfig())
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		b.Logf("%q: %v", args, err)
	}
	return out.String(), errs.String()
}

// says waits until a command's output holds all of the texts.
func (b *bench) says(args []string, texts ...string) string {
	b.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		out, errs := b.run(args...)
		missing := ""
		for _, text := range texts {
			if !strings.Contains(out+errs, text) {
				missing = text
			}
		}
		if missing == "" {
			return out
		}
		if time.Now().After(end) {
			b.Fatalf("%q does not say %q:\n%s%s", args, missing, out, errs)
		}
	}
}

func gang(minimum string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Labels["cotenant.dev/gang"], p.Annotations["cotenant.dev/gang-minimum"] = "team", minimum
	}
}

func TestCommandsOnARealPlane(t *testing.T) {
	b := start(t)
	for i := range 2 { // one by one: the plans of the mode shadow are those of pods that come
		for _, colour := range []string{"red", "blue"} {
			name := fmt.Sprintf("%s-%d", colour, i)
			b.create(name, colour, "", "100m")
			b.says([]string{"explain", "pod", name}, "placed on node-", "only watched", "greedy would have put it")
		}
	}
	out := b.says([]string{"report", "shadow", "--samples", b.samples, "--slots", "2", "-o", "json"}, `"with_plan":4`)
	var reports []explain.Shadow
	if err := json.Unmarshal([]byte(out), &reports); err != nil {
		t.Fatal(err)
	}
	if s := reports[0]; s.Pods != 4 || s.NoRoom != 0 || s.Planned == nil || *s.Planned != 1 {
		t.Errorf("the plans of the mode shadow: %s; want all 4 pods as fast as alone", out)
	}

	b.create("mine", "red", "ours", "100m")
	b.says([]string{"explain", "pod", "mine", "--samples", b.samples, "--slots", "2"}, "placed on node-", "greedy chose node-", "here", "other nodes have room for it")
	b.create("stranger", "nobody-measured", "ours", "100m")
	b.says([]string{"explain", "pod", "stranger"}, "the plan was not followed", "nobody-measured")
	b.create("huge", "red", "ours", "64")
	b.says([]string{"explain", "pod", "huge", "--samples", b.samples}, "waiting\nno node takes it: 4 of 4 nodes: too little cpu is free", "0 of 4 nodes have room for it")
	b.create("orphan", "red", "nobody", "100m")
	b.says([]string{"explain", "pod", "orphan"}, "is one named nobody running")
	b.create("team-0", "blue", "ours", "100m", gang("2"))
	b.says([]string{"explain", "group", "team"}, "waiting\n1 of 1: team-0: its gang team is not complete: 1 of the 2 pods that go together exist")
	b.create("team-1", "blue", "ours", "100m", gang("2"))
	b.says([]string{"explain", "group", "team"}, "placed\n2 of 2: ", "gang team (cotenant): 2 pods, at least 2 go together; 2 bound, 0 waiting")

	// In the mode assist it is scores that choose, and no plan.
	b.create("helped", "red", "assisting", "100m")
	b.says([]string{"explain", "pod/helped", "--kubeconfig", b.plane.Kubeconfig()}, "scores together chose node-", "Cotenant's, in the mode assist, is one of them", "--model or --samples tells")
	b.says([]string{"explain", "pods", "helped", "-n", "default", "--samples", b.samples, "--slots", "3"}, "its performance is ")
	b.create("odd", "nobody-measured", "assisting", "100m")
	b.says([]string{"explain", "pod/odd", "--samples", b.samples}, "without one of Cotenant's, which is in the mode assist", "nobody measured nobody-measured")
	b.says([]string{"report", "shadow", "--samples", b.samples, "--slots", "3"}, "4 of 4 pods that a scheduler in the mode shadow saw (100 %) have a plan",
		"4 pods placed in the modes assist and enforce can have no plan", "2 pods of workloads that are unknown, nobody-measured")

	// Of the pods that wait, one does not fit, and one has no scheduler: a plan says
	// where it would go.
	b.says([]string{"plan", "services", "--cluster", "kubeconfig", "--samples", b.samples, "--slots", "3", "--policy", "greedy"},
		"not all can be placed: ", "1 of 2 tasks not placed")
	out = b.says([]string{"plan", "services", "--kubeconfig", b.plane.Kubeconfig(), "-n", "default", "--samples", b.samples, "--slots", "3"},
		"metis, as cotenant-scheduler does, has a node for 1 of 2 pods that wait", "what runs (8 pods): mean performance 1.0000 now", "more tasks than were ever measured together")
	for _, line := range []string{`(?m)^default/huge +red +none +- +waits: 0 of 4 nodes fit`, `(?m)^default/orphan +red +node-\S+ +[0-9.-]+ +beside `} {
		if !regexp.MustCompile(line).MatchString(out) {
			b.Errorf("%s lacks %s", out, line)
		}
	}
	if _, errs := b.run("plan", "services", "--cluster", b.plane.Kubeconfig(), "--context", "elsewhere"); !strings.Contains(errs, "no such context") {
		t.Error(errs)
	}
	b.says([]string{"explain", "pod"}, "kubectl cotenant explain pod --help")
}

// What the scheduler records is what the commands read, field by field.
func TestDecisionsAreReadAsTheyAreWritten(t *testing.T) {
	performance := 0.5
	wrote := plugin.Decision{Decision: explain.Decision{
		Mode: "enforce", Policy: "metis", Version: "v", Plan: 1, Pods: 2, Planned: "a", Node: "b", Group: "g",
		Performance: &performance, Fallback: string(plan.NoRoom), Why: "why",
	}}
	read, err := explain.ParseDecision(wrote.JSON())
	if err != nil {
		t.Fatal(err)
	}
	w, r := reflect.ValueOf(wrote.Decision), reflect.ValueOf(read)
	if w.NumField() != r.NumField() {
		t.Errorf("%d fields are written, %d read", w.NumField(), r.NumField())
	}
	for i := range w.NumField() {
		name := w.Type().Field(i).Name
		if got := r.FieldByName(name); !got.IsValid() || fmt.Sprint(reflect.Indirect(got)) != fmt.Sprint(reflect.Indirect(w.Field(i))) {
			t.Errorf("%s: %v was read as %v", name, w.Field(i), got)
		}
	}
}
