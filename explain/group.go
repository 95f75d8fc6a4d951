package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// membersOf are the pods of the pod's gang.
func (out *Objects) membersOf(p *Pod) []*Pod {
	var in []*Pod
	for _, q := range out.Pods {
		if q.Gang != nil && q.Namespace == p.Namespace && q.Gang.Convention == p.Gang.Convention && q.Gang.Name == p.Gang.Name {
			in = append(in, q)
		}
	}
	return in
}

// gang is what there is of the pod's gang.
func (out *Objects) gang(p *Pod) GangView {
	g := GangView{Name: p.Gang.Name, Convention: p.Gang.Convention, Minimum: out.groups[p.Namespace+"/"+p.Gang.Name]}
	members := out.membersOf(p)
	for _, q := range members {
		g.Minimum = max(g.Minimum, q.Gang.Minimum)
		switch {
		case q.Ended():
			g.Ended++
		case q.Node != "":
			g.Bound++
		default:
			g.Waiting++
		}
	}
	g.Pods = len(members)
	g.Missing = max(0, g.Minimum-g.Pods)
	return g
}

func (g *GangView) words() string {
	text := fmt.Sprintf("gang %s (%s): %s", g.Name, g.Convention, count(g.Pods, "pod"))
	if g.Minimum > 0 {
		text += fmt.Sprintf(", at least %d go together", g.Minimum)
	}
	text += fmt.Sprintf("; %d bound, %d waiting", g.Bound, g.Waiting)
	if g.Ended > 0 {
		text += fmt.Sprintf(", %d ended", g.Ended)
	}
	if g.Missing > 0 {
		text += fmt.Sprintf(", %d do not exist", g.Missing)
	}
	return text
}

// Group accounts for the pods of a gang, or of a controller: name is the gang's,
// the controller's, or kind/name of it, as kubectl takes it.
func (out *Objects) Group(namespace, name string) (Account, error) {
	var members []*Pod
	var names, elsewhere []string
	for _, p := range out.Pods {
		is := p.isOf(name)
		if p.Namespace != namespace {
			if is {
				elsewhere = append(elsewhere, p.Namespace)
			}
			continue
		}
		_, owner, _ := strings.Cut(p.Owner, "/")
		if is {
			members = append(members, p)
		}
		switch {
		case p.Gang != nil:
			names = append(names, p.Gang.Name)
		case owner != "":
			names = append(names, owner)
		}
	}
	if len(members) == 0 {
		slices.Sort(names)
		names = slices.Compact(names)
		slices.Sort(elsewhere)
		elsewhere = slices.Compact(elsewhere)
		known := "it has no groups"
		switch {
		case len(elsewhere) > 0:
			known = "one of that name is in " + some(elsewhere, 8) + " (-n)"
		case len(names) > 0:
			known = "it has " + some(names, 8)
		}
		return Account{}, fmt.Errorf("there is no group %s in namespace %s; %s", name, namespace, known)
	}
	return out.accountOf(namespace+"/"+name, members), nil
}

func some(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// accountOf sums up the accounts of pods: the reason of a group is that of the
// most pods that wait, or, where none does, of the most that are placed.
func (out *Objects) accountOf(name string, members []*Pod) Account {
	a := Account{Kind: "group", Name: name, Details: []string{}}
	if members[0].Gang != nil {
		g := out.gang(members[0])
		a.Gang = &g
	}
	var waiting, placed, ended []Account
	on := map[string]int{}
	var workloads []string
	for _, p := range members {
		one := out.account(p)
		workloads = append(workloads, p.Workload)
		switch one.State {
		case Waiting:
			waiting = append(waiting, one)
		case Ended:
			ended = append(ended, one)
		default:
			placed = append(placed, one)
			on[p.Node]++
		}
	}
	slices.Sort(workloads)
	a.Workload = strings.Join(slices.Compact(workloads), ", ")
	switch {
	case len(waiting) == 0 && len(placed) == 0:
		a.State = Ended
		a.dominant(ended)
	case len(waiting) == 0:
		a.State = Placed
		a.dominant(placed)
	case len(placed) == 0:
		a.State = Waiting
		a.dominant(waiting)
	default:
		a.State = Part
		a.dominant(waiting)
	}
	if a.Gang != nil {
		a.say("%s", a.Gang.words())
		if a.State == Part && a.Gang.Minimum > 0 && len(placed)+len(ended) < a.Gang.Minimum {
			a.say("it runs in part, below its minimum")
		}
	} else {
		a.say("%s: %d placed, %d waiting, %d ended", count(len(members), "pod"), len(placed), len(waiting), len(ended))
	}
	if len(on) > 0 {
		a.say("on %s", nodes(on))
	}
	return a
}

// dominant takes the reason that most accounts have, and lists the others.
func (a *Account) dominant(of []Account) {
	type reason struct {
		words string
		first *Account
		pods  []string
	}
	var reasons []*reason
	for i := range of {
		one := &of[i]
		// Pods differ in their nodes; the reason is the same.
		key := one.Reason
		if one.State == Waiting {
			key += one.Words
		}
		at := slices.IndexFunc(reasons, func(r *reason) bool { return r.words == key })
		if at < 0 {
			at = len(reasons)
			reasons = append(reasons, &reason{words: key, first: one})
		}
		reasons[at].pods = append(reasons[at].pods, one.pod.Name)
	}
	slices.SortStableFunc(reasons, func(x, y *reason) int {
		// That no node takes some is why the others of a gang wait.
		return cmp.Or(cmp.Compare(rank(x.first.Reason), rank(y.first.Reason)), cmp.Compare(len(y.pods), len(x.pods)))
	})
	first := reasons[0].first
	a.Reason = first.Reason
	a.Words = fmt.Sprintf("%d of %d: %s: %s", len(reasons[0].pods), len(of), first.pod.Name, first.Words)
	for _, r := range reasons[1:] {
		a.say("%d of %d: %s: %s", len(r.pods), len(of), r.first.pod.Name, r.first.Words)
	}
	for _, text := range first.Details {
		if first.Gang == nil || text != first.Gang.words() {
			a.say("%s: %s", first.pod.Name, text)
		}
	}
}

// rank orders reasons by how much they explain of the others.
func rank(reason string) int {
	switch reason {
	case GangIncomplete:
		return 0
	case Unschedulable, Preempting, Gated:
		return 1
	case GangWaits:
		return 2
	}
	return 1
}

func nodes(on map[string]int) string {
	names := make([]string, 0, len(on))
	for node := range on {
		names = append(names, node)
	}
	slices.Sort(names)
	for i, node := range names {
		if on[node] > 1 {
			names[i] = fmt.Sprintf("%s (%d)", node, on[node])
		}
	}
	return some(names, 12)
}
