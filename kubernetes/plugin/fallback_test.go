package plugin

import (
	"strings"
	"testing"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/kubernetes/controlplane/planetest"
	"github.com/cotenant/cotenant/kubernetes/plugin/plan"
	"github.com/cotenant/cotenant/place"
)

// policyOf puts a policy in place of the configured one.
func (w *world) policyOf(f func(place.Request) (place.Decision, error)) {
	w.Helper()
	c := w.core()
	s := c.brain.Now()
	c.planning.Lock()
	defer c.planning.Unlock()
	c.policies = &policies{state: s, Policies: plan.Policies{Model: s.Model, Services: policyFunc(f)}}
}

func (w *world) core() *core {
	switch p := w.plugin.(type) {
	case *Plugin:
		return p.core
	case *Shadow:
		return p.core
	}
	w.Fatalf("the plugin is a %T", w.plugin)
	return nil
}

type policyFunc func(place.Request) (place.Decision, error)

func (f policyFunc) Place(r place.Request) (place.Decision, error) { return f(r) }

// Whatever a policy does, pods get a node by the stock scores, and an event says
// why.
func TestPodsAreScheduledWhateverThePolicyDoes(t *testing.T) {
	free := make(chan bool)
	defer close(free)
	for name, c := range map[string]struct {
		policy func(place.Request) (place.Decision, error)
		code   plan.Code
	}{
		"sleeps":  {func(place.Request) (place.Decision, error) { <-free; return place.Decision{}, nil }, plan.PolicyLate},
		"panics":  {func(place.Request) (place.Decision, error) { panic("oh") }, plan.PolicyPanicked},
		"is full": {func(r place.Request) (place.Decision, error) { return allOn(r, "n0"), nil }, plan.BadDecision},
	} {
		for _, mode := range []string{"enforce", "shadow"} {
			t.Run(name+" in "+mode, func(t *testing.T) {
				w := start(t, "mode: "+mode+", slotsPerNode: 2, groupWindow: 20ms, timeBudget: 500ms, timePerPod: 0s", nodes(4, "2")...)
				w.policyOf(c.policy)
				w.create(list(4, "red")...)
				w.settles(4)
				w.tells(string(c.code), 4)
			})
		}
	}
}

// tells waits until events hold a text so many times.
func (w *world) tells(text string, times int) {
	w.Helper()
	told := ""
	for end := time.Now().Add(10 * time.Second); strings.Count(told, text) < times; time.Sleep(10 * time.Millisecond) {
		told += w.told() + "\n"
		if time.Now().After(end) {
			w.Fatalf("%d events, and not %d, say %s:\n%s", strings.Count(told, text), times, text, told)
		}
	}
}

// A model that panics leaves pods to the scheduler, too.
func TestPodsAreScheduledWhateverTheModelDoes(t *testing.T) {
	for _, mode := range []string{"enforce", "assist", "shadow"} {
		t.Run(mode, func(t *testing.T) {
			w := start(t, "mode: "+mode+", slotsPerNode: 2, groupWindow: 20ms", nodes(4, "2")...)
			c := w.core()
			s := c.brain.Now()
			s.Model = panics{s.Model} // nothing has read it yet
			c.planning.Lock()
			c.policies = &policies{state: s, Policies: plan.Policies{Model: s.Model, Services: policyFunc(func(r place.Request) (place.Decision, error) { return allOn(r, "n0"), nil })}}
			c.planning.Unlock()
			w.create(list(4, "red")...)
			w.settles(4)
			w.tells(string(plan.PolicyPanicked), 4)
		})
	}
}

type panics struct{ interference.Model }

func (panics) Predict(string, history.Metric, []cluster.Colocation) [][]interference.Estimate {
	panic("no such tensor")
}

func allOn(r place.Request, node string) place.Decision {
	var d place.Decision
	for _, task := range r.Tasks() {
		d.Bind = append(d.Bind, place.Binding{Task: task.ID, Node: node})
	}
	return d
}

// A scheduler that starts with a file which is cut off, or with none, as before
// its ConfigMap is made, schedules by the stock scores, says why of each pod and
// once of itself, and takes up its work with a good file.
func TestStartWithoutAGoodFile(t *testing.T) {
	for name, c := range map[string]struct{ samples, says string }{
		"cut off": {planetest.TwoColours[:40], "line 1"},
		"absent":  {"", "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("POD_NAME", "cotenant-scheduler-0")
			t.Setenv("POD_NAMESPACE", "cotenant-system")
			w := startWith(t, c.samples, "mode: enforce, slotsPerNode: 2, groupWindow: 20ms, reloadPeriod: 100ms", nodes(3, "8")...)
			w.create(list(2, "red")...)
			w.settles(2)
			time.Sleep(500 * time.Millisecond) // in which the same file is looked at again
			told := w.told()
			if strings.Count(told, "bad-files") != 2 || strings.Count(told, c.says) != 3 {
				t.Errorf("not each of two pods is told of bad-files once, and what is wrong (%q):\n%s", c.says, told)
			}
			if strings.Count(told, "CotenantFilesRefused") != 1 {
				t.Errorf("the scheduler's own pod is not told of once:\n%s", told)
			}
			w.writeSamples(planetest.TwoColours)
			p := w.plugin.(*Plugin)
			for end := time.Now().Add(5 * time.Second); p.brain.Now().Bad != ""; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("the good file was not loaded")
				}
			}
			w.create(list(2, "blue")...)
			at := w.settles(4)
			if told := w.told(); strings.Contains(told, "bad-files") || strings.Count(told, "CotenantFilesLoaded") != 1 {
				t.Errorf("with a good file:\n%s", told)
			}
			for _, name := range []string{"blue-0", "blue-1"} {
				if d := w.decision(name); d.Planned != at[name] || d.Planned == "" {
					t.Errorf("with a good file %s is on %s by %+v", name, at[name], d)
				}
			}
		})
	}
}

func TestBadFilesAreRefusedAndGoodOnesLoaded(t *testing.T) {
	w := start(t, "mode: enforce, slotsPerNode: 2, groupWindow: 20ms, reloadPeriod: 100ms", nodes(3, "8")...)
	p := w.plugin.(*Plugin)
	before := p.brain.Now().Version
	w.writeSamples(`{"colocation":{"red":1},"workload":"red","metric":"rate","value":`)
	time.Sleep(500 * time.Millisecond)
	if got := p.brain.Now().Version; got != before {
		t.Fatalf("a file that is cut off was taken: version %s, was %s", got, before)
	}
	w.create(list(2, "red")...)
	w.settles(2)
	w.writeSamples(planetest.TwoColours + `{"colocation":{"green":1},"workload":"green","metric":"rate","value":1,"alone":1}` + "\n")
	for end := time.Now().Add(5 * time.Second); p.brain.Now().Version == before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the new file was not loaded")
		}
	}
	if !p.brain.Now().Known("green") {
		t.Error("green is unknown still")
	}
}
