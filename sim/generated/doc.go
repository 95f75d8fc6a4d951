// Package generated makes up truths about interference, over any number of
// workloads, for questions that no measured table can ask: training on
// workloads that nobody has met, scale, and co-locations of any size.
//
//	m := generated.New(30, 1) // an interference.Model
//	batch := m.Batch(600, 7)  // tasks a workload
package generated
