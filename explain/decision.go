package explain

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/cotenant/cotenant/internal/misfit"
)

// DecisionAnnotation is the annotation in which cotenant-scheduler records what
// it decided for a pod.
const DecisionAnnotation = "cotenant.dev/decision"

// Decision is what the annotation holds, and the event of a scheduler in the mode
// shadow.
type Decision struct {
	Mode    string `json:"mode"`
	Policy  string `json:"policy,omitempty"`
	Version string `json:"version,omitempty"`
	// Plan numbers the plan, Pods is how many it was for.
	Plan int `json:"plan,omitempty"`
	Pods int `json:"pods,omitempty"`
	// Planned is the node that the plan names, Node where the pod went.
	Planned string `json:"planned,omitempty"`
	Node    string `json:"node,omitempty"`
	Group   string `json:"group,omitempty"`
	// Performance is what the model expected on the planned node, 1 is alone; nil
	// where it was silent.
	Performance *float64 `json:"performance,omitempty"`
	// Fallback is why the scheduler's own scores decided, Why the same in words.
	Fallback string `json:"fallback,omitempty"`
	Why      string `json:"why,omitempty"`
}

// ParseDecision reads a decision. Fields that a later scheduler may have are
// left out.
func ParseDecision(text string) (Decision, error) {
	var d Decision
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return Decision{}, fmt.Errorf("%.80q is no decision: %w", text, misfit.JSON(err))
	}
	return d, nil
}

// JSON is the decision as the annotation has it.
func (d *Decision) JSON() string {
	text, err := json.Marshal(d)
	if err != nil {
		return fmt.Sprintf(`{"why":%q}`, err.Error())
	}
	return string(text)
}

// Reasons of the scheduler's events: what a plan in the mode shadow had for a pod,
// why a pod was left to the scheduler's own scores, and that a gang goes of which
// nobody says how many pods go together.
const (
	ShadowEvent     = "CotenantShadow"
	FallbackEvent   = "CotenantFallback"
	UnnumberedEvent = "CotenantGangUnnumbered"
)

// shadowMark is what comes before the decision in an event of the mode shadow.
const shadowMark = "decision: "

// ShadowNote is what such an event says.
func (d *Decision) ShadowNote() string {
	went := "went to " + d.Node
	if d.Planned == d.Node {
		went = "too"
	}
	return fmt.Sprintf("would have gone to %s, %s; %s%s", d.Planned, went, shadowMark, d.JSON())
}

// shadowDecision is what a scheduler in the mode shadow told of the pod last.
func (out *Objects) shadowDecision(p *Pod) (Decision, bool) {
	e, ok := out.last(p, ShadowEvent)
	if !ok {
		return Decision{}, false
	}
	_, text, ok := strings.Cut(e.Message, shadowMark)
	if !ok {
		return Decision{}, false
	}
	d, err := ParseDecision(text)
	return d, err == nil
}
