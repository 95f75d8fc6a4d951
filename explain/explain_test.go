package explain_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/cotenant/cotenant/explain"
	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/interference"
)

// pod is a pod as the API server has it; more is what its spec has beside.
func pod(name, node, workload, metadata, spec, status string) string {
	return fmt.Sprintf(`{"kind":"Pod","metadata":{"name":%q,"namespace":"d","uid":"u-%s","labels":{"cotenant.dev/workload":%q%s}},
		"spec":{"nodeName":%q,"schedulerName":"s"%s,"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1"}}}]},"status":{%s}}`,
		name, name, workload, metadata, node, spec, status)
}

func node(name string) string {
	return fmt.Sprintf(`{"kind":"Node","metadata":{"name":%q},"status":{"allocatable":{"cpu":"4","pods":"10"}}}`, name)
}

func event(pod, reason, message string) string {
	text, _ := json.Marshal(message)
	return fmt.Sprintf(`{"kind":"Event","involvedObject":{"kind":"Pod","namespace":"d","name":%q,"uid":"u-%s"},"reason":%q,"message":%s,"eventTime":"2026-01-02T03:04:05.000001Z","lastTimestamp":null}`,
		pod, pod, reason, text)
}

func list(objects ...string) string {
	return `{"kind":"List","items":[` + strings.Join(objects, ",") + `]}`
}

func read(t testing.TB, text string) *explain.Objects {
	t.Helper()
	o, err := explain.Read(strings.NewReader(text), formats.Options{Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Report.Warnings) > 0 {
		t.Fatal(o.Report.Warnings)
	}
	return o
}

// annotated puts a decision beside the labels.
func annotated(decision string) string {
	text, _ := json.Marshal(decision)
	return `},"annotations":{"cotenant.dev/decision":` + string(text)
}

func refused(message string) string {
	text, _ := json.Marshal(message)
	return `"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":` + string(text) + `}]`
}

const (
	bound  = `"phase":"Running","conditions":[{"type":"PodScheduled","status":"True"}]`
	noCPU  = "0/3 nodes are available: 2 Insufficient cpu, 1 node(s) had untolerated taint {a: b, c}. preemption: 0/3 nodes are available: 3 No preemption victims found."
	ofGang = `,"cotenant.dev/gang":"g","cotenant.dev/gang-minimum":"3"`
)

func TestTheDominantReasonComesFirst(t *testing.T) {
	for _, c := range []struct {
		name    string
		objects []string
		state   explain.State
		reason  string
		says    []string // the first in Words, the others in Details
	}{
		{
			"planned",
			[]string{pod("p", "n1", "a", annotated(`{"mode":"enforce","policy":"metis","version":"v1","plan":3,"pods":7,"planned":"n1","node":"n1","performance":0.93}`), "", bound)},
			explain.Placed, explain.ByPlan,
			[]string{"metis chose n1, where it expects a performance of 0.93", "plan 3, made for 7 pods, with the files of version v1"},
		},
		{
			"elsewhere",
			[]string{pod("p", "n2", "a", annotated(`{"mode":"enforce","policy":"metis","planned":"n1","node":"n2"}`), "", bound)},
			explain.Placed, explain.Elsewhere,
			[]string{"it went to n2, though metis had it on n1"},
		},
		{
			"fallback",
			[]string{pod("p", "n2", "a", annotated(`{"mode":"enforce","planned":"n1","node":"n2","fallback":"policy-late","why":"it took 300ms of 200ms"}`), "", bound)},
			explain.Placed, "policy-late",
			[]string{"chose n2, since the plan was not followed: it took 300ms of 200ms", "the plan had it on n1"},
		},
		{
			"assisted",
			[]string{pod("p", "n2", "a", annotated(`{"mode":"assist","policy":"score","version":"v1","node":"n2"}`), "", bound)},
			explain.Placed, explain.OwnScores,
			[]string{"scores together chose n2; Cotenant's, in the mode assist, is one of them", "files of version v1"},
		},
		{
			"assisted, of an unknown workload",
			[]string{pod("p", "n2", "a", annotated(`{"mode":"assist","policy":"score","fallback":"workload-unknown","why":"the model knows no a"}`), "", bound)},
			explain.Placed, "workload-unknown",
			[]string{"own scores chose n2, without one of Cotenant's, which is in the mode assist: the model knows no a"},
		},
		{
			"stock",
			[]string{pod("p", "n2", "a", "", "", bound), event("p", "CotenantFallback", "left to the scheduler's own scores: workload-unknown: nobody measured a")},
			explain.Placed, explain.OwnScores,
			[]string{"scheduler s chose n2 by its own scores", "nobody measured a"},
		},
		{
			"static",
			[]string{pod("p", "n2", "a", "", "", `"phase":"Running"`)},
			explain.Placed, explain.OwnScores,
			[]string{"created on n2: no scheduler was asked"},
		},
		{
			"shadow",
			[]string{pod("p", "n2", "a", "", "", bound), event("p", "CotenantShadow", `would have gone to n1, went to n2; decision: {"mode":"shadow","policy":"metis","plan":1,"pods":2,"planned":"n1","node":"n2"}`)},
			explain.Placed, explain.OwnScores,
			[]string{"only watched", "metis would have put it on n1"},
		},
		{
			"ended",
			[]string{pod("p", "n2", "a", "", "", `"phase":"Succeeded"`)},
			explain.Ended, explain.HasEnded,
			[]string{"has run to its end (Succeeded) on n2"},
		},
		{
			"gated",
			[]string{pod("p", "", "a", ofGang, `,"schedulingGates":[{"name":"kueue.x-k8s.io/admission"}]`, `"phase":"Pending"`)},
			explain.Waiting, explain.Gated,
			[]string{"holds it back: kueue.x-k8s.io/admission"},
		},
		{
			"refused",
			[]string{pod("p", "", "a", "", "", refused(noCPU))},
			explain.Waiting, explain.Unschedulable,
			[]string{"no node takes it: 2 of 3 nodes: too little cpu is free", "1 of 3 nodes: the node had untolerated taint {a: b, c}"},
		},
		{
			"said by an event",
			[]string{pod("p", "", "a", "", "", `"phase":"Pending"`), event("p", "FailedScheduling", noCPU)},
			explain.Waiting, explain.Unschedulable,
			[]string{"no node takes it: 2 of 3 nodes: too little cpu is free"},
		},
		{
			"a plugin refuses",
			[]string{pod("p", "", "a", "", "", refused("0/3 nodes are available: waits while gang x is placed."))},
			explain.Waiting, explain.Unschedulable,
			[]string{"waits while gang x is placed"},
		},
		{
			"preempting",
			[]string{pod("p", "", "a", "", "", `"nominatedNodeName":"n1",`+refused(noCPU))},
			explain.Waiting, explain.Preempting,
			[]string{"to leave n1"},
		},
		{
			"unseen",
			[]string{pod("p", "", "a", "", "", `"phase":"Pending"`)},
			explain.Waiting, explain.Unseen,
			[]string{"is one named s running"},
		},
		{
			"incomplete",
			[]string{pod("p", "", "a", ofGang, "", refused(noCPU)), pod("q", "n1", "a", ofGang, "", bound)},
			explain.Waiting, explain.GangIncomplete,
			[]string{"2 of the 3 pods that go together exist", "1 bound, 1 waiting, 1 do not exist"},
		},
		{"gang waits", []string{
			pod("p", "", "a", ofGang, "", refused("0/3 nodes are available: pod q of gang g has no node.")),
			pod("q", "", "a", ofGang, "", refused(noCPU)), pod("r", "", "a", ofGang, "", `"phase":"Pending"`),
		}, explain.Waiting, explain.GangWaits, []string{"goes whole or not at all, and no node takes q: 2 of 3 nodes: too little cpu is free"}},
		{"gang waits, and one was told why", []string{
			pod("p", "", "a", ofGang, "", `"phase":"Pending"`), pod("r", "", "a", ofGang, "", `"phase":"Pending"`),
			pod("q", "", "a", ofGang, "", refused("0/3 nodes are available: gang g waits for gang f.")),
		}, explain.Waiting, explain.GangWaits, []string{"the scheduler said of q: 0/3 nodes are available: gang g waits for gang f"}},
		{"of a gang nobody was told anything", []string{
			pod("p", "", "a", ofGang, "", `"phase":"Pending"`), pod("q", "", "a", ofGang, "", `"phase":"Pending"`), pod("r", "", "a", ofGang, "", `"phase":"Pending"`),
		}, explain.Waiting, explain.Unseen, []string{"is one named s running"}},
	} {
		a, err := read(t, list(c.objects...)).Pod("d", "p")
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if a.State != c.state || a.Reason != c.reason || !strings.Contains(a.Words, c.says[0]) {
			t.Errorf("%s: %s, %s, %q; want %s, %s, %q", c.name, a.State, a.Reason, a.Words, c.state, c.reason, c.says[0])
		}
		for _, text := range c.says[1:] {
			if !strings.Contains(strings.Join(a.Details, "\n"), text) {
				t.Errorf("%s: %q do not say %q", c.name, a.Details, text)
			}
		}
	}
}

func TestEventsOfAnEarlierPodAreNotTaken(t *testing.T) {
	old := strings.ReplaceAll(event("p", "CotenantFallback", "of old"), "u-p", "another")
	a, err := read(t, list(pod("p", "n", "a", "", "", bound), old)).Pod("d", "p")
	if err != nil || len(a.Details) > 0 {
		t.Errorf("%q, %v", a.Details, err)
	}
}

func TestWhatIsNotThereIsNamed(t *testing.T) {
	o := read(t, list(pod("p", "n", "a", ofGang, "", bound)))
	if _, err := o.Pod("x", "p"); err == nil || !strings.Contains(err.Error(), "one of that name is in d") {
		t.Errorf("%v", err)
	}
	if _, err := o.Group("d", "h"); err == nil || !strings.Contains(err.Error(), "it has g") {
		t.Errorf("%v", err)
	}
}

func TestGroups(t *testing.T) {
	owned := func(name, node, status string) string {
		return strings.Replace(pod(name, node, "a", "", "", status), `"uid"`,
			`"ownerReferences":[{"kind":"ReplicaSet","name":"web-7d9f","controller":true}],"uid"`, 1)
	}
	group := `{"kind":"PodGroup","metadata":{"name":"native","namespace":"d"},"spec":{"schedulingPolicy":{"gang":{"minCount":4}}}}`
	o := read(t, list(owned("w1", "n1", bound), owned("w2", "", refused(noCPU)), owned("w3", "n1", bound),
		pod("g1", "", "a", ofGang, "", refused(noCPU)), pod("g2", "", "a", ofGang, "", `"phase":"Pending"`), pod("g3", "", "a", ofGang, "", `"phase":"Pending"`),
		pod("x1", "n1", "a", "", `,"schedulingGroup":{"podGroupName":"native"}`, bound), group))
	for _, name := range []string{"web", "web-7d9f", "ReplicaSet/web-7d9f"} {
		a, err := o.Group("d", name)
		if err != nil || a.State != explain.Part || a.Reason != explain.Unschedulable || !strings.Contains(strings.Join(a.Details, "\n"), "on n1 (2)") {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
	a, err := o.Group("d", "g")
	if err != nil || a.State != explain.Waiting || a.Reason != explain.Unschedulable || !strings.HasPrefix(a.Words, "1 of 3: g1: no node takes it") {
		t.Errorf("%+v, %v", a, err)
	}
	// The one that was told why outvotes those that the scheduler has not looked at.
	held := read(t, list(pod("g1", "", "a", ofGang, "", `"phase":"Pending"`), pod("g2", "", "a", ofGang, "", `"phase":"Pending"`),
		pod("g3", "", "a", ofGang, "", refused("0/3 nodes are available: gang g waits for gang f."))))
	a, err = held.Group("d", "g")
	if err != nil || a.Reason != explain.Unschedulable || a.Words != "1 of 3: g3: gang g waits for gang f" {
		t.Errorf("%+v, %v", a, err)
	}
	a, err = o.Group("d", "native")
	if err != nil || a.Gang == nil || a.Gang.Missing != 3 || a.Gang.Minimum != 4 {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestRefusals(t *testing.T) {
	got, of, ok := explain.Refusals(noCPU)
	want := []explain.Refusal{{Nodes: 2, Why: "Insufficient cpu"}, {Nodes: 1, Why: "node(s) had untolerated taint {a: b, c}"}}
	if !ok || of != 3 || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v of %d, %v", got, of, ok)
	}
	if _, _, ok := explain.Refusals("running PreBind plugin: conflict"); ok {
		t.Error("another text was taken for refusals")
	}
}

func FuzzRefusals(f *testing.F) {
	f.Add(noCPU)
	f.Add("0/0 nodes are available: .")
	f.Add("/9 nodes are available: 1, 2 , 3 x")
	f.Fuzz(func(t *testing.T, text string) {
		if r, _, ok := explain.Refusals(text); ok && len(r) == 0 {
			t.Error("refusals without one")
		}
	})
}

func FuzzRead(f *testing.F) {
	f.Add(list(pod("p", "n", "a", annotated(`{"mode":"shadow"}`), "", bound), event("p", "CotenantShadow", "decision: {}")))
	f.Add(`{"kind":"PodList","items":[{"metadata":null}]}`)
	f.Fuzz(func(_ *testing.T, text string) {
		o, err := explain.Read(strings.NewReader(text), formats.Options{Name: "fuzz", MaxBytes: 1 << 20})
		if err != nil {
			return
		}
		for _, p := range o.Pods {
			_, _ = o.Pod(p.Namespace, p.Name) // must not panic
			if p.Gang != nil {
				_, _ = o.Group(p.Namespace, p.Gang.Name)
			}
		}
	})
}

const samples = `{"colocation":{"a":1},"workload":"a","metric":"rate","value":1,"alone":1}
{"colocation":{"b":1},"workload":"b","metric":"rate","value":1,"alone":1}
{"colocation":{"a":1,"b":1},"workload":"a","metric":"rate","value":0.9,"alone":1}
{"colocation":{"a":1,"b":1},"workload":"b","metric":"rate","value":0.8,"alone":1}
{"colocation":{"a":2},"workload":"a","metric":"rate","value":0.5,"alone":1}
`

func world(t testing.TB, text string, slots int) *explain.World {
	t.Helper()
	s, _, err := formats.ReadJSONL(strings.NewReader(samples), formats.Options{Name: "samples"})
	if err != nil {
		t.Fatal(err)
	}
	m, err := interference.Fit(interference.KindTable, s, interference.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := formats.ReadKubernetes(strings.NewReader(text), formats.Options{Name: "cluster"})
	if err != nil {
		t.Fatal(err)
	}
	return explain.NewWorld(c, m, slots)
}

// p is with another a on n1; on n2, which has a b, all would do better, on n3 even
// more; n4 is full of what nobody measured.
func TestAlternatives(t *testing.T) {
	text := list(node("n1"), node("n2"), node("n3"), node("n4"), pod("p", "n1", "a", "", "", bound), pod("q", "n1", "a", "", "", bound), pod("r", "n2", "b", "", "", bound),
		pod("x1", "n4", "x", "", "", bound), pod("x2", "n4", "x", "", "", bound), pod("x3", "n4", "x", "", "", bound), pod("x4", "n4", "x", "", "", bound),
		pod("w", "", "b", "", "", refused(noCPU)))
	o := read(t, text)
	a, err := o.Pod("d", "p")
	if err != nil {
		t.Fatal(err)
	}
	if err := world(t, text, 2).Alternatives(&a); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, alt := range a.Alternatives {
		got = append(got, fmt.Sprintf("%s %.2f %+.2f %v", alt.Node, *alt.Performance, *alt.Gain, alt.Fits))
	}
	want := []string{"n3 1.00 +1.00 true", "n2 0.90 +0.70 true", "n1 0.50 +0.00 true", "n4 1.00 +1.00 false"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q; want %q", got, want)
	}
	if !strings.Contains(a.Alternatives[3].Why, "cpu") {
		t.Errorf("n4: %q", a.Alternatives[3].Why)
	}
	if text := strings.Join(a.Details, "\n"); !strings.Contains(text, "on n1, beside a as it is now, its performance is 0.5 (1 is alone), and it changes that of its neighbours by -0.5 in all") {
		t.Error(text)
	}
	if text := strings.Join(a.Details, "\n"); !strings.Contains(text, "2 of 3 other nodes have room for it, and on 2 of them all tasks together would do better; best is n3: +1") {
		t.Error(text)
	}
	// One that waits: what it brings where it would come.
	if a, err = o.Pod("d", "w"); err != nil {
		t.Fatal(err)
	}
	if err := world(t, text, 2).Alternatives(&a); err != nil {
		t.Fatal(err)
	}
	if best := a.Alternatives[0]; best.Node != "n3" || *best.Gain != 1 {
		t.Errorf("best is %+v", best)
	}
}

// Where there is no model, none is named.
func TestWhatNobodyMeasuredIsNoModels(t *testing.T) {
	text := list(node("n1"), pod("p", "n1", "x", "", "", bound), pod("q", "n1", "b", "", "", bound), pod("r", "n1", "b", "", "", bound))
	for name, want := range map[string]string{"p": "nobody measured x: what other nodes", "q": "what it is worth on n1 is not known: nobody measured b*2"} {
		a, err := read(t, text).Pod("d", name)
		if err != nil {
			t.Fatal(err)
		}
		if err := world(t, text, 0).Alternatives(&a); err != nil {
			t.Fatal(err)
		}
		if said := strings.Join(a.Details, "\n"); !strings.Contains(said, want) || strings.Contains(said, "the model") {
			t.Errorf("%s: %s", name, said)
		}
	}
}

func shadowed(name, at, planned string, plan int) string {
	return event(name, "CotenantShadow", fmt.Sprintf(`would have gone to %s; decision: {"mode":"shadow","plan":%d,"planned":%q,"node":%q}`, planned, plan, planned, at))
}

func TestShadow(t *testing.T) {
	text := list(node("n1"), node("n2"), node("n3"), pod("p", "n1", "a", "", "", bound), pod("q", "n1", "a", "", "", bound), pod("r", "n2", "b", "", "", bound),
		pod("x", "n1", "x", "", "", bound), shadowed("p", "n1", "n3", 1), shadowed("q", "n1", "n1", 2))
	s := world(t, text, 2).Shadow(read(t, text), "")
	if s.Pods != 3 || s.WithPlan != 2 || s.Elsewhere != 1 || s.OtherNeighbours != 2 || s.Unrecorded != 1 || s.NoRoom != 0 || s.Valued != 3 {
		t.Errorf("%+v", s)
	}
	if *s.Actual != 0.6667 || *s.Planned != 1 || *s.Gain != 0.5 {
		t.Errorf("%v, %v, %v", *s.Actual, *s.Planned, *s.Gain)
	}
	// Of one namespace only its pods are told of; the others are their neighbours
	// where the plans have them.
	elsewhere := func(text string) string { return strings.ReplaceAll(text, `"namespace":"d"`, `"namespace":"e"`) }
	text = list(node("n1"), node("n2"), pod("p", "n1", "a", "", "", bound), elsewhere(pod("q", "n1", "a", "", "", bound)), elsewhere(shadowed("q", "n1", "n2", 1)))
	if s = world(t, text, 2).Shadow(read(t, text), "d"); s.Pods != 1 || s.WithPlan != 0 || *s.Actual != 0.5 || *s.Planned != 1 {
		t.Errorf("%+v", s)
	}
	if s = world(t, text, 2).Shadow(read(t, text), "e"); s.Pods != 1 || s.WithPlan != 1 || *s.Planned != 1 {
		t.Errorf("%+v", s)
	}
	// Those that the scheduler could not judge are counted beside them: neither one
	// that another mode decided on, nor one that has ended.
	text = list(node("n1"), pod("p", "n1", "a", "", "", bound), pod("x", "n1", "x", "", "", bound), pod("y", "n1", "x", annotated(`{"mode":"enforce"}`), "", bound),
		pod("z", "n1", "x", "", "", `"phase":"Failed"`), pod("v", "n1", "x", "", "", bound),
		event("x", "CotenantFallback", "workload-unknown"), event("y", "CotenantFallback", "workload-unknown"), event("z", "CotenantFallback", "workload-unknown"))
	if s := world(t, text, 2).Shadow(read(t, text), ""); s.Pods != 1 || s.Unjudged != 1 || s.Unknown != 3 || !reflect.DeepEqual(s.UnknownWorkloads, []string{"x"}) {
		t.Errorf("%+v", s)
	}
	// Alike nodes are exchangeable: another of them is no other place.
	text = list(node("n1"), node("n2"), pod("p", "n1", "a", "", "", bound), shadowed("p", "n1", "n2", 1))
	if s = world(t, text, 2).Shadow(read(t, text), ""); s.Elsewhere != 1 || s.OtherNeighbours != 0 || *s.Gain != 0 {
		t.Errorf("%+v", s)
	}
	// Those of the other modes, and those of which nothing is recorded, have no plan
	// and are told apart from those that the mode shadow saw.
	text = list(node("n1"), node("n2"), node("n3"), pod("p", "n1", "a", annotated(`{"mode":"enforce","planned":"n1","node":"n1"}`), "", bound),
		pod("q", "n2", "a", "", "", bound), pod("r", "n3", "b", "", "", bound), event("r", "CotenantFallback", "policy-late"))
	if s = world(t, text, 2).Shadow(read(t, text), ""); s.Pods != 3 || s.Decided != 1 || s.Unplanned != 1 || s.Unrecorded != 1 || s.Actual == nil || s.Planned != nil || s.Gain != nil {
		t.Errorf("%+v", s)
	}
	// Two of five that can be valued say nothing of the others.
	text = list(node("n1"), node("n2"), pod("p", "n1", "a", "", "", bound), pod("q", "n1", "a", "", "", bound), shadowed("p", "n1", "n1", 1),
		pod("r", "n2", "b", "", "", bound), pod("u", "n2", "b", "", "", bound), pod("v", "n2", "b", "", "", bound))
	if s = world(t, text, 0).Shadow(read(t, text), ""); s.Valued != 2 || s.Planned == nil || s.Gain != nil {
		t.Errorf("%+v", s)
	}
	// Where the plans together leave no room, the later ones' pods stay.
	text = list(node("n1"), node("n2"), pod("p", "n1", "a", "", "", bound), pod("q", "n1", "a", "", "", bound), pod("r", "n2", "b", "", "", bound),
		shadowed("p", "n1", "n2", 1), shadowed("q", "n1", "n2", 2))
	s = world(t, text, 2).Shadow(read(t, text), "")
	if s.Elsewhere != 2 || s.NoRoom != 1 || *s.Planned != 0.9 {
		t.Errorf("%+v, %v", s, *s.Planned)
	}
	// Nobody measured b twice.
	text = list(node("n1"), pod("p", "n1", "b", "", "", bound), pod("q", "n1", "b", "", "", bound))
	s = world(t, text, 0).Shadow(read(t, text), "")
	if s.Valued != 0 || s.Actual != nil || s.Gain != nil || !reflect.DeepEqual(s.Silent, []string{"b*2"}) {
		t.Errorf("%+v", s)
	}
}

func ExampleObjects_Pod() {
	objects, err := explain.Read(strings.NewReader(list(pod("web-1", "", "web", "", "", refused(noCPU)))), formats.Options{Name: "pods.json"})
	if err != nil {
		fmt.Println(err)
		return
	}
	account, err := objects.Pod("d", "web-1")
	fmt.Println(account.State, account.Reason, err)
	fmt.Println(account.Words)
	// Output:
	// waiting unschedulable <nil>
	// no node takes it: 2 of 3 nodes: too little cpu is free
}
