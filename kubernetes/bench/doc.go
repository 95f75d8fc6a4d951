// Package bench measures schedulers against a real control plane: how fast
// they bind, and what their placements are worth by a table of measurements.
//
//	truth, err := bench.ReadTruth("") // what ships, or a file of samples
//	batch := truth.Even(3000, 729)
//	result, err := bench.Run(ctx, bench.Trial{Batch: batch, Truth: truth, Scheduler: bench.Stock()})
//	fmt.Println(result.PodsPerSecond, result.MeanPerformance, result.Share)
//
// Every run has a control plane of its own, with nodes that kwok plays. All
// pods are pending before the scheduler starts, unless they arrive in groups.
package bench
