package contention_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/sim/contention"
)

func encode(t testing.TB, c contention.Constants) []byte {
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestLoadRoundTrip(t *testing.T) {
	want := contention.Default()
	got, err := contention.Load(bytes.NewReader(encode(t, want)))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v became %+v", want, got)
	}
	if len(got.Workloads) != 8 || got.Server.Devices != 4 {
		t.Errorf("%d workloads, %d devices; the paper has 8 and the setting 4", len(got.Workloads), got.Server.Devices)
	}
}

func TestLoadRefuses(t *testing.T) {
	text := string(encode(t, contention.Default()))
	change := func(old, with string) string {
		if !strings.Contains(text, old) {
			t.Fatalf("no %q in the file", old)
		}
		return strings.Replace(text, old, with, 1)
	}
	before, _, _ := strings.Cut(text, `"workloads"`)
	for _, c := range []struct{ file, wanted string }{
		{"", "EOF"},
		{"{}", "server: devices is missing"},
		{"[]", "line 1"},
		{"{\n\"format\": x}", "line 2"},
		{text + "{}", "something follows"},
		{change(`"nic"`, `"nics"`), `unknown field "nics"`},
		{change(`"nic": 1.17,`, ""), "server: nic is missing"},
		{change(`"nic": 1.17`, `"nic": null`), "server: nic is missing"},
		{change(`"nic": 1.17`, `"nic": 0`), "server: nic is 0; give a number more than 0"},
		{change(`"nic": 1.17`, `"nic": 1e9`), "check its unit"},
		{change(`"nic": 1.17`, `"nic": "fast"`), "line "},
		{change(`"nic": 1.17`, `"nic": 1e999`), "line "},
		{change(`"devices": 4`, `"devices": 0`), "devices is 0"},
		{change(`"rack_oversubscription": 4`, `"rack_oversubscription": 0.5`), "rack_oversubscription is 0.5"},
		{change(`"format": 1`, `"format": 2`), "format is 2"},
		{change(`"batch": 32`, `"batch": -1`), `workloads[0] "resnet-50/32": batch is -1`},
		{change(`"batch": 32,`, ""), `workloads[0] "resnet-50/32": batch is missing`},
		{change(`"vgg-16/32"`, `"resnet-50/32"`), "listed twice"},
		{change(`"vgg-16/32"`, `"vgg+16"`), "name must not"},
		{change(`"vgg-16/32"`, `"vgg/ps"`), "parameter servers"},
		{change(`"worker_cpus": 2`, `"worker_cpus": 17`), "worker_cpus is 17, more than 16"},
		{change(`"ps_memory_bound": 0.6`, `"ps_memory_bound": 1.6`), "ps_memory_bound is 1.6"},
		{change(`"ps_cpu_seconds": `, `"ps_cpu_seconds": -`), "give a number at least 0"},
		{before + `"workloads": []}`, "workloads: none"},
		{strings.Repeat(" ", 1<<20) + text, "is this the right file"},
	} {
		if _, err := contention.Load(strings.NewReader(c.file)); err == nil || !strings.Contains(err.Error(), c.wanted) {
			t.Errorf("%.60q...: %v, want %q", c.file, err, c.wanted)
		}
	}
}

// Whatever is taken makes a world whose rates are sane.
func FuzzParse(f *testing.F) {
	f.Add(encode(f, contention.Default()))
	f.Add(encode(f, hand()))
	f.Add([]byte(`{"format":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := contention.Parse(data)
		if err != nil {
			return
		}
		again, err := contention.Parse(encode(t, c))
		if err != nil || !reflect.DeepEqual(again, c) {
			t.Fatalf("written and read again: %v", err)
		}
		last := len(c.Workloads) - 1
		s := snapshot(t, c, 2, 1, where{0, []int{0}, []int{1}}, where{last, []int{0}, []int{0}})
		for id, rate := range rates(t, contention.Config{Constants: &c}, s) {
			if !(rate >= 0 && rate <= 1+1e-9) {
				t.Errorf("%s goes at %g", id, rate)
			}
		}
	})
}

func TestRequestsFitNodes(t *testing.T) {
	c := contention.Default()
	nodes, workloads := c.Nodes(6, 2), c.Requests()
	if len(nodes) != 6 || len(nodes[0].Devices) != 4 || len(workloads) != 16 {
		t.Fatalf("%d nodes of %d devices, %d workloads", len(nodes), len(nodes[0].Devices), len(workloads))
	}
	if a, b := nodes[1].Labels[cluster.RackKey], nodes[2].Labels[cluster.RackKey]; a != "rack-0" || b != "rack-1" {
		t.Errorf("racks %q and %q", a, b)
	}
	// A server holds a worker a device and as many parameter servers.
	s, err := cluster.NewSnapshot(cluster.Spec{Nodes: nodes[:1], Workloads: workloads})
	if err != nil {
		t.Fatal(err)
	}
	tasks := c.Workloads[0].Tasks("job", 4, 4)
	p := cluster.NewPlacement(s, tasks)
	for i := range tasks {
		if reason := p.Check(p.Kind(i), 0); reason != cluster.Fits {
			t.Fatalf("task %d: %v", i, reason)
		}
		p.Put(p.Kind(i), 0)
	}
}
