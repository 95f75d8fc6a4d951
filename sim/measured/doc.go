// Package measured is a world of jobs on devices that at most two tasks share,
// whose speeds are those of a table of measurements, as Gavel's (OSDI 2020).
//
//	truth, err := measured.New(samples, "v100", "k80")
//	r, err := sim.Run(sim.Config{Truth: truth, ...})
//
// The progress of a task is what its job would make alone, on the task's class
// of device, at the job's size and span (history.AloneRates.Progress), times
// the task's performance beside the one other task on its device. Alone it is
// 1; a task on several devices has the least of them.
//
// For jobs of one worker all of that was measured. For jobs of several workers
// it is a model, not data: pairs were measured between single workers only,
// and a job is taken to go at the pace of its slowest worker (package sim
// takes that minimum). Sizes that the table lacks are scaled by the rule of
// history.AloneRates.Rate, and Truth.Scaled counts them.
//
// FromModel makes the same world out of what an interference.Model predicts:
// the learned world, in which policies train. It never reads a measurement of
// a pair, and Truth.Calls of the measured one proves it.
package measured
