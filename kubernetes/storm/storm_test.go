package storm_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/cotenant/cotenant/kubernetes/bench"
	"github.com/cotenant/cotenant/kubernetes/controlplane"
	"github.com/cotenant/cotenant/kubernetes/controlplane/planetest"
	"github.com/cotenant/cotenant/kubernetes/storm"
)

// What a storm is like. The cluster is full: the gangs that are pending want
// more than it has.
const (
	nodes     = 20
	slots     = 8
	gangs     = 200
	fewGangs  = 40 // with -short
	gangMax   = 16
	pendingOf = 1.5 // so many times the slots are asked for at a time
	// limit is how long a gang may be in part: the schedulers' own timeout of
	// 20 s, and what it takes to evict and to see it.
	timeout = 20 * time.Second
	limit   = timeout + 15*time.Second
	calm    = 3 * time.Minute // by when all gangs have run, after the storm
)

// The native API is the stock scheduler's too: what it does is the measure.
func TestStockGangs(t *testing.T) {
	if testing.Short() {
		t.Skip("what the stock scheduler does in a storm is to compare with")
	}
	blow(t, bench.Stock(), true, func(g gang, p *corev1.Pod) {
		p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &g.name}
	})
}

func TestNativeGangs(t *testing.T) {
	blow(t, bench.Gangs(timeout), true, func(g gang, p *corev1.Pod) {
		p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &g.name}
	})
}

func TestLabelledGangs(t *testing.T) {
	blow(t, bench.Gangs(timeout), false, func(g gang, p *corev1.Pod) {
		p.Labels["kueue.x-k8s.io/pod-group-name"] = g.name
		p.Annotations["kueue.x-k8s.io/pod-group-total-count"] = strconv.Itoa(g.size)
	})
}

func blow(t *testing.T, c bench.Candidate, native bool, member func(gang, *corev1.Pod)) {
	submits := gangs
	if testing.Short() {
		submits = fewGangs
	}
	seed := uint64(1)
	if s := os.Getenv("STORM_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("STORM_SEED=%q: %v", s, err)
		}
	}
	config := controlplane.Config{}
	if native {
		config = config.WithGangs()
	}
	plane := planetest.Start(t, config, c.Program)
	truth, err := bench.ReadTruth("")
	if err != nil {
		t.Fatal(err)
	}
	w := &weather{
		T: t, ctx: t.Context(), rand: rand.New(rand.NewPCG(seed, 0)), plane: plane, kube: plane.Client(), native: native, member: member,
		ledger: storm.NewLedger(limit), away: map[string]time.Time{},
		nodes: controlplane.Nodes(nodes, controlplane.NodeShape{CPU: fmt.Sprint(slots)}),
	}
	for _, n := range w.nodes {
		if err := plane.AddNodes(w.ctx, n.DeepCopy()); err != nil {
			t.Fatal(err)
		}
	}
	w.watch()
	w.mayEvict()
	text, err := c.For(truth, plane.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if w.scheduler, err = plane.StartScheduler(w.ctx, controlplane.Scheduler{Program: c.Program, Configuration: text, Args: []string{"-v=3"}}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if t.Failed() {
			keep(t, w.scheduler.Log())
		}
	}()
	w.storm(submits, truth.Workloads)
	w.mend(time.Now().Add(time.Hour)) // all nodes come back
	w.compareCache("with the gangs of the storm there")
	w.calm()
	for _, wrong := range w.ledger.Wrong() {
		t.Error(wrong)
	}
	w.compareCache("with all gangs gone")
	t.Logf("%d pods were bound", w.ledger.Binds())
}

// keep copies a log to where it outlives the plane.
func keep(t *testing.T, log string) {
	text, err := os.ReadFile(log)
	if err != nil {
		t.Log(err)
		return
	}
	path := filepath.Join(os.TempDir(), "storm-"+filepath.Base(log))
	t.Logf("the scheduler's log is in %s (%v)", path, os.WriteFile(path, text, 0o600))
}

// storm submits so many gangs while everything goes wrong.
func (w *weather) storm(gangs int, workloads []string) {
	begin := time.Now()
	nextKill, nextAPI := begin.Add(8*time.Second), begin.Add(20*time.Second)
	for submitted := 0; submitted < gangs; {
		asked := 0
		for _, g := range w.running {
			asked += g.size
		}
		for asked < pendingOf*nodes*slots && submitted < gangs {
			g := gang{name: fmt.Sprintf("gang-%03d", submitted), size: 1 + w.rand.IntN(gangMax), workload: workloads[w.rand.IntN(len(workloads))]}
			w.submit(g)
			submitted++
			asked += g.size
		}
		switch draw := w.rand.IntN(100); {
		case draw < 50:
			if whole := w.whole(); len(whole) > 0 {
				w.finish(whole[w.rand.IntN(len(whole))])
			}
		case draw < 80:
			g := w.running[w.rand.IntN(len(w.running))]
			w.deletePod(g.pods()[w.rand.IntN(g.size)])
		case draw < 90:
			if n := w.nodes[w.rand.IntN(len(w.nodes))]; len(w.away) < nodes/5 {
				w.loseNode(n.Name, time.Now().Add(time.Duration(1+w.rand.IntN(4))*time.Second))
			}
		}
		now := time.Now()
		if now.After(nextKill) {
			w.restartScheduler(time.Duration(w.rand.IntN(1000)) * time.Millisecond)
			nextKill = time.Now().Add(10 * time.Second)
		}
		if now.After(nextAPI) {
			w.restartAPI(time.Duration(w.rand.IntN(2000)) * time.Millisecond)
			nextAPI = time.Now().Add(25 * time.Second)
		}
		w.mend(time.Now())
		time.Sleep(100 * time.Millisecond)
	}
	w.Logf("%d gangs were submitted in a storm of %.0f s", gangs, time.Since(begin).Seconds())
}

// whole lists the positions of gangs all of whose pods run. That they are bound
// is not enough: one may be bound to a node that is gone by then.
func (w *weather) whole() []int {
	var all []int
	for i, g := range w.running {
		if w.ledger.Whole(g.name) && w.ledger.All(g.name, corev1.PodRunning) {
			all = append(all, i)
		}
	}
	return all
}

// calm ends gangs as they become whole; each must in the end, or a pod was lost.
func (w *weather) calm() {
	for deadline := time.Now().Add(calm); len(w.running) > 0; {
		if whole := w.whole(); len(whole) > 0 {
			w.finish(whole[0])
		}
		w.mend(time.Now())
		if time.Now().After(deadline) {
			for _, g := range w.running {
				w.Errorf("gang %s of %d pods has not run within %v after the storm", g.name, g.size, calm)
			}
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}
