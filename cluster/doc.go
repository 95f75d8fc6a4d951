// Package cluster holds the nouns that every other package speaks: nodes,
// devices, resources, topology, workloads, tasks, groups, jobs and services;
// the immutable Snapshot of a cluster that a policy sees; and the Placement,
// a trial assignment of tasks to nodes that knows what fits and says in words
// why something does not.
//
//	s, err := cluster.NewSnapshot(cluster.Spec{
//		Nodes: cluster.Nodes("", 2, 1, 8), // two nodes of the class "", 8 slots each
//	})
//	p := cluster.NewPlacement(s, []cluster.Task{{ID: "a/0", Workload: "redis"}})
//	if p.Check(p.Kind(0), 1) == cluster.Fits {
//		p.Put(p.Kind(0), 1)
//	}
//
// The package is pure and uses the standard library only.
package cluster
