package plan

import "errors"

// Code names why a pod is left to the scheduler's own scores. It is a label of
// metrics: there are few.
type Code string

// The codes.
const (
	WorkloadUnknown Code = "workload-unknown"
	ModelUnsure     Code = "model-unsure"
	PolicyLate      Code = "policy-late"
	PolicyPanicked  Code = "policy-panicked"
	PolicyFailed    Code = "policy-failed"
	BadDecision     Code = "bad-decision"
	BadView         Code = "bad-view"
	BadFiles        Code = "bad-files"
	NoRoom          Code = "no-room"
	NodeRefused     Code = "node-refused"
)

// Codes lists all codes, so that counters of all are there from the start.
var Codes = []Code{
	WorkloadUnknown, ModelUnsure, PolicyLate, PolicyPanicked, PolicyFailed, BadDecision, BadView, BadFiles, NoRoom, NodeRefused,
}

// Reason is a code and the account in words.
type Reason struct {
	Code  Code
	Words string
}

var errPanic = errors.New("the policy or its model panicked")

func codeOf(err error) Code {
	if errors.Is(err, errPanic) {
		return PolicyPanicked
	}
	return PolicyFailed
}
