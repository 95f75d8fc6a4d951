// Package place defines what a placement policy is: it is given a Request (a
// view of the cluster and the groups to place) and returns a Decision with
// reasons in words. A Policy is pure: no clock, no I/O, no randomness but the
// Request's, so the simulator, the scheduler and the tests run the same code.
//
//	d, err := policy.Place(place.Request{View: s, Pending: groups, Rand: r})
//	value, err := place.Evaluate(s, groups, d, model, place.MeanPerformance)
//
// Values turns a model into the values of co-locations that all policies
// search over; the policies are in place/baseline, place/bound, and so on.
package place
