package explain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// State is whether a pod or a group has its place.
type State string

// The states.
const (
	Placed  State = "placed"
	Waiting State = "waiting"
	Ended   State = "ended"
	// Part is a group of which some pods are placed and others wait.
	Part State = "in part"
)

// Codes of the dominant reason, beside those of cotenant-scheduler's fallbacks
// (docs/kubernetes.md), which are codes, too.
const (
	ByPlan         = "planned"         // where the plan had it
	Elsewhere      = "elsewhere"       // not where the plan had it
	OwnScores      = "own-scores"      // another scheduler's, or nothing was decided
	HasEnded       = "ended"           // it has run to its end
	Gated          = "gated"           // a scheduling gate holds it back
	GangIncomplete = "gang-incomplete" // pods of its gang do not exist
	GangWaits      = "gang-waits"      // another pod of its gang has no node
	Preempting     = "preempting"      // others make room for it
	Unschedulable  = "unschedulable"   // no node takes it
	Unseen         = "unseen"          // no scheduler has looked at it
	Deleted        = "deleted"         // it is being deleted
)

// Account says why.
type Account struct {
	Kind     string `json:"kind"` // pod or group
	Name     string `json:"name"`
	Workload string `json:"workload,omitempty"`
	State    State  `json:"state"`
	Node     string `json:"node,omitempty"`
	// Reason is the code of the dominant reason, Words the same for people.
	Reason string `json:"reason"`
	Words  string `json:"words"`
	// Details are what else is known, the most telling first.
	Details  []string  `json:"details"`
	Decision *Decision `json:"decision,omitempty"`
	Gang     *GangView `json:"gang,omitempty"`
	// Alternatives are other nodes, the best first: where a model was given.
	Alternatives []Alternative `json:"alternatives,omitempty"`

	pod *Pod
}

// GangView is what there is of a gang.
type GangView struct {
	Name       string `json:"name"`
	Convention string `json:"convention"`
	// Minimum is how many pods go together; 0 where nobody says.
	Minimum int `json:"minimum"`
	Pods    int `json:"pods"`
	Bound   int `json:"bound"`
	Ended   int `json:"ended"`
	Waiting int `json:"waiting"`
	// Missing is how many of the minimum do not exist.
	Missing int `json:"missing"`
}

// Pod accounts for one pod.
func (out *Objects) Pod(namespace, name string) (Account, error) {
	id := namespace + "/" + name
	i := slices.IndexFunc(out.Pods, func(p *Pod) bool { return p.ID() == id })
	if i < 0 {
		return Account{}, fmt.Errorf("there is no pod %s%s", id, out.elsewhere(name))
	}
	return out.account(out.Pods[i]), nil
}

// elsewhere names the namespaces that have a pod of that name.
func (out *Objects) elsewhere(name string) string {
	var in []string
	for _, p := range out.Pods {
		if p.Name == name {
			in = append(in, p.Namespace)
		}
	}
	if len(in) == 0 {
		return fmt.Sprintf(" among the %d that were read", len(out.Pods))
	}
	return "; one of that name is in " + strings.Join(in, ", ") + " (-n)"
}

func (out *Objects) account(p *Pod) Account {
	a := Account{Kind: "pod", Name: p.ID(), Workload: p.Workload, Node: p.Node, Decision: p.Decision, Details: []string{}, pod: p}
	if p.Gang != nil {
		g := out.gang(p)
		a.Gang = &g
	}
	switch {
	case p.Ended():
		a.State, a.Reason, a.Words = Ended, HasEnded, fmt.Sprintf("it has run to its end (%s) on %s", p.Phase, or(p.Node, "no node"))
	case p.Node != "":
		a.State = Placed
		out.placed(&a, p)
	default:
		a.State = Waiting
		out.waits(&a, p)
	}
	if p.Deleting {
		if a.State == Waiting {
			a.Reason, a.Words = Deleted, "it is being deleted"
		} else {
			a.say("it is being deleted")
		}
	}
	if a.Gang != nil {
		a.say("%s", a.Gang.words())
	}
	return a
}

func (a *Account) say(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(a.Details, text) {
		a.Details = append(a.Details, text)
	}
}

func or(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// placed says why the pod is where it is.
func (out *Objects) placed(a *Account, p *Pod) {
	d := p.Decision
	if d == nil {
		if s, ok := out.shadowDecision(p); ok {
			d = &s
		}
	}
	a.Decision = d
	switch {
	case d == nil:
		a.Reason = OwnScores
		a.Words = fmt.Sprintf("scheduler %s chose %s by its own scores: no decision of Cotenant is recorded", or(p.Scheduler, "(none named)"), p.Node)
		if p.Scheduled.Status == "" {
			a.Words = fmt.Sprintf("it was created on %s: no scheduler was asked", p.Node)
		}
		out.fallback(a, p)
		return
	case d.Mode == "shadow":
		a.Reason = OwnScores
		a.Words = fmt.Sprintf("the scheduler's own scores chose %s; Cotenant, in the mode shadow, only watched", p.Node)
		switch d.Planned {
		case "":
			a.say("no plan was ready for it in time%s", because(d))
		case p.Node:
			a.say("%s would have put it there, too%s", or(d.Policy, "the policy"), d.expected())
		default:
			a.say("%s would have put it on %s%s", or(d.Policy, "the policy"), d.Planned, d.expected())
		}
	case d.Mode == "assist":
		assisted(a, p, d)
	case d.Fallback != "":
		a.Reason = d.Fallback
		a.Words = fmt.Sprintf("the scheduler's own scores chose %s, since the plan was not followed: %s", p.Node, or(d.Why, d.Fallback))
		if d.Planned != "" && d.Planned != p.Node {
			a.say("the plan had it on %s%s", d.Planned, d.expected())
		}
	case d.Planned == p.Node:
		a.Reason = ByPlan
		a.Words = fmt.Sprintf("%s chose %s%s", or(d.Policy, "the policy"), p.Node, d.expected())
	case d.Planned != "":
		a.Reason = Elsewhere
		a.Words = fmt.Sprintf("it went to %s, though %s had it on %s%s%s", p.Node, or(d.Policy, "the policy"), d.Planned, d.expected(), because(d))
	default:
		a.Reason = OwnScores
		a.Words = fmt.Sprintf("scores chose %s%s%s", p.Node, d.expected(), because(d))
	}
	if d.Plan > 0 {
		a.say("plan %d, made for %s, with the files of version %s", d.Plan, count(d.Pods, "pod"), or(d.Version, "unknown"))
	}
	if d.Node != "" && d.Node != p.Node {
		a.say("the record names %s as its node: it is of an earlier binding", d.Node)
	}
	out.fallback(a, p)
}

// assisted says whose scores chose the node: in the mode assist there is no plan.
func assisted(a *Account, p *Pod, d *Decision) {
	if d.Fallback != "" {
		a.Reason = d.Fallback
		a.Words = fmt.Sprintf("the scheduler's own scores chose %s, without one of Cotenant's, which is in the mode assist: %s", p.Node, or(d.Why, d.Fallback))
		return
	}
	a.Reason = OwnScores
	a.Words = fmt.Sprintf("the scheduler's scores together chose %s; Cotenant's, in the mode assist, is one of them: what the pod gains on a node less what it costs its neighbours there", p.Node)
	if d.Version != "" {
		a.say("scored with the files of version %s", d.Version)
	}
}

// fallback adds the last event that says why the plan was not followed.
func (out *Objects) fallback(a *Account, p *Pod) {
	if e, ok := out.last(p, FallbackEvent); ok && (a.Decision == nil || !strings.Contains(e.Message, or(a.Decision.Why, "\x00"))) {
		a.say("%s", e.Message)
	}
}

func (d *Decision) expected() string {
	if d.Performance == nil {
		return ""
	}
	return fmt.Sprintf(", where it expects a performance of %.3g", *d.Performance)
}

func because(d *Decision) string {
	if why := or(d.Why, d.Fallback); why != "" {
		return ": " + why
	}
	return ""
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
