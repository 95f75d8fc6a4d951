// Package data embeds measurements that `cotenant profile` made of the suite
// that ships, on the machine that machine.json describes: what `cotenant demo`
// runs on where no other samples are given. README.md says how it was measured.
//
// It embeds a trace of jobs too, which the demo replays.
//
//	samples, err := data.Samples() // one a cell: mean, spread, rate alone
//	raw, err := data.Repeats()     // every window that was measured
package data
