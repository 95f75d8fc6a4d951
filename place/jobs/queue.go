package jobs

import (
	"fmt"
	"slices"

	"github.com/cotenant/cotenant/place"
)

// Chooser picks a site for a task that is not placed, or says why none: the
// part of a policy that a Board asks task by task.
type Chooser interface {
	Choose(b *Board, t int) (site int, why Refusal)
}

// whole is implemented by choosers that have a say on whole gangs.
type whole interface {
	// placeGang places all tasks of a gang of several or reports why not; what
	// it leaves on the board where it fails is taken back.
	placeGang(b *Board, g int) Refusal
}

// choosy is implemented by choosers that may refuse what fits: a gang that
// waits may be welcome once others were placed.
type choosy interface {
	// patience separates gangs of a kind that are judged by different rules.
	patience(b *Board, g int) bool
}

// explainer is implemented by choosers that can say what they weighed; it is
// asked before the task is put.
type explainer interface {
	reason(b *Board, t, s int) place.Reason
}

// refusal remembers that a gang of a kind found no place.
type refusal struct {
	why     Refusal
	patient bool
	known   bool
	words   string
	at      int // length of the log
}

// Place offers the pending gangs in order and keeps what finds a place: gangs
// whole, other groups in part.
func (b *Board) Place(c Chooser) {
	b.refused = slices.Grow(b.refused[:0], int(b.kindCount))[:b.kindCount]
	clear(b.refused)
	picky, _ := c.(choosy)
	for i := range b.waiting {
		b.offer(c, picky, i)
	}
}

// offer places one gang, unless one of its kind was refused and nothing has
// changed since that could be in its favour: what others took is no room, but
// may be company.
func (b *Board) offer(c Chooser, picky choosy, i int) {
	w := &b.waiting[i]
	if b.placed[w.gang] > 0 {
		return
	}
	if int(w.wants) > b.slotsFree && (w.whole || b.slotsFree == 0) {
		b.why[i] = Full
		if b.Explain {
			b.words[i] = fmt.Sprintf("asks for %d device slots; %d are free in all", w.wants, b.slotsFree)
		}
		return
	}
	patient := picky != nil && picky.patience(b, int(w.gang))
	r := &b.refused[w.kind]
	if r.known && r.patient == patient {
		if r.at == len(b.log) || w.tasks == 1 && r.why != Waits {
			b.hold(i, r.why, r.words)
			return
		}
		if w.tasks == 1 {
			b.only = b.touchedSince(r.at)
		}
	}
	why, words := b.try(c, w)
	if b.only != nil && why != Fits {
		why, words = r.why, r.words
	}
	b.only = nil
	if why != Fits {
		*r = refusal{why, patient, true, words, len(b.log)}
	}
	b.hold(i, why, words)
}

func (b *Board) hold(i int, why Refusal, words string) {
	b.why[i] = why
	if b.Explain {
		b.words[i] = words
	}
}

// touchedSince lists the sites that were changed since a mark.
func (b *Board) touchedSince(mark int) []int32 {
	sites := []int32{}
	for _, u := range b.log[mark:] {
		for _, s := range []int32{u.from, u.to} {
			if s >= 0 && !slices.Contains(sites, s) {
				sites = append(sites, s)
			}
		}
	}
	slices.Sort(sites)
	return sites
}

func (b *Board) try(c Chooser, wait *waits) (why Refusal, words string) {
	g := wait.gang
	if !wait.whole {
		return b.part(c, g)
	}
	mark := b.Mark()
	if w, ok := c.(whole); ok && len(b.gangs[g].tasks) > 1 {
		why = w.placeGang(b, int(g))
		if why != Fits {
			if b.Explain {
				words = b.refusedWords(g, why)
			}
			b.Undo(mark)
		}
		return why, words
	}
	for _, t := range b.gangs[g].tasks {
		s, why := c.Choose(b, int(t))
		if why != Fits {
			if b.Explain {
				words = b.refusedWords(g, why)
			}
			b.Undo(mark)
			return why, words
		}
		b.give(c, t, s)
	}
	return Fits, ""
}

// give puts a task where the chooser chose, and keeps why if asked to.
func (b *Board) give(c Chooser, t int32, s int) {
	if e, ok := c.(explainer); ok && b.Explain {
		b.tasks[t].reason = e.reason(b, int(t), s)
	}
	b.Put(int(t), s)
}

// part places what fits of a group that is no gang.
func (b *Board) part(c Chooser, g int32) (why Refusal, words string) {
	for _, t := range b.gangs[g].tasks {
		s, no := c.Choose(b, int(t))
		if no == Fits {
			b.give(c, t, s)
		} else if why == Fits {
			why = no
			if b.Explain {
				words = b.WhyNot(int(t))
			}
		}
	}
	return why, words
}

// refusedWords is asked while what fits of the gang is still on the board.
func (b *Board) refusedWords(g int32, why Refusal) string {
	k := &b.gangs[g]
	fit, first := 0, int32(-1)
	for _, t := range k.tasks {
		if b.tasks[t].site >= 0 {
			fit++
		} else if first < 0 {
			first = t
		}
	}
	text := words[why]
	if why != Waits && first >= 0 {
		text = b.WhyNot(int(first))
	}
	if len(k.tasks) > 1 {
		return fmt.Sprintf("%d of %d tasks of gang %s fit, and gangs are placed whole: %s", fit, len(k.tasks), k.name, text)
	}
	return text
}

// Refuse notes why the i-th pending gang is held: policies that do not use
// Place say so themselves.
func (b *Board) Refuse(i int, why Refusal) { b.why[i] = why }

// Decision is what was changed since Reset: pending tasks bound or held,
// running tasks moved, gangs resized.
func (b *Board) Decision() place.Decision {
	var d place.Decision
	all, bound := 0, 0
	for i := range b.waiting {
		all += int(b.waiting[i].tasks)
		bound += int(b.placed[b.waiting[i].gang])
	}
	if bound > 0 {
		d.Bind = make([]place.Binding, 0, bound)
	}
	if all > bound {
		d.Hold = make([]place.Hold, 0, all-bound)
	}
	for i := range b.waiting {
		w := &b.waiting[i]
		if w.tasks == 1 && b.placed[w.gang] == 0 {
			d.Hold = append(d.Hold, place.Hold{Task: w.id, Why: b.reasonOf(i)})
			continue
		}
		for _, t := range b.gangs[w.gang].tasks {
			if b.tasks[t].site < 0 {
				d.Hold = append(d.Hold, place.Hold{Task: b.tasks[t].id, Why: b.reasonOf(i)})
				continue
			}
			b.bind(&d, &b.tasks[t])
		}
	}
	b.moves(&d)
	b.resizes(&d)
	return d
}

func (b *Board) reasonOf(i int) string {
	if b.Explain && b.words[i] != "" {
		return b.words[i]
	}
	return words[b.why[i]]
}

func (b *Board) bind(d *place.Decision, t *task) {
	d.Bind = append(d.Bind, place.Binding{Task: t.id, Node: b.nodes[b.sites[t.site].node].Name, Devices: t.on})
	explain(d, t)
}

func explain(d *place.Decision, t *task) {
	if t.reason.Words == "" {
		return
	}
	if d.Why == nil {
		d.Why = place.Reasons{}
	}
	d.Why[t.id] = t.reason
}

// moves lists the running tasks that are elsewhere than they were.
func (b *Board) moves(d *place.Decision) {
	if len(b.log) == 0 {
		return
	}
	for _, i := range b.running {
		t := &b.tasks[i]
		if t.site < 0 || t.site == t.home && sameDevices(t.on, t.homeOn) {
			continue
		}
		d.Move = append(d.Move, place.Move{Task: t.id, To: b.nodes[b.sites[t.site].node].Name, Devices: t.on})
		explain(d, t)
	}
}
