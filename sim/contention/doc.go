// Package contention is a written-down world of servers for the jobs side: how
// fast the workers and parameter servers of synchronous training go beside
// each other, from what they do to processors, memory bandwidth, PCIe, network
// and disk. It is a sim.Truth: the simulator asks it for true rates, and
// policies never see its formulas, only what a profiler would measure in it
// (Samples, AloneSamples).
//
//	truth, err := contention.New(contention.Config{Strength: 1})
//	rates := truth.Rates(snapshot, touched) // progress by task; reused by the next call
//
// # The model
//
// One iteration of a job of W workers and P parameter servers takes
//
//	max over workers (device + host) + max over nodes (network) + max over parameter servers (update)
//
// since training is synchronous. Each term is a sum of phases; a phase moves an
// amount (CPU-seconds, bytes) through a shared resource of the node at a rate
// that is the job's max-min fair share of it, weighted by tasks. Every other
// job on the node asks for its own peak for the part of the time in which it
// is at it, as if it had no neighbours; Config.Strength multiplies that part.
// The rate is the mean over who is at it. Demands do not shrink when their
// owner is slowed, so the rates need no iteration, and a neighbour more never
// speeds anyone up.
//
// The constants are in constants.json, with their sources in
// docs/contention.md: those of the servers are fixed by reasoning, those of
// the workloads by measurements of others.
package contention
