package cluster_test

import (
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/cluster"
)

func TestPropertyColocationRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := cluster.Colocation(rapid.MapOfN(rapid.StringMatching(`[^*+]+`), rapid.IntRange(1, 99), 0, 6).Draw(t, "co-location"))
		got, err := cluster.ParseColocation(c.Key())
		if err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(got, c) {
			t.Fatalf("%v became %v by way of %q", c, got, c.Key())
		}
	})
}

func TestParseColocationRefuses(t *testing.T) {
	for text, wanted := range map[string]string{
		"+":                       "empty workload name",
		"a+":                      "empty workload name",
		"*2":                      "empty workload name",
		"a*0":                     `"0" is not a positive count`,
		"a*-1":                    `"-1" is not a positive count`,
		"a*x":                     `"x" is not a positive count`,
		"a*b*2":                   `workload name "a*b" holds a *`,
		"a*99999999999999999999":  "is not a positive count",
		"a*9223372036854775807+a": `too many tasks of "a"`,
	} {
		if _, err := cluster.ParseColocation(text); err == nil || !strings.Contains(err.Error(), wanted) {
			t.Errorf("%q: %v, want %q", text, err, wanted)
		}
	}
}

func FuzzParseColocation(f *testing.F) {
	for _, s := range []string{"", "redis", "mms*2+redis", "b+a+b", "a*+1", "a*2*2", "+", "a*9223372036854775807+a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := cluster.ParseColocation(s)
		if err != nil {
			return
		}
		for w, n := range c {
			if w == "" || n < 1 {
				t.Fatalf("%q gave %d of %q", s, n, w)
			}
		}
		again, err := cluster.ParseColocation(c.Key())
		if err != nil || !maps.Equal(c, again) {
			t.Fatalf("%q is %v, whose key %q is %v (%v)", s, c, c.Key(), again, err)
		}
	})
}

func TestWithLeavesTheOriginal(t *testing.T) {
	c := cluster.Colocation{"a": 1}
	if d := c.With("a").With("b"); d.Key() != "a*2+b" || c.Key() != "a" || !c.Alone() || d.Alone() {
		t.Errorf("%s and %s", c.Key(), d.Key())
	}
	if got := cluster.Colocation(nil).With("a").Key(); got != "a" {
		t.Errorf("nil with a: %q", got)
	}
}
