package jobs

import "github.com/cotenant/cotenant/place"

// Note keeps why a task was put where it is: Decision tells it. It is for
// policies that do not use Place, and makes sense where Explain is set.
func (b *Board) Note(t int, r place.Reason) { b.tasks[t].reason = r }

// Say notes why the i-th pending gang is held, as Refuse does, and in full
// words, which Decision tells where Explain is set.
func (b *Board) Say(i int, why Refusal, words string) { b.hold(i, why, words) }

// Words says why a gang is held. Ask it while what fits of the gang is on the
// board: it counts that.
func (b *Board) Words(g int, why Refusal) string { return b.refusedWords(int32(g), why) }

// SiteName is a site in words.
func (b *Board) SiteName(s int) string { return b.siteName(s) }
