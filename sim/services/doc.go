// Package services simulates services on a cluster over time: they arrive in
// groups of replicas, scale, and leave; nodes fail and come back; a
// place.Policy places what is pending, and what runs stays where it is unless
// moves are allowed at a cost. The clock is virtual, and the same Config gives
// the same Result, byte for byte.
//
//	arrivals, err := services.Stream{Capacity: 648, Load: 0.8, Lifetime: time.Hour, Horizon: 24 * time.Hour, Workloads: names}.Draw(seed)
//	r, err := services.Run(services.Config{
//		Cluster: cluster.Spec{Nodes: cluster.Nodes("", 81, 0, 8)}, Arrivals: arrivals, Truth: table, Policy: policy,
//		Horizon: 24 * time.Hour, Warmup: 4 * time.Hour, Lifetime: time.Hour, Samples: 20,
//	})
//	limit, err := r.Samples[0].Limit(spec, table, nil)
//	fmt.Println(r.Samples[0].Sum / limit.Bound)
//
// # Time
//
// At an instant, first moves are done, then tasks leave, then nodes fail or
// come back; if that changed anything and tasks wait (or moves are allowed) the
// policy decides; then groups arrive, and the policy decides after each. All
// that waits is pending in every decision, in arrival order. Between instants
// nothing changes: Config.Watch hears of such stretches, Config.Decided of the
// decisions between them, which is all that a learner needs:
//
//	c.Watch = func(s services.Stretch) { trajectory.Flow(s.Sum/capacity, (s.To-s.From).Seconds()/horizon) }
//
// # Demand
//
// When a task is wanted, from its arrival until it leaves, is settled
// beforehand and does not depend on the policy: a task that waits is leaving
// all the same. So all policies are measured on the same demand, and what waits
// does not pile up. Request.Expected tells a policy what arrived lately: each
// arrival counts with a weight that decays over two mean lifetimes, so that the
// number is that of tasks expected within one.
//
// # Rules
//
// Every decision is checked against the cluster as it is: known tasks and
// nodes, whole gangs, slots, resources, and cluster.Constraints. One that breaks
// a rule ends the run with an error. Departures can leave a workload less even
// than its spread rule says, as on Kubernetes; no decision may make that worse,
// and Result.Skewed tells for how much of the time it was so.
//
// # The bound
//
// Sample.Limit bounds, by the configuration linear program of place/bound, what
// the tasks that run at a moment could reach were all free to sit anywhere;
// Sample.Anew is what a policy reaches by placing all of them from scratch.
package services
