// Package history keeps measurements: a Sample is one workload's rate or
// latency in one co-location, and a Store holds them. Everything that
// measures (profile, the balancer, importers of other people's files) writes
// samples; everything that learns (interference.Fit) reads them.
//
//	var store history.Memory
//	err := store.Append(history.Sample{
//		Colocation: cluster.Colocation{"redis": 1, "nginx": 2},
//		Workload:   "redis", Metric: history.Rate, Value: 61e3, Alone: 80e3,
//	})
//
// Package history/sqlstore keeps them in SQLite, and history/formats reads
// and writes files.
package history
