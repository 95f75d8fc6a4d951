package jobs

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// An indexed board lists the same candidates as one that looks at every site,
// or splits those that differ in more than it knows, whatever it saw before.
func TestPropertyIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		plain, indexed := NewBoard(newSpeeds(w.Scope, 5)), NewBoard(newSpeeds(w.Scope, 5))
		indexed.Index()
		indexed.manyAlike = 0
		for range 4 {
			w.Arrive(t)
			plain.Reset(w.Request())
			indexed.Reset(w.Request())
			fresh := NewBoard(newSpeeds(w.Scope, 5))
			fresh.Index()
			fresh.manyAlike = 0
			fresh.Reset(w.Request())
			total := plain.Total()
			for i := range plain.Pending() {
				for k, x := range plain.Tasks(plain.Gang(i)) {
					y := indexed.Tasks(indexed.Gang(i))[k]
					a, why := plain.Candidates(int(x))
					b, no := indexed.Candidates(int(y))
					if why != no {
						t.Fatalf("refused for %v, with an index for %v", why, no)
					}
					if f, _ := fresh.Candidates(int(fresh.Tasks(fresh.Gang(i))[k])); !slices.Equal(f, b) {
						t.Fatalf("an index that has seen the past lists %v, a fresh one %v", b, f)
					}
					all := int32(0)
					for _, c := range a {
						all += c.Alike
						if !slices.ContainsFunc(b, func(d Candidate) bool { return d.Site == c.Site }) {
							t.Fatalf("site %d of %v is not in %v", c.Site, a, b)
						}
					}
					for _, c := range b {
						all -= c.Alike
					}
					if all != 0 {
						t.Fatalf("candidates %v, with an index %v", a, b)
					}
					covered := int32(0)
					for _, c := range indexed.Groups(int(y)) {
						covered += c.Alike
					}
					if lo, hi := indexed.Range(int(y)); int(covered) != hi-lo {
						t.Fatalf("groups cover %d of %d sites", covered, hi-lo)
					}
					if len(a) == 0 {
						continue
					}
					s := int(a[rapid.IntRange(0, len(a)-1).Draw(t, "site")].Site)
					for _, board := range []*Board{plain, indexed, fresh} {
						mark := board.Mark()
						task := int(board.Tasks(board.Gang(i))[k])
						board.Put(task, s)
						if board != plain {
							board.Groups(task)
						}
						board.Undo(mark)
						board.Put(task, s)
					}
					if plain.Gained() != indexed.Gained() || math.Abs(plain.Total()-total-plain.Gained()) > 1e-9 {
						t.Fatalf("gained %g and %g, by definition %g", plain.Gained(), indexed.Gained(), plain.Total()-total)
					}
				}
			}
			plain.Undo(0)
			p, _ := New("spread", Settings{Speeds: newSpeeds(w.Scope, 5)})
			d, _ := p.Place(w.Request())
			w.Apply(t, d)
		}
	})
}
