package harmony_test

import (
	"reflect"
	"testing"

	"github.com/cotenant/cotenant/internal/num"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/encode"
	place_harmony "github.com/cotenant/cotenant/place/harmony"
	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/learned"
	"github.com/cotenant/cotenant/train/harmony"
)

// live runs an untrained policy for a long time in a world, learning by o or,
// where o is nil, not.
func live(t *testing.T, w harmony.World, jobsInAll int, o *harmony.OnlineOptions) (r sim.Result, updates int, net *num.Scorer) {
	t.Helper()
	net, err := num.NewScorer(place_harmony.Shape(2), num.Rand(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	policy := place_harmony.New(net, w.Speeds.Fork(), place_harmony.Options{Threshold: encode.Fixed(0.3)})
	e, err := w.Draw(1)
	if err != nil {
		t.Fatal(err)
	}
	c := sim.Config{Nodes: e.Nodes, Jobs: e.Jobs[:min(jobsInAll, len(e.Jobs))], Truth: learned.New(w.Speeds.Fork()), Policy: policy, Backfill: true, Observe: true}
	var online *harmony.Online
	if o != nil {
		if online, err = harmony.NewOnline(policy, *o); err != nil {
			t.Fatal(err)
		}
		c.Policy = online
	}
	if r, err = sim.Run(c); err != nil {
		t.Fatal(err)
	}
	if online != nil {
		updates = online.Updates()
	}
	return r, updates, net
}

// Where greedy-wait, which the network starts from, is wrong, it must be left
// behind from what happens alone.
func TestLearnsOnline(t *testing.T) {
	w := toyStream(t, 1.15, 1500)
	still, _, untouched := live(t, w, 1500, nil)
	o := harmony.OnlineOptions{Seed: 1, Noted: 0.5, Every: 64, Rate: 5e-3}
	taught, updates, net := live(t, w, 1500, &o)
	t.Logf("mean JCT %.0f s without, %.0f s with %d updates", still.MeanJCT, taught.MeanJCT, updates)
	if updates < 5 || taught.MeanJCT > 0.8*still.MeanJCT {
		t.Errorf("mean JCT is %.0f s after %d updates, %.0f s without; want 20 %% less", taught.MeanJCT, updates, still.MeanJCT)
	}
	for i, x := range net.Tensors() {
		if !reflect.DeepEqual(x.Data, untouched.Tensors()[i].Data) {
			t.Errorf("tensor %s of the network that was given has changed", x.Name)
		}
	}
	again, _, _ := live(t, w, 1500, &o)
	if !reflect.DeepEqual(again.Jobs, taught.Jobs) {
		t.Error("the same seed came to something else")
	}
	o.Seed = 2
	if other, _, _ := live(t, w, 1500, &o); reflect.DeepEqual(other.Jobs, taught.Jobs) {
		t.Error("another seed came to the same")
	}
}

// Before jobs have finished nobody knows how long they last, and nothing is
// learned; without observing nothing ever is.
func TestOnlineWaitsForEvidence(t *testing.T) {
	w := toyStream(t, 1.15, 40)
	o := harmony.OnlineOptions{Noted: 1, Every: 1}
	if _, updates, _ := live(t, w, 20, &o); updates != 0 {
		t.Errorf("%d updates before 30 jobs have finished", updates)
	}
	net, err := num.NewScorer(place_harmony.Shape(2), num.Rand(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	p := place_harmony.New(net, w.Speeds.Fork(), place_harmony.Options{})
	for _, bad := range []harmony.OnlineOptions{{Noted: 2}, {Every: -1}, {Horizon: -1}, {Rate: -1}} {
		if _, err := harmony.NewOnline(p, bad); err == nil {
			t.Errorf("%+v is no error", bad)
		}
	}
}

func TestOnlinePlacesAsItsPolicy(t *testing.T) {
	w := toyStream(t, 1.15, 300)
	plain, _, _ := live(t, w, 300, nil)
	// All is decided as without learning where nothing is noted.
	o := harmony.OnlineOptions{Noted: 1e-12}
	same, updates, _ := live(t, w, 300, &o)
	if updates != 0 || !reflect.DeepEqual(plain.Jobs, same.Jobs) {
		t.Errorf("%d updates; mean JCT %.0f s, want %.0f s", updates, same.MeanJCT, plain.MeanJCT)
	}
}

var _ place.Observer = (*harmony.Online)(nil)
