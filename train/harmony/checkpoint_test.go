package harmony_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cotenant/cotenant/train/harmony"
)

// saved is all that a run came to.
func saved(t *testing.T, tr *harmony.Trainer) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := tr.Save(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestSameBytes wants one result whatever the number of workers, and however
// often a run was stopped, saved and gone on with: in a step, before a look
// and after it, while imitating and after.
func TestSameBytes(t *testing.T) {
	config := func(workers int) harmony.Config {
		c := quick(toy(t, 1.2), toy(t, 0.9))
		c.Updates, c.Warm, c.Episodes, c.Every, c.Workers, c.Validation = 3, 1, 8, 2, workers, 2
		return c
	}
	whole := trainer(t, config(2))
	var reports []harmony.Report
	if err := whole.Run(t.Context(), func(r harmony.Report) error { reports = append(reports, r); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(reports) != 1+3+3 {
		t.Errorf("%d reports, want an imitation, 3 updates and looks at 0, 2 and 3", len(reports))
	}
	want := saved(t, whole)

	stop := errors.New("stop")
	var state []byte
	n := 0
	for runs := 0; ; runs++ {
		if runs > 20 {
			t.Fatal("does not end")
		}
		tr := trainer(t, config(1))
		if state != nil {
			if err := tr.Restore(bytes.NewReader(state)); err != nil {
				t.Fatal(err)
			}
		}
		// Every other run is interrupted in the middle of a step.
		ctx, cancel := context.WithCancel(t.Context())
		err := tr.Run(ctx, func(r harmony.Report) error {
			if got := r; !alike(got, reports[n]) {
				t.Errorf("report %d is %+v, want %+v", n, got, reports[n])
			}
			n++
			if runs%2 == 0 {
				cancel()
				return nil
			}
			return stop
		})
		cancel()
		state = saved(t, tr)
		if err == nil {
			break
		}
		if !errors.Is(err, stop) && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(state, want) {
		t.Error("a run that was interrupted came to something else")
	}
}

func alike(a, b harmony.Report) bool {
	return a.Update == b.Update && slices.Equal(a.Ratios, b.Ratios) && (a.Stats == nil) == (b.Stats == nil) && (a.Stats == nil || *a.Stats == *b.Stats)
}

func TestRestoreRefuses(t *testing.T) {
	c := quick(toy(t, 1.2))
	c.Episodes = 4
	tr := trainer(t, c)
	if _, err := tr.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	state := saved(t, tr)
	other := c
	other.Horizon = 1
	elsewhere := c
	elsewhere.Worlds = []harmony.World{toy(t, 1.3)}
	for name, x := range map[string]struct {
		config harmony.Config
		state  []byte
		want   string
	}{
		"other options": {other, state, "other options"},
		"other worlds":  {elsewhere, state, "other options"},
		"cut off":       {c, state[:len(state)/2], "damaged"},
		"empty":         {c, nil, "damaged"},
		"foreign":       {c, []byte("update,loss\n"), "damaged"},
	} {
		fresh := trainer(t, x.config)
		before := saved(t, fresh)
		err := fresh.Restore(bytes.NewReader(x.state))
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v; want an error with %q", name, err, x.want)
		}
		if !bytes.Equal(saved(t, fresh), before) {
			t.Errorf("%s: the trainer changed", name)
		}
	}
}

func TestNothingToLearnFrom(t *testing.T) {
	w := toy(t, 0.5)
	draw := w.Draw
	w.Draw = func(seed uint64) (harmony.Episode, error) {
		e, err := draw(seed)
		e.Jobs = e.Jobs[:1]
		return e, err
	}
	err := trainer(t, quick(w)).Run(t.Context(), func(harmony.Report) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "no episode had a decision") {
		t.Errorf("%v; want an error that says so", err)
	}
	if _, err := harmony.NewTrainer(harmony.Config{}); err == nil {
		t.Error("a trainer without a world")
	}
}
