// Package plugin is kube-scheduler's plugin Cotenant: it places pods by plans
// that the policies of this project make for whole groups, on a snapshot of the
// scheduler's own cache, and leaves all that it doesn't know to the scheduler's
// own scores.
//
//	command := app.NewSchedulerCommand(app.WithPlugin(plugin.Name, plugin.New))
//
// What happens to a pod in the mode enforce:
//
//	PreEnqueue  waits, for the group window, for the other pods of its group;
//	            a gang waits for its minimum
//	PreFilter   makes one plan for all pods that wait (package plan), or takes the
//	            pod's node from the last one if the node is still as it was, and
//	            names that node; unknown workloads, an unsure model, a late policy
//	            leave all nodes open
//	Reserve     notes where the pod goes
//	Permit      holds the pods of a gang until all have a node
//	Bind        writes the decision into the binding; tries again for gangs
//
// In the mode assist there is a score instead of PreFilter; in the mode shadow
// the plugin has only Reserve and PostBind and records what it would have done.
//
// Locks: the scheduler calls PreEnqueue under the lock of its queue. So nothing
// here calls the scheduler while it holds a lock of its own.
package plugin
