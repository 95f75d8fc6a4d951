// Command bench runs the scenarios, prints what they reach and holds it
// against their bounds.
//
//	go run ./scenarios/bench              # all of it, about half an hour
//	go run ./scenarios/bench -smoke       # the quick part
//	go run ./scenarios/bench -only p99    # scenarios whose name contains "p99"
//	go run ./scenarios/bench -o json
//
// A scenario is a piece of YAML in scenarios/: what is done, on which input,
// with which seeds, and the checks: a metric, the least or most it may be, and
// what was measured when that bound was set (mean, spread, date) and why it
// is what it is. Quality is held against bounds; time is printed, never held
// against anything, since machines differ.
//
// Scenarios over data that is not there are skipped, and named. The exit
// status is 0 when every check held, 1 when one did not, 2 on wrong use.
package main
