// Package profile measures real programs that run side by side on the
// machine it runs on, and records each one's rate and latency as
// history.Samples: what the interference models learn from.
//
// A Suite (YAML, see docs/profile.md) says how each workload is started,
// driven and read. Colocations or SpaceFilling choose what to run together,
// and a Session runs it, appending every finished repeat to a Log that
// survives kill -9:
//
//	suite, err := profile.LoadSuite("suite.yaml")
//	log, err := profile.OpenLog("samples.jsonl")
//	session := profile.Session{Suite: suite, Log: log}
//	err = session.Run(ctx, profile.Plan(profile.Colocations(names, 4), suite.Measure, seed))
//	samples := history.Aggregate(log.Samples())
//
// The package starts processes, writes cgroups and reads the clock; it kills
// only what it started.
package profile
