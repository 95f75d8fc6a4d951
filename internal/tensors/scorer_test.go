package tensors

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/cotenant/cotenant/internal/num"
)

func scorer(t *testing.T, shape num.ScorerShape, seed uint64) *num.Scorer {
	t.Helper()
	s, err := num.NewScorer(shape, num.Rand(seed))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTwoNetworksShareAFile(t *testing.T) {
	shape := num.ScorerShape{Features: 3, Context: 2, Hidden: []int{4, 5}, Prior: 1, PriorScale: 2}
	one, two := scorer(t, shape, 1), scorer(t, shape, 2)
	var w Writer
	for prefix, s := range map[string]*num.Scorer{"one.": one, "two.": two} {
		if err := w.Scorer(prefix, s); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if err := w.SavePolicy(&b, format, nil); err != nil {
		t.Fatal(err)
	}
	r, err := Read(&b, format)
	if err != nil {
		t.Fatal(err)
	}
	for prefix, want := range map[string]*num.Scorer{"one.": one, "two.": two} {
		got, err := r.Scorer(prefix, shape)
		if err != nil || !reflect.DeepEqual(got.Tensors(), want.Tensors()) {
			t.Errorf("%s differs from what was written (%v)", prefix, err)
		}
	}
	if err := r.Finish(); err != nil {
		t.Error(err)
	}
	for want, shape := range map[string]num.ScorerShape{
		"none of a policy":                 {Features: 3, Hidden: make([]int, 9)},
		"more than":                        {Features: 3, Hidden: []int{100_000}},
		"layer of width 0":                 {Features: 3, Hidden: []int{0}},
		"want shape [7 5]":                 {Features: 7, Context: 2, Hidden: []int{5}},
		`tensor "one.layer2.w" is missing`: {Features: 3, Context: 2, Hidden: []int{4, 5, 5}},
	} {
		if _, err := r.Scorer("one.", shape); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error is %v, want %q in it", shape, err, want)
		}
	}
	one.Tensors()[0].Data[1] = float32(math.NaN())
	if err := new(Writer).Scorer("one.", one); err == nil || !strings.Contains(err.Error(), "element 1 of tensor one.candidate.w is NaN") {
		t.Errorf("a number that is none: %v", err)
	}
	b.Reset()
	if err := w.SavePolicy(&b, format, map[string]string{"notes": strings.Repeat("x", MaxPolicy)}); err == nil || b.Len() > 0 {
		t.Errorf("a file too large: error %v after %d bytes", err, b.Len())
	}
}
