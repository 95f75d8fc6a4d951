package metis

import (
	"context"
	"reflect"
	"testing"

	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/sim/generated"
)

func small(lifetimes, rules float64) World {
	r := Random{
		Model: func(seed uint64) (interference.Model, error) { return generated.New(4, seed), nil },
		Nodes: [2]int{10, 12}, Slots: [2]int{4, 4}, Load: [2]float64{0.5, 0.9}, Rules: rules, Lifetimes: lifetimes,
	}
	return World{Name: "small", Draw: r.Draw}
}

func trained(t *testing.T, c Config) *Trainer {
	t.Helper()
	tr, err := NewTrainer(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.Run(context.Background(), func(Report) error { return nil }); err != nil {
		t.Fatal(err)
	}
	return tr
}

// TestTrainingIsReproducible trains the same twice, with another number of
// workers: batches, streams and rules, both kinds of level.
func TestTrainingIsReproducible(t *testing.T) {
	c := Config{
		Worlds: []World{small(0, 0), small(1, 0), small(0, 1)}, Seed: 7, Updates: 5, Episodes: 4, Takes: 2, Parts: 2, Validation: 1, Every: 5, Workers: 1,
	}
	a := trained(t, c)
	c.Workers = 2
	b := trained(t, c)
	x, _ := a.Best()
	y, _ := b.Best()
	for i, p := range x.Node.Tensors() {
		if !reflect.DeepEqual(p.Data, y.Node.Tensors()[i].Data) {
			t.Fatalf("tensor %s differs between runs of one seed", p.Name)
		}
	}
	for l, learner := range a.learners {
		if learner.Updates() == 0 {
			t.Errorf("the sub-policy of level %s was not trained", level(l))
		}
	}
}

// TestTrainingLearns asks for a gain over greedy on a world where greedy is
// blind to what comes, within a few updates.
func TestTrainingLearns(t *testing.T) {
	c := Config{Worlds: []World{small(0, 0)}, Seed: 1, Updates: 40, Episodes: 16, Takes: 8, Validation: 40, Every: 40}
	tr := trained(t, c)
	nets, _ := tr.Best()
	above, err := tr.Judge(context.Background(), nets)
	if err != nil {
		t.Fatal(err)
	}
	if above[0] < 0 {
		t.Errorf("after training %.2f %% above greedy, want at least as good", 100*above[0])
	}
	t.Logf("%.3f %% above greedy", 100*above[0])
}

// TestSeedsAreApart keeps the seeds of training and validation disjoint.
func TestSeedsAreApart(t *testing.T) {
	from, to := SeedRange()
	if from <= validationSeed+1<<16 || to < from {
		t.Errorf("training draws %d to %d, validation from %d", from, to, validationSeed)
	}
}
