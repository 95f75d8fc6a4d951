// Package balance simulates the balancing of one training job, to compare
// ways of sizing batches. It holds two simulators.
//
// RunCurves replays iterations on measured curves of time by batch size, with
// noise, and with curves that change. The policy never sees the curves:
//
//	curves, err := balance.ReadCurves(file, "batch-time.csv")
//	r, err := balance.RunCurves(balance.Curves{Workers: curves, GlobalBatch: 256, Policy: "cotenant", Noise: 0.05, Seed: 1})
//
// Train runs real SGD on a small real problem, with each worker's speed read
// from a trace, under BSP, ASP, SSP, work stealing and LB-BSP. Time is
// virtual, losses come from the arithmetic of the training itself:
//
//	r, err := balance.Train(balance.Training{Problem: balance.Logistic, Scheme: balance.LBBSP, Traces: traces, Seed: 1})
package balance
