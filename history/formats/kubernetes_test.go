package formats

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/cotenant/cotenant/cluster"
)

// appendedYAML adds an object to the golden file.
func appendedYAML(object string) []byte {
	return append(golden("kubernetes.yaml"), "---\n"+object+"\n"...)
}

func badNode(allocatable string) string {
	return "{kind: Node, metadata: {name: n9}, status: {allocatable: {" + allocatable + "}}}"
}

func badPod(spec, status string) string {
	return "{kind: Pod, metadata: {name: p9, namespace: d}, spec: {" + spec + "}, status: {" + status + "}}"
}

var badObjects = []badRecord{
	{"no kind", "{metadata: {name: x}}", []string{"kind: missing"}},
	{"no name", "{kind: Node, status: {allocatable: {cpu: 1}}}", []string{"metadata.name: missing"}},
	{"another node of that name", "{kind: Node, metadata: {name: cpu-a}, status: {allocatable: {cpu: 1}}}", []string{"Node cpu-a", "listed twice"}},
	{"nothing allocatable", "{kind: Node, metadata: {name: n9}}", []string{"Node n9", "status.allocatable: missing"}},
	{"text for CPU", badNode("cpu: lots"), []string{"Node n9", "status.allocatable[cpu]", "lots"}},
	{"empty CPU", badNode(`cpu: ""`), []string{"status.allocatable[cpu]", "empty"}},
	{"list for CPU", badNode("cpu: [1]"), []string{"status.allocatable[cpu]", "[1]"}},
	{"NaN CPU", badNode("cpu: NaN"), []string{"status.allocatable[cpu]", "NaN"}},
	{"infinite CPU", badNode("cpu: Inf"), []string{"status.allocatable[cpu]", "Inf"}},
	{"negative memory", badNode("memory: -5Gi"), []string{"status.allocatable[memory]", "-5Gi", "negative"}},
	{"huge memory", badNode("memory: 1e25"), []string{"status.allocatable[memory]", "out of range"}},
	{"vast memory", badNode(`memory: "1e999999999"`), []string{"status.allocatable[memory]", "1e999999999", "out of range"}},
	{"minute memory", badNode(`memory: "1e-999999999"`), []string{"status.allocatable[memory]", "out of range"}},
	{"long memory", badNode(`memory: "` + strings.Repeat("9", 100) + `"`), []string{"status.allocatable[memory]", "too long"}},
	{"wrong suffix", badNode("memory: 5GB"), []string{"status.allocatable[memory]", "5GB"}},
	{"a forest of GPUs", badNode("nvidia.com/gpu: 1000000"), []string{"status.allocatable[nvidia.com/gpu]", "1000000"}},
	{"unknown effect", "{kind: Node, metadata: {name: n9}, spec: {taints: [{key: a, effect: Sometimes}]}, status: {allocatable: {cpu: 1}}}", []string{"taints[0].effect", "Sometimes"}},
	{"text for a flag", "{kind: Node, metadata: {name: n9}, spec: {unschedulable: maybe}, status: {allocatable: {cpu: 1}}}", []string{"Node n9", "unschedulable"}},
	{"no containers", badPod("", "phase: Pending"), []string{"Pod d/p9", "spec.containers: missing"}},
	{"no image", badPod("containers: [{name: c}]", "phase: Pending"), []string{"Pod d/p9", "no image", WorkloadLabel}},
	{"unknown phase", badPod("containers: [{image: a}]", "phase: Sleeping"), []string{"status.phase", "Sleeping"}},
	{"runs nowhere", badPod("containers: [{image: a}]", "phase: Running"), []string{"spec.nodeName: missing"}},
	{"runs on no node", badPod("nodeName: gone, containers: [{image: a}]", "phase: Running"), []string{"Pod d/p9", "spec.nodeName", "gone"}},
	{"negative request", badPod("containers: [{image: a, resources: {requests: {cpu: -1}}}]", "phase: Pending"), []string{"spec.containers[0].resources.requests[cpu]", "-1", "negative"}},
	{"bad init request", badPod("initContainers: [{image: a, resources: {requests: {cpu: 1x}}}], containers: [{image: a}]", "phase: Pending"), []string{"spec.initContainers[0].resources.requests[cpu]", "1x"}},
	{"bad limit", badPod("containers: [{image: a, resources: {limits: {cpu: 1x}}}]", "phase: Pending"), []string{"spec.containers[0].resources.limits[cpu]", "1x"}},
	{"bad overhead", badPod("overhead: {memory: much}, containers: [{image: a}]", "phase: Pending"), []string{"spec.overhead[memory]", "much"}},
	{"too much in all", badPod("containers: [{image: a, resources: {requests: {memory: 8Ei}}}, {image: b, resources: {requests: {memory: 7.9Ei}}}]", "phase: Pending"), []string{"memory"}},
	{"unknown operator", badPod("tolerations: [{key: a, operator: Like}], containers: [{image: a}]", "phase: Pending"), []string{"tolerations[0].operator", "Like"}},
	{"a value of any value", badPod("tolerations: [{key: a, operator: Exists, value: b}], containers: [{image: a}]", "phase: Pending"), []string{"tolerations[0].value", `"b"`}},
	{"unknown effect", badPod("tolerations: [{key: a, operator: Exists, effect: Foo}], containers: [{image: a}]", "phase: Pending"), []string{"tolerations[0].effect", "Foo", "NoExecute"}},
	{"no key and no operator", badPod("tolerations: [{value: a}], containers: [{image: a}]", "phase: Pending"), []string{"tolerations[0].operator", "Exists"}},
	{"no time", "{kind: Pod, metadata: {name: p9, creationTimestamp: noon}, spec: {containers: [{image: a}]}}", []string{"creationTimestamp", "noon"}},
}

func TestQuantities(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       int64
		bad        string
	}{
		{cluster.CPU, "100m", 100, ""},
		{cluster.CPU, "1e3", 1_000_000, ""},
		{cluster.CPU, "0", 0, ""},
		{cluster.CPU, "0.1", 100, ""},
		{cluster.CPU, "1u", 1, ""}, // rounded up, as Kubernetes rounds
		{cluster.CPU, "2k", 2_000_000, ""},
		{cluster.Memory, "1e3", 1000, ""},
		{cluster.Memory, "1E3", 1000, ""},
		{cluster.Memory, "1E", 1_000_000_000_000_000_000, ""},
		{cluster.Memory, "0.5Gi", 1 << 29, ""},
		{cluster.Memory, "1.5Ti", 3 << 39, ""},
		{cluster.Memory, "0", 0, ""},
		{cluster.Memory, "128974848", 128974848, ""},
		{cluster.Memory, "129M", 129_000_000, ""},
		{cluster.Memory, "123Mi", 123 << 20, ""},
		{cluster.Memory, "100m", 1, ""},
		{cluster.Memory, "", 0, "not a quantity"},
		{cluster.Memory, "1 Gi", 0, "not a quantity"},
		{cluster.Memory, "1GiB", 0, "not a quantity"},
		{cluster.Memory, "0x10", 0, "not a quantity"},
		{cluster.Memory, "1,5Gi", 0, "not a quantity"},
		{cluster.Memory, "-1", 0, "negative"},
		{cluster.Memory, "8Ei", 0, "out of range"},
		{cluster.CPU, "9223372036854776", 0, "out of range"},
		{cluster.CPU, "1152921504606846", 1152921504606846000, ""},
	} {
		got, err := ParseQuantity(c.name, c.text)
		switch {
		case c.bad != "":
			if err == nil || !strings.Contains(err.Error(), c.bad) {
				t.Errorf("%s %q: %d, %v; want an error with %q", c.name, c.text, got, err, c.bad)
			}
		case err != nil || got != c.want:
			t.Errorf("%s %q: %d, %v; want %d", c.name, c.text, got, err, c.want)
		}
	}
}

// What a pod counts for is Kubernetes' rule over its containers.
func TestPodRequests(t *testing.T) {
	for _, c := range []struct {
		name, spec string
		want       cluster.Resources
	}{
		{"containers add up", "containers: [{image: a, resources: {requests: {cpu: 1}}}, {image: b, resources: {requests: {cpu: 500m}}}]", cluster.Resources{"cpu": 1500}},
		{"an init container runs before", "initContainers: [{image: i, resources: {requests: {cpu: 2}}}, {image: j, resources: {requests: {cpu: 1}}}], containers: [{image: a, resources: {requests: {cpu: 1}}}]", cluster.Resources{"cpu": 2000}},
		{"a sidecar stays", "initContainers: [{image: s, restartPolicy: Always, resources: {requests: {cpu: 300m}}}, {image: j, resources: {requests: {cpu: 1}}}], containers: [{image: a, resources: {requests: {cpu: 800m}}}]", cluster.Resources{"cpu": 1300}},
		{"a sidecar after an init container", "initContainers: [{image: j, resources: {requests: {cpu: 1}}}, {image: s, restartPolicy: Always, resources: {requests: {cpu: 300m}}}], containers: [{image: a, resources: {requests: {cpu: 800m}}}]", cluster.Resources{"cpu": 1100}},
		{"overhead on top", "overhead: {cpu: 250m}, containers: [{image: a, resources: {requests: {cpu: 1}}}]", cluster.Resources{"cpu": 1250}},
		{"the limit where no request is", "containers: [{image: a, resources: {limits: {cpu: 2, memory: 1Gi}, requests: {cpu: 1}}}]", cluster.Resources{"cpu": 1000, "memory": 1 << 30}},
		{"a request of 0 stands against the limit", "containers: [{image: a, resources: {limits: {cpu: 2}, requests: {cpu: \"0\"}}}]", cluster.Resources{}},
		{"the pod's own requests", "resources: {requests: {cpu: 3}}, containers: [{image: a, resources: {requests: {cpu: 1, memory: 1Gi}}}]", cluster.Resources{"cpu": 3000, "memory": 1 << 30}},
		{"nothing", "containers: [{image: a}]", cluster.Resources{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := readYAML(t, "---\n"+badPod(c.spec, "phase: Pending"))
			if r := got.Pending[0].Tasks[0].Requests; !reflect.DeepEqual(r, c.want) {
				t.Errorf("requests %v; want %v", r, c.want)
			}
		})
	}
}

func readYAML(t *testing.T, text string) Cluster {
	t.Helper()
	got, _, err := ReadKubernetes(strings.NewReader(text), Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// The same objects as a JSON List, as NodeList and PodList of the API, as
// documents one after the other, in JSON and in YAML.
func TestKubernetesShapes(t *testing.T) {
	var nodes, pods, all []json.RawMessage
	for doc := range strings.SplitSeq(string(golden("kubernetes.yaml")), "\n---\n") {
		text, err := yaml.YAMLToJSON([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		var list struct{ Items []json.RawMessage }
		if err := json.Unmarshal(text, &list); err != nil {
			t.Fatal(err)
		}
		if list.Items == nil && string(text) != "null" {
			list.Items = []json.RawMessage{text}
		}
		all = append(all, list.Items...)
	}
	for _, o := range all {
		switch {
		case bytes.Contains(o, []byte(`"kind":"Node"`)):
			nodes = append(nodes, bytes.Replace(o, []byte(`"kind":"Node",`), nil, 1))
		case bytes.Contains(o, []byte(`"kind":"Pod"`)):
			pods = append(pods, bytes.Replace(o, []byte(`"kind":"Pod",`), nil, 1))
		}
	}
	join := func(items []json.RawMessage, sep string) string {
		var parts []string
		for _, i := range items {
			parts = append(parts, string(i))
		}
		return strings.Join(parts, sep)
	}
	want := readYAML(t, string(golden("kubernetes.yaml")))
	for name, text := range map[string]string{
		"List":         `{"apiVersion":"v1","items":[` + join(all, ",") + `],"kind":"List","metadata":{"resourceVersion":""}}`,
		"API lists":    `{"kind":"NodeList","apiVersion":"v1","items":[` + join(nodes, ",") + `]} {"kind":"PodList","items":[` + join(pods, ",") + `]}`,
		"JSON objects": join(all, "\n"),
		"JSON as YAML": "---\n" + join(all, "\n---\n"),
	} {
		if got := readYAML(t, text); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: read\n%+v\nwant\n%+v", name, got, want)
		}
	}
}

// What is read is a cluster that policies can be given.
func TestKubernetesMakesASnapshot(t *testing.T) {
	c := readYAML(t, string(golden("kubernetes.yaml")))
	s, err := cluster.NewSnapshot(c.Spec)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Nodes()) != 2 || len(s.Running()) != 1 {
		t.Errorf("%d nodes, %d running; want 2 and 1", len(s.Nodes()), len(s.Running()))
	}
	var b bytes.Buffer
	if err := WriteCluster(&b, c); err != nil {
		t.Fatal(err)
	}
	again, _, err := ReadCluster(bytes.NewReader(b.Bytes()), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var twice bytes.Buffer
	if err := WriteCluster(&twice, again); err != nil {
		t.Fatal(err)
	}
	if twice.String() != b.String() {
		t.Errorf("written, read and written again\n%s\nwant\n%s", twice.String(), b.String())
	}
}

func TestKubernetesDamagedDocuments(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"cut off":            {`{"items":[{"kind":"Node"`, "cut off"},
		"cut off in a list":  {`{"kind":"List","items":[`, "cut off"},
		"not JSON":           {`{"kind":oops}`, "invalid character"},
		"a list on top":      {`[{"kind":"Node"}]`, "where an object belongs"},
		"items is no list":   {`{"items":{"a":1}}`, "where a list belongs"},
		"a field twice":      {`{"kind":"Node","kind":"Pod"}`, "second time"},
		"garbage at the end": {`{"kind":"Service"} x`, "invalid character"},
		"bad YAML":           {"kind: [", "line 1"},
		"a key twice":        {"kind: Node\nkind: Pod\n", "already"},
		"only other kinds":   {`{"kind":"Service"}`, ErrEmpty.Error()},
		"alias bomb": {"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n" +
			"e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\nh: [*g,*g,*g,*g,*g,*g,*g,*g,*g]\n", "aliasing"},
	} {
		_, _, err := ReadKubernetes(strings.NewReader(c.text), Options{Name: "k.json"})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "k.json") {
			t.Errorf("%s: %v; want an error with %q and the file", name, err, c.want)
		}
	}
}

// JSON is read item by item: a cluster of many megabytes costs what is kept.
func TestKubernetesManyPods(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"kind":"List","items":[{"kind":"Node","metadata":{"name":"n"},"status":{"allocatable":{"cpu":"8"}}}`)
	const pods = 2000
	for i := range pods {
		fmt.Fprintf(&b, `,{"kind":"Pod","metadata":{"name":"p%d","namespace":"d"},"spec":{"nodeName":"n","containers":[{"image":"a"}]},"status":{"phase":"Running"},"filler":%q}`,
			i, strings.Repeat("x", 1000))
	}
	b.WriteString("]}")
	got := readYAML(t, b.String())
	if len(got.Running) != pods {
		t.Errorf("%d running; want %d", len(got.Running), pods)
	}
	if len(got.Nodes) != 1 {
		t.Errorf("%d nodes", len(got.Nodes))
	}
}
