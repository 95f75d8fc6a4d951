package jobs

import (
	"fmt"

	"github.com/cotenant/cotenant/cluster"
)

// Refusal says why a task is not put on a site, or a gang nowhere.
type Refusal uint8

// The refusals, in the order in which Fit looks for them.
const (
	Fits       Refusal = iota
	Lacking            // it requests a resource that no node has
	Closed             // the node takes no new tasks
	Wrong              // the class has no rate for the job
	Full               // no device slot is free
	NodeFull           // no slot of the node is free
	NoResource         // too little of a resource is free
	Misfit             // it does not fit together with who runs there
	Ruled              // a constraint of the cluster keeps it off
	Waits              // it fits, but the policy gains more by waiting
	refusals
)

// words are the reasons in short: for the case that nobody reads them.
var words = [refusals]string{
	Fits: "fits, but the policy chose no site", Lacking: "requests a resource that no node has",
	Closed: "no node takes new tasks", Wrong: "cannot run on the classes that are free",
	Full: "no device slot is free", NodeFull: "no slot of a node is free", NoResource: "too little of a resource is free",
	Misfit: "does not fit together with what runs on the free devices", Ruled: "a constraint keeps it off",
	Waits: "would gain too little now, so it waits for a better place",
}

// String is the refusal in a few words.
func (r Refusal) String() string { return words[r] }

// Fit says whether a task that is not placed fits on a site, and the first
// reason why not.
func (b *Board) Fit(t, s int) Refusal { return b.fit(int32(t), int32(s)) }

func (b *Board) fit(t, s int32) Refusal {
	x, st := &b.tasks[t], &b.sites[s]
	n := &b.state[st.node]
	if x.wants > 0 {
		if r := b.fitDevices(x, st); r != Fits {
			return r
		}
	}
	switch {
	case n.closed:
		return Closed
	case x.lacks != "":
		return Lacking
	case n.slots == 0:
		return NodeFull
	case !x.ps && b.gangs[x.gang].alone[2*st.class] == 0:
		return Wrong
	}
	for d, amount := range x.need {
		if amount > 0 && amount > n.free[d] {
			return NoResource
		}
	}
	if len(st.tenants) > 0 && b.speeds.options.Misfits != nil && b.meets(s) &&
		!b.speeds.Fits(b.speeds.Next(st.config, x.workload)) {
		return Misfit
	}
	if b.rules != nil {
		return b.rules.fit(b, t, s)
	}
	return Fits
}

func (b *Board) fitDevices(x *task, st *site) Refusal {
	if st.device >= 0 {
		d := &b.devices[b.firstDevice[st.node]+st.device]
		if d.used >= d.slots || x.wants > 1 {
			return Full
		}
		return Fits
	}
	free := int32(0)
	for _, d := range b.devices[b.firstDevice[st.node]:b.firstDevice[st.node+1]] {
		if d.used < d.slots {
			free++
		}
	}
	if free < x.wants {
		return Full
	}
	return Fits
}

// WhyNot says in words why no site takes a task now: the most common reason
// first.
func (b *Board) WhyNot(t int) string {
	lo, hi := b.Range(t)
	what := "nodes"
	if hi == b.host {
		what = "devices"
	}
	if hi == lo {
		return "the cluster has no " + what
	}
	if x := &b.tasks[t]; x.wants > 1 && hi == b.host {
		return fmt.Sprintf("asks for %d devices; where devices are what tasks share, a task takes one", x.wants)
	}
	var count [refusals]int
	for s := lo; s < hi; s++ {
		count[b.Fit(t, s)]++
	}
	if count[Fits] > 0 {
		return fmt.Sprintf("%d of %d %s fit, but the policy chose none", count[Fits], hi-lo, what)
	}
	most := Lacking
	for r := range refusals {
		if count[r] > count[most] {
			most = r
		}
	}
	on := fmt.Sprintf("0 of %d %s fit; on %d of them: ", hi-lo, what, count[most])
	x := &b.tasks[t]
	name := b.speeds.workloads[x.workload]
	switch most {
	case Lacking:
		return fmt.Sprintf("%s requests %s, which no node has", name, x.lacks)
	case Closed:
		return on + "the node takes no new tasks"
	case Wrong:
		return on + name + " cannot run on the class"
	case Full:
		return on + "no device slot is free"
	case NodeFull:
		return on + "the node has no free slot"
	case NoResource:
		return on + "too little of what " + name + " requests is free"
	case Misfit:
		return on + name + " does not fit together with what runs there"
	}
	return on + "a constraint of the cluster keeps " + name + " off"
}

// rules asks cluster.Placement about constraints. It follows the board's
// changes, but for tasks that run already: those stay where they are.
type rules struct{ placement *cluster.Placement }

func newRules(b *Board) *rules {
	r := &rules{placement: cluster.NewPlacement(b.req.View, b.req.Tasks())}
	i := 0
	for w := range b.waiting {
		for _, t := range b.gangs[b.waiting[w].gang].tasks {
			b.tasks[t].kind = int32(r.placement.Kind(i))
			i++
		}
	}
	return r
}

func (r *rules) fit(b *Board, t, s int32) Refusal {
	if b.tasks[t].run >= 0 {
		return Ruled
	}
	if r.placement.Check(int(b.tasks[t].kind), int(b.sites[s].node)) != cluster.Fits {
		return Ruled
	}
	return Fits
}

func (r *rules) do(b *Board, u step) {
	if b.tasks[u.task].run >= 0 {
		return
	}
	kind := int(b.tasks[u.task].kind)
	if u.from >= 0 {
		r.placement.Take(kind, int(b.sites[u.from].node))
	}
	if u.to >= 0 {
		r.placement.Put(kind, int(b.sites[u.to].node))
	}
}

func (r *rules) undo(b *Board, u step) {
	u.from, u.to = u.to, u.from
	r.do(b, u)
}
