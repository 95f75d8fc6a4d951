// Package metis places tasks of services by hierarchical reinforcement
// learning, after Metis (Wang, Weng, Wang, Chen, Li: Metis: learning to schedule
// long-running applications in shared container clusters at scale, SC 2020).
//
// The cluster is split into parts, level by level, down to the node; at every
// level a sub-policy chooses where a task goes. There is one for each kind of
// level, the same in every part, trained once and offline (train/metis), so that
// nothing is learned when tasks are placed: the networks read features of
// place/encode that name no workload and count no nodes.
//
//	policy := metis.New(nets, model, metis.Options{})
//	decision, err := policy.Place(request)
//
// Above them stands one that says which workload's turn it is, among those of a
// group. One pass over the tasks decides; a search may follow, since
// Policy.Chooser can start baseline.GreedySearch. Options.Divide makes the
// policies that the paper compares Metis to.
package metis
