package balance

import (
	"errors"
	"slices"
	"testing"
)

func TestAdopt(t *testing.T) {
	balancer := func() *Balancer {
		b, err := New([]Worker{{Name: "a"}, {Name: "b"}}, Options{GlobalBatch: 10})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	b := balancer()
	if err := b.Adopt(Shares{Generation: 3, Iteration: 7, BatchSizes: []int{4, 6}}); err != nil {
		t.Fatal(err)
	}
	if s := b.Next(7); s.Generation != 3 || s.Iteration != 7 || !slices.Equal(s.BatchSizes, []int{4, 6}) {
		t.Errorf("adopted %+v", s)
	}
	if err := b.Adopt(Shares{Generation: 2}); !errors.Is(err, ErrStale) {
		t.Errorf("an old generation: %v", err)
	}
	if err := b.Adopt(Shares{Generation: 3, Iteration: -1}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a negative iteration: %v", err)
	}
	b = balancer()
	if err := b.Adopt(Shares{Generation: 3, Iteration: 7, BatchSizes: []int{4, 7}}); err != nil {
		t.Fatal(err)
	}
	if s := b.Next(7); s.Generation != 4 || !slices.Equal(s.BatchSizes, []int{5, 5}) {
		t.Errorf("of shares that do not fit: %+v", s)
	}
}
