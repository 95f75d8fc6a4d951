package config_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"

	"github.com/cotenant/cotenant/kubernetes/plugin/config"
)

func read(text string) (*config.CotenantArgs, error) {
	obj, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(text), nil, nil)
	if err != nil {
		return nil, err
	}
	for _, c := range obj.(*schedulerapi.KubeSchedulerConfiguration).Profiles[0].PluginConfig {
		if a, ok := c.Args.(*config.CotenantArgs); ok {
			return a, config.Validate(field.NewPath("args"), a)
		}
	}
	return nil, fmt.Errorf("no CotenantArgs in %s", text)
}

func profile(args string) string {
	return `---
{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, profiles: [{
		plugins: {multiPoint: {enabled: [{name: Cotenant}]}}, pluginConfig: [{name: Cotenant, args: {` + args + `}}]}]}`
}

func TestDefaults(t *testing.T) {
	a, err := read(profile("model: {path: m}"))
	if err != nil {
		t.Fatal(err)
	}
	if a.Mode != config.Shadow || a.Policy.Name != "metis" || a.WaitTimeout.Duration != time.Minute || *a.Unsure != .25 {
		t.Errorf("defaults: %+v", a)
	}
	if b, ok := a.DeepCopyObject().(*config.CotenantArgs); !ok || b.Unsure == a.Unsure || *b.Unsure != *a.Unsure {
		t.Error("a copy shares what it points to")
	}
}

func TestBadArguments(t *testing.T) {
	for args, want := range map[string]string{
		"":                                          "model.path: Required",
		"mode: always, model: {path: m}":            "mode",
		"modl: shadow":                              "unknown field",
		"waitTimeout: 16m, model: {path: m}":        "waitTimeout", // above what the framework lets pods wait
		"timeBudget: 0s, model: {path: m}":          "timeBudget",
		"unsure: -1, model: {path: m}":              "unsure",
		"neutral: 101, model: {path: m}":            "neutral",
		"objective: best, model: {path: m}":         "objective",
		"namespaces: {a: always}, model: {path: m}": "namespaces[a]",
		"jobsPolicy: {}, model: {path: m}":          "jobsPolicy.name",
		"timeBudget: 200, model: {path: m}":         `timeBudget: 200 is not a time; give a number with its unit in quotes, such as "200ms"`,
		`waitTimeout: "60", model: {path: m}`:       `waitTimeout: "60" is not a time`,
		"slotsPerNode: many, model: {path: m}":      `slotsPerNode: "many" is not a whole number`,
		"slotsPerNode: 1.5, model: {path: m}":       "slotsPerNode: 1.5 is not a whole number",
		"evictPartialGangs: 1, model: {path: m}":    "evictPartialGangs: 1 is not true or false",
		"namespaces: [a], model: {path: m}":         `namespaces: ["a"] is not a map`,
		"model: m":                                  `model: "m" is not a map of its arguments, such as {path: ...}`,
		"policy: metis, model: {path: m}":           `policy: "metis" is not a map of its arguments, such as {path: ...} or {name: ...}`,
		"policy: {nam: metis}, model: {path: m}":    `unknown field "policy.nam"`,
	} {
		if _, err := read(profile(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("args {%s}: %v; want an error about %s", args, err, want)
		}
	}
}

func TestModes(t *testing.T) {
	a := &config.CotenantArgs{Mode: config.Shadow, Namespaces: map[string]config.Mode{"a": config.Enforce, "b": config.Ignore}}
	if a.ModeOf("a") != config.Enforce || a.ModeOf("b") != config.Ignore || a.ModeOf("c") != config.Shadow || a.Most() != config.Enforce {
		t.Errorf("modes %s %s %s, most %s", a.ModeOf("a"), a.ModeOf("b"), a.ModeOf("c"), a.Most())
	}
}

// The configurations that are shown to users are valid, and complete: they say
// who the scheduler is, and only one that takes the stock scheduler's place has
// its lease.
func TestExamples(t *testing.T) {
	page, err := os.ReadFile("../../../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "\n```yaml\napiVersion: kubescheduler")
	block, _, _ = strings.Cut(block, "\n```\n")
	examples := map[string]string{"docs/kubernetes.md": "apiVersion: kubescheduler" + block}
	for _, file := range []string{"enforce.yaml", "shadow.yaml"} {
		text, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		examples[file] = string(text)
	}
	for name, text := range examples {
		if _, err := read(text); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		obj, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(text), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		c := obj.(*schedulerapi.KubeSchedulerConfiguration)
		lease := c.LeaderElection.ResourceNamespace + "/" + c.LeaderElection.ResourceName
		if inPlace := c.Profiles[0].SchedulerName == "default-scheduler"; inPlace != (lease == "kube-system/kube-scheduler") {
			t.Errorf("%s: %s elects by the lease %s", name, c.Profiles[0].SchedulerName, lease)
		}
		if c.ClientConnection.Kubeconfig == "" || !c.LeaderElection.LeaderElect {
			t.Errorf("%s: kubeconfig %q, elects a leader: %v", name, c.ClientConnection.Kubeconfig, c.LeaderElection.LeaderElect)
		}
	}
}

func Example() {
	a := &config.CotenantArgs{WaitTimeout: &metav1.Duration{Duration: time.Hour}}
	config.SetDefaults(a)
	fmt.Println(config.Validate(field.NewPath("args"), a))
	// Output: [args.model.path: Required value: or samples.path: without a model every workload is unknown, args.waitTimeout: Invalid value: "1h0m0s": must be 1s to 15m0s]
}
