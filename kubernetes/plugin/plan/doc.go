// Package plan decides for pods that wait: one plan for all groups that wait,
// by the policies of place, on a snapshot of the cluster; and what is left to
// the scheduler's own scores, with the reason.
//
//	p := plan.Make(plan.Policies{Services: policy, Model: model}, plan.Problem{Spec: spec, Groups: groups})
//	p.Node["uid-1"]     // the node that was chosen
//	p.Fallback["uid-2"] // or why the scheduler's own scores decide
//
// It is pure but for the policy that it calls: no clock, no I/O; a policy that
// panics is an error like others.
package plan
