package metis

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
)

func fresh(t *testing.T, c Config) *Trainer {
	t.Helper()
	tr, err := NewTrainer(c)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// state is all that a run came to.
func state(t *testing.T, tr *Trainer) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := tr.Save(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestResumedIsTheSame stops a run after each report, every other time in the
// middle of a step, and wants what one comes to that is never stopped.
func TestResumedIsTheSame(t *testing.T) {
	c := Config{
		Worlds: []World{small(0, 0), small(1, 0)}, Seed: 3, Updates: 3, Episodes: 4, Takes: 2, Parts: 2, Validation: 1, Every: 2, Workers: 2,
	}
	want := state(t, trained(t, c))
	c.Workers = 1
	stop := errors.New("stop")
	var got []byte
	for runs := 0; ; runs++ {
		if runs > 20 {
			t.Fatal("does not end")
		}
		tr := fresh(t, c)
		if got != nil {
			if err := tr.Restore(bytes.NewReader(got)); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		err := tr.Run(ctx, func(Report) error {
			if runs%2 == 0 {
				cancel()
				return nil
			}
			return stop
		})
		cancel()
		got = state(t, tr)
		if err == nil {
			break
		}
		if !errors.Is(err, stop) && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(got, want) {
		t.Error("a run that was interrupted came to something else")
	}
}

func TestRestoreRefuses(t *testing.T) {
	c := Config{Worlds: []World{small(0, 0)}, Seed: 3, Updates: 2, Episodes: 2, Takes: 2, Parts: 2, Validation: 1, Every: 2}
	whole := state(t, trained(t, c))
	other := c
	other.Seed = 4
	for name, x := range map[string]struct {
		config Config
		state  []byte
		want   string
	}{
		"other options": {other, whole, "other options"},
		"cut off":       {c, whole[:len(whole)/2], "damaged"},
		"empty":         {c, nil, "damaged"},
		"foreign":       {c, []byte("update,loss\n"), "damaged"},
	} {
		tr := fresh(t, x.config)
		before := state(t, tr)
		if err := tr.Restore(bytes.NewReader(x.state)); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v; want an error with %q", name, err, x.want)
		}
		if !bytes.Equal(state(t, tr), before) {
			t.Errorf("%s: the trainer changed", name)
		}
	}
}
