// Package sim replays jobs on a simulated cluster: jobs arrive, queue, are
// placed by a place.Policy whole or not at all, run at the speed that a Truth
// says, and finish. The clock is virtual, and the same Config gives the same
// Result, byte for byte.
//
//	jobs, err := sim.Stream{Jobs: 1000, Load: 0.9, Capacity: 16, Workloads: names}.Draw(seed)
//	r, err := sim.Run(sim.Config{Nodes: nodes, Jobs: jobs, Truth: truth, Policy: policy, Backfill: true})
//	fmt.Println(r.MeanJCT, "s, alone", r.LowerBound, "s")
//
// # Time
//
// Time is a time.Duration since the start: whole nanoseconds, so that what is
// meant to happen at one instant does. At an instant, first jobs finish or
// fail, then nodes fail or come back, then jobs arrive, then the policy
// decides, once (gang by gang without Backfill), and then Truth gives the new
// rates. Between two instants nothing changes: such a stretch is what Watch
// and Observers hear of. Work that is left and times of finishing are settled
// only for jobs whose rate changes.
//
// # Progress
//
// A job goes at the pace of its slowest worker: the least progress over its
// tasks with the role worker, or over all its tasks where none has that role.
// It ends when the integral of its progress equals its Work. A Truth is asked
// only for tasks whose neighbourhood changed: those on the nodes where a task
// began or ended, and all tasks of the gangs that have one there.
//
// # Decisions
//
// Whatever a policy decides is checked: known tasks and nodes, each task once,
// whole gangs, device slots, node slots and resources. A bad decision ends
// the run with an error that names the policy, the job and the node. What it
// neither binds nor holds counts as held. With Stale, bindings that fitted in
// the old view but do not fit any more are refused and counted instead.
//
// # Ends
//
// A run ends when every job has finished, or when nothing can happen any
// more: nothing runs, nobody arrives, and the policy holds all that waits.
// Result.Unfinished lists what is left. A gang that cannot fit the empty
// cluster is refused at once and listed in Result.Refused.
package sim
