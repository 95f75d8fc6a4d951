// Package jobs is what all policies for training jobs share, and the policies
// by rule among them, one file each.
//
// Speeds is what a policy believes: how fast each task runs in a co-location
// (from an interference.Model), how fast jobs run alone on each class
// (history.AloneRates), and what does not fit together (history.Misfits).
// Board is a trial placement that knows its worth: the progress of every gang,
// and by how much the sum changes if one more task is put on a site. A site is
// a device (history.ScopeDevice) or a node (history.ScopeNode): what the tasks
// of a co-location share.
//
//	speeds := jobs.NewSpeeds(model, jobs.Options{Scope: history.ScopeDevice, Alone: rates, Misfits: misfits})
//	policy, err := jobs.New("greedy-wait", jobs.Settings{Speeds: speeds})
//	d, err := policy.Place(place.Request{View: s, Pending: queue, Now: now})
//
// The policies:
//
//	spread       the least loaded site that takes the task; shares when all have one
//	binpack      the fullest site that takes it
//	consolidate  whole gangs on the fullest node that takes them, else on few
//	tetris       demands aligned with what is free (SIGCOMM 2014)
//	fastest      the class where the job is fastest, the least loaded site of it
//	linear       greedy, on a model of the kind linear
//	greedy       the largest gain in the sum of progress
//	greedy-wait  greedy, but a gang that would gain too little waits
//	matching     queued jobs against sites at once, by an optimal assignment
//
// All look at the whole queue in arrival order and pass over the gangs that
// have no place; a caller who wants no backfill offers one gang at a time.
// Params names what can be tuned. The progress of a gang is
//
//	alone(class, workers, span) * min over its tasks of performance
//
// where alone is its progress with nothing beside it, at the slowest class and
// the span that its tasks have: between its measured progress on one node and
// dealt out, by the traffic that its busiest node carries. That a gang goes at its slowest task's pace is
// a model, not data.
package jobs
