// Package storm tries gangs against all that goes wrong in a cluster: pods are
// deleted, nodes vanish and come back under their names, the scheduler is
// killed as with kill -9, the API server restarts. What must hold: no gang is
// in part for longer than its timeout, no pod is lost or bound twice, and after
// the storm the scheduler's cache equals what the API server has.
//
//	make kubernetes-build
//	cd kubernetes && go test ./storm -v
//
// Ledger is what watches over it; the storms themselves are tests.
package storm
