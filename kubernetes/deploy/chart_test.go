package deploy_test

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"sigs.k8s.io/yaml"

	"github.com/cotenant/cotenant/kubernetes/plugin/config"
	"github.com/cotenant/cotenant/place/baseline"
	"github.com/cotenant/cotenant/sim/compare"
)

var update = flag.Bool("update", false, "write manifests.yaml anew")

const (
	release   = "cotenant"
	namespace = "cotenant-system"
)

// helm runs the program of that name, with files of its own.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	program, err := filepath.Abs("../bin/helm")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Skip("kubernetes/bin/helm is not built; run: make kubernetes-build")
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	home := t.TempDir()
	cmd.Env = []string{"HOME=" + home, "HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_DATA_HOME=" + home}
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return out.String(), errors.New(said.String())
	}
	return out.String(), nil
}

// render is what the chart makes of values, each as --set takes it.
func render(t *testing.T, values ...string) string {
	t.Helper()
	args := []string{"template", release, "chart", "--namespace", namespace}
	for _, v := range values {
		args = append(args, "--set", v)
	}
	out, err := helm(t, args...)
	if err != nil {
		t.Fatalf("helm %s: %v", strings.Join(args, " "), err)
	}
	return out
}

// objects are those of a stream of YAML documents.
func objects(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for d := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		o := &unstructured.Unstructured{}
		if err := d.Decode(o); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		if len(o.Object) > 0 {
			all = append(all, o)
		}
	}
}

// find is the one object of a kind.
func find(t *testing.T, all []*unstructured.Unstructured, kind string) *unstructured.Unstructured {
	t.Helper()
	for _, o := range all {
		if o.GetKind() == kind {
			return o
		}
	}
	t.Fatalf("no %s is rendered", kind)
	return nil
}

const head = `# cotenant-scheduler beside the stock scheduler, in the mode shadow: the chart
# with its default values. A test writes this file; change the chart instead.
#
#   kubectl apply --server-side -f manifests.yaml
#   kubectl --namespace cotenant-system create configmap cotenant-model --from-file=model.safetensors
---
apiVersion: v1
kind: Namespace
metadata:
  name: cotenant-system
  labels:
    app.kubernetes.io/part-of: cotenant
    pod-security.kubernetes.io/enforce: restricted
`

func TestManifestsAreTheChart(t *testing.T) {
	want := head + render(t)
	if *update {
		if err := os.WriteFile("manifests.yaml", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("manifests.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("manifests.yaml is not what the chart renders to; write it anew: go test ./deploy -run TestManifestsAreTheChart -update")
	}
}

func TestChartIsSound(t *testing.T) {
	if out, err := helm(t, "lint", "--strict", "chart"); err != nil {
		t.Errorf("%s%v", out, err)
	}
}

// configured is the configuration that the chart makes, as kube-scheduler reads it.
func configured(t *testing.T, rendered string) *schedulerapi.KubeSchedulerConfiguration {
	t.Helper()
	data, _, err := unstructured.NestedStringMap(find(t, objects(t, rendered), "ConfigMap").Object, "data")
	if err != nil {
		t.Fatal(err)
	}
	object, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(data["scheduler.yaml"]), nil, nil)
	if err != nil {
		t.Fatalf("%v in:\n%s", err, data["scheduler.yaml"])
	}
	return object.(*schedulerapi.KubeSchedulerConfiguration)
}

func TestConfiguration(t *testing.T) {
	for name, c := range map[string]struct {
		values []string
		holds  func(c *schedulerapi.KubeSchedulerConfiguration, a *config.CotenantArgs) bool
	}{
		"defaults": {nil, func(c *schedulerapi.KubeSchedulerConfiguration, a *config.CotenantArgs) bool {
			return c.LeaderElection.LeaderElect && c.LeaderElection.ResourceNamespace == namespace && c.LeaderElection.ResourceName == "cotenant-scheduler" &&
				c.Profiles[0].SchedulerName == "cotenant-scheduler" && a.Mode == config.Shadow && a.Model.Path == "/etc/cotenant/model.safetensors"
		}},
		"arguments": {
			[]string{"cotenant.mode=enforce", "cotenant.namespaces.kube-system=ignore", "cotenant.jobsPolicy.name=harmony", "cotenant.waitTimeout=2m", "cotenant.unsure=0", "cotenant.model=null", "cotenant.samples.path=/s"},
			func(_ *schedulerapi.KubeSchedulerConfiguration, a *config.CotenantArgs) bool {
				return a.Mode == config.Enforce && a.ModeOf("kube-system") == config.Ignore && a.JobsPolicy.Name == "harmony" && a.WaitTimeout.Minutes() == 2 &&
					*a.Unsure == 0 && a.Samples.Path == "/s" && a.Model.Path == ""
			},
		},
		"in place of the stock scheduler": {
			[]string{"scheduler.name=default-scheduler", "scheduler.lease.name=kube-scheduler", "scheduler.lease.namespace=kube-system"},
			func(c *schedulerapi.KubeSchedulerConfiguration, _ *config.CotenantArgs) bool {
				return c.LeaderElection.ResourceNamespace == "kube-system" && c.LeaderElection.ResourceName == "kube-scheduler" && c.Profiles[0].SchedulerName == "default-scheduler"
			},
		},
		"policies of one's own": {
			[]string{"cotenant.policy.name=metis", "cotenant.policy.path=/etc/cotenant/p", "cotenant.jobsPolicy.name=harmony", "cotenant.jobsPolicy.path=/etc/cotenant/j", `cotenant.objective=mean=1\,nodes=0.002`},
			func(_ *schedulerapi.KubeSchedulerConfiguration, a *config.CotenantArgs) bool {
				return a.Policy.Path == "/etc/cotenant/p" && a.JobsPolicy.Path == "/etc/cotenant/j" && a.Objective == "mean=1,nodes=0.002"
			},
		},
		"other plugins": {
			[]string{"pluginConfig[0].name=NodeResourcesFit", "pluginConfig[0].args.scoringStrategy.type=MostAllocated"},
			func(c *schedulerapi.KubeSchedulerConfiguration, _ *config.CotenantArgs) bool {
				return slices.ContainsFunc(c.Profiles[0].PluginConfig, func(p schedulerapi.PluginConfig) bool {
					a, ok := p.Args.(*schedulerapi.NodeResourcesFitArgs)
					return ok && a.ScoringStrategy.Type == schedulerapi.MostAllocated
				})
			},
		},
		"no election": {
			[]string{"scheduler.leaderElect=false", "scheduler.replicaCount=1", "scheduler.clientConnection.qps=500"},
			func(c *schedulerapi.KubeSchedulerConfiguration, _ *config.CotenantArgs) bool {
				return !c.LeaderElection.LeaderElect && c.ClientConnection.QPS == 500
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := configured(t, render(t, c.values...))
			at := slices.IndexFunc(got.Profiles[0].PluginConfig, func(p schedulerapi.PluginConfig) bool { return p.Name == config.PluginName })
			args := got.Profiles[0].PluginConfig[at].Args.(*config.CotenantArgs)
			if err := config.Validate(field.NewPath("cotenant"), args); err != nil {
				t.Error(err)
			}
			if !c.holds(got, args) {
				t.Errorf("%+v with %+v", got, args)
			}
		})
	}
}

func TestBadValuesAreRefused(t *testing.T) {
	for value, says := range map[string]string{
		"scheduler.replicas=3":        "replicas",
		"cotenant.mode=always":        "mode",
		"cotenant.modl=shadow":        "modl",
		"cotenant.waitTimeout=60":     "waitTimeout",
		"scheduler.leaderElect=false": "replicaCount", // two that both schedule
		"scheduler.name=A B":          "name",
		"model.configMap=":            "model",
		"pluginConfig[0].name=x":      "args",

		"cotenant.policy.name=metiss":        "policy",
		"cotenant.jobsPolicy.name=harmny":    "jobsPolicy",
		"cotenant.jobsPolicy.path=/p":        "jobsPolicy", // of which policy?
		"cotenant.objective=best":            "objective",
		"cotenant.objective=mean=1\\,best=2": "objective",
		"cotenant.model=null":                "samples",
	} {
		_, err := helm(t, "template", release, "chart", "--set", value)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("--set %q: %v; want an error about %s", value, err, says)
		}
	}
}

// Neither the schema nor the chart knows arguments that the plugin lacks, nor
// the other way round.
func TestSchemaHasEveryArgument(t *testing.T) {
	text, err := os.ReadFile("chart/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties struct {
			Cotenant struct{ Properties map[string]any }
		}
	}
	if err := yaml.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	var fields []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[config.CotenantArgs]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && len(f.Index) == 1 {
			fields = append(fields, name)
		}
	}
	slices.Sort(fields)
	if known := slices.Sorted(maps.Keys(schema.Properties.Cotenant.Properties)); !slices.Equal(known, fields) {
		t.Errorf("values.schema.json knows the arguments\n%v, the plugin\n%v", known, fields)
	}
}

// Each policy that the plugin can make may be named, and no other.
func TestSchemaHasEveryPolicy(t *testing.T) {
	text, err := os.ReadFile("chart/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	type named struct {
		Properties struct{ Name struct{ Enum []string } }
	}
	var schema struct {
		Properties struct {
			Cotenant struct {
				Properties struct{ Policy, JobsPolicy named }
			}
		}
	}
	if err := yaml.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	p := schema.Properties.Cotenant.Properties
	for _, c := range []struct {
		argument        string
		known, possible []string
	}{
		{"policy", p.Policy.Properties.Name.Enum, append(baseline.Names(), "metis")},
		{"jobsPolicy", p.JobsPolicy.Properties.Name.Enum, compare.Names()},
	} {
		slices.Sort(c.known)
		slices.Sort(c.possible)
		if !slices.Equal(c.known, c.possible) {
			t.Errorf("values.schema.json knows as %s\n%v, the plugin\n%v", c.argument, c.known, c.possible)
		}
	}
}

// TestDocumentsNameEveryValue holds the table in docs/kubernetes.md against
// values.yaml: each value has a row, with its default.
func TestDocumentsNameEveryValue(t *testing.T) {
	text, err := os.ReadFile("chart/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	flatten(t, "", values, want)
	page, err := os.ReadFile("../../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n### Values\n")
	if !found {
		t.Fatal("docs/kubernetes.md has no section Values")
	}
	section, _, _ = strings.Cut(section, "\n#")
	got := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (?:`([^`]*)`)? *\\|").FindAllStringSubmatch(section, -1) {
		got[row[1]] = row[2]
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if row, ok := got[name]; !ok {
			t.Errorf("docs/kubernetes.md, Values, lacks a row: | `%s` | `%s` |", name, want[name])
		} else if row != want[name] {
			t.Errorf("docs/kubernetes.md, Values: %s is %q there and %q in values.yaml", name, row, want[name])
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("docs/kubernetes.md, Values, has a row for %s, which values.yaml lacks", name)
	}
}

// flatten names the values that stand for themselves: those of `resources` and
// the like are Kubernetes' own. Empty ones have no default.
func flatten(t *testing.T, prefix string, values map[string]any, into map[string]string) {
	for key, value := range values {
		name := prefix + key
		switch v := value.(type) {
		case map[string]any:
			if len(v) > 0 && key != "resources" {
				flatten(t, name+".", v, into)
				continue
			}
			into[name] = ""
		case []any:
			into[name] = ""
		default:
			text, err := yaml.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			into[name] = strings.Trim(strings.TrimSpace(string(text)), `"`)
		}
	}
}
