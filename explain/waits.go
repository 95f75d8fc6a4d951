package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Refusal is why a number of nodes did not take a pod.
type Refusal struct {
	Nodes int    `json:"nodes"`
	Why   string `json:"why"`
}

// Refusals reads what kube-scheduler says of a pod that no node takes, such as
// "0/10 nodes are available: 3 Insufficient cpu, 7 node(s) had untolerated
// taint {a: b}. preemption: ...": the most common reason first. of is how many
// nodes there are. ok is false where the text is of another form.
func Refusals(text string) (refusals []Refusal, of int, ok bool) {
	head, rest, found := strings.Cut(text, " nodes are available: ")
	_, total, slash := strings.Cut(head, "/")
	of, err := strconv.Atoi(total)
	if !found || !slash || err != nil {
		return nil, 0, false
	}
	rest, _, _ = strings.Cut(rest, " preemption: ")
	// Reasons are separated by commas, and may hold some: the next one begins with
	// a number.
	for _, part := range strings.Split(strings.TrimRight(rest, ". "), ", ") {
		number, why, spaced := strings.Cut(part, " ")
		n, err := strconv.Atoi(number)
		switch {
		case spaced && err == nil && n > 0 && n <= of:
			refusals = append(refusals, Refusal{n, why})
		case len(refusals) > 0:
			refusals[len(refusals)-1].Why += ", " + part
		default:
			// A plugin refused the pod before any node was looked at.
			refusals = append(refusals, Refusal{of, part})
		}
	}
	slices.SortStableFunc(refusals, func(a, b Refusal) int { return cmp.Compare(b.Nodes, a.Nodes) })
	return refusals, of, len(refusals) > 0
}

func (r Refusal) words(of int) string {
	why := r.Why
	if what, ok := strings.CutPrefix(why, "Insufficient "); ok {
		why = "too little " + what + " is free"
	}
	why = strings.Replace(why, "node(s) ", "the node ", 1)
	return fmt.Sprintf("%d of %s: %s", r.Nodes, count(of, "node"), why)
}

// whole reports whether the refusal is of the pod, not of nodes: a plugin's,
// before nodes are looked at.
func (r Refusal) whole(of int) bool {
	return r.Nodes == of && !strings.HasPrefix(r.Why, "Insufficient ") && !strings.HasPrefix(r.Why, "node(s)") && !strings.HasPrefix(r.Why, "Too many pods")
}

// waits says why the pod has no node.
func (out *Objects) waits(a *Account, p *Pod) {
	said := out.said(p)
	refusals, of, refused := Refusals(said)
	gang, other, told := a.Gang, (*Pod)(nil), (*Pod)(nil)
	if gang != nil {
		other, told = out.refusedOf(p), out.toldOf(p)
	}
	switch {
	case len(p.Gates) > 0:
		a.Reason = Gated
		a.Words = fmt.Sprintf("a scheduling gate holds it back: %s; whoever set it takes it away", strings.Join(p.Gates, ", "))
	case gang != nil && gang.Missing > 0:
		a.Reason = GangIncomplete
		a.Words = fmt.Sprintf("its gang %s is not complete: %d of the %d pods that go together exist", gang.Name, gang.Minimum-gang.Missing, gang.Minimum)
	case p.Nominated != "":
		a.Reason = Preempting
		a.Words = fmt.Sprintf("it waits for pods of lower priority to leave %s, where preemption makes room for it", p.Nominated)
	case refused && !refusals[0].whole(of):
		a.Reason = Unschedulable
		a.Words = "no node takes it: " + refusals[0].words(of)
	case other != nil:
		a.Reason = GangWaits
		theirs, n, _ := Refusals(other.Scheduled.Message)
		a.Words = fmt.Sprintf("its gang %s goes whole or not at all, and no node takes %s: %s", gang.Name, other.Name, theirs[0].words(n))
	case refused:
		a.Reason = Unschedulable
		a.Words = refusals[0].Why
	case said != "":
		a.Reason = Unschedulable
		a.Words = said
	case told != nil:
		// Pods that are kept out of the queue for their gang are told nothing.
		a.Reason = GangWaits
		a.Words = fmt.Sprintf("its gang %s goes whole or not at all, and the scheduler said of %s: %s", gang.Name, told.Name, out.said(told))
	default:
		a.Reason = Unseen
		a.Words = fmt.Sprintf("no scheduler has said anything of it: is one named %s running, and does it keep up?", or(p.Scheduler, "default-scheduler"))
	}
	if refused {
		for _, r := range refusals {
			if text := r.words(of); !r.whole(of) && !strings.Contains(a.Words, text) {
				a.say("%s", text)
			}
		}
	}
	if said != "" {
		a.say("the scheduler said: %s", said)
	}
	if e, ok := out.last(p, "FailedScheduling"); ok && e.Count > 1 {
		a.say("it was tried %d times", e.Count)
	}
	out.fallback(a, p)
}

// refusedOf is another pod of the gang that no node takes.
func (out *Objects) refusedOf(p *Pod) *Pod {
	for _, q := range out.membersOf(p) {
		if q == p || q.Node != "" || q.Ended() {
			continue
		}
		if r, of, ok := Refusals(q.Scheduled.Message); ok && !r[0].whole(of) {
			return q
		}
	}
	return nil
}

// toldOf is another pod of the gang that waits and of which a scheduler has said
// why.
func (out *Objects) toldOf(p *Pod) *Pod {
	for _, q := range out.membersOf(p) {
		if q != p && q.Node == "" && !q.Ended() && out.said(q) != "" {
			return q
		}
	}
	return nil
}

// said is what the scheduler said of a pod that has no node; "" where it said
// nothing.
func (out *Objects) said(p *Pod) string {
	if e, ok := out.last(p, "FailedScheduling"); p.Scheduled.Message == "" && ok {
		return e.Message
	}
	return p.Scheduled.Message
}
