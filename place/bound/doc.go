// Package bound tells how good a placement of a batch can possibly be, proves
// it, and plans by it.
//
// On nodes of one class a placement is a count of configurations, the
// co-locations that nodes can hold. Maximising the sum of count times value,
// subject to each workload's number of tasks and each class's number of
// nodes, is a linear program with few rows and many columns, solved by column
// generation. Any dual prices give a valid bound by weak duality: the tasks at
// their prices plus, for each node, the best configuration at those prices.
// It is proven where that best was found among all configurations; where they
// are too many to list, a beam search looks for it and Result.Proven is false.
// Spread rules are rows of the program; rules across nodes other than spread
// are left out of it, which can only make the bound weaker, and hold in every
// plan.
//
//	r, err := bound.Compute(request, model, bound.Options{})
//	decision, err := bound.New(model, bound.Options{}).Place(request)
//
// The plan is the fractional optimum rounded, and improved by exact plans of a
// few nodes at a time; where that leaves a gap, it begins anew from the
// exchanges of greedy-search.
//
// The same machinery serves two more policies: NewMeasured plans on measured
// co-locations alone, and NewMedea after the constraints that Medea's authors
// describe, at the threshold that is best by the model.
package bound
