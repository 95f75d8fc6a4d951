// Package learned is a sim.Truth in which everything goes as fast as somebody
// believes: the world in which policies are trained and tuned that may not ask
// the truth (Bao et al., Harmony, INFOCOM 2019, section V, where a reward
// prediction model takes the place of the cluster).
//
//	truth := learned.New(speeds.Fork())
//	r, err := sim.Run(sim.Config{Nodes: nodes, Jobs: jobs, Truth: truth, Policy: policy})
package learned
