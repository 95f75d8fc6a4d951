// Package balance sizes the batch of each data-parallel worker so that no
// worker waits for a straggler (LB-BSP: Chen et al., Semi-dynamic load
// balancing, SoCC 2020). The sum of the batch sizes never changes, so with
// gradients weighted by batch size the update equals that of equal batches.
//
//	b, err := balance.New(workers, balance.Options{GlobalBatch: 256, Allocator: balance.GPU})
//	shares := b.Next(0)              // what each worker takes in iteration 0
//	err = b.Observe(reports)         // how long each took
//	shares = b.Next(1)               // another vector where that pays
//	err = b.Change(workers)          // a worker died or joined: a new generation
//
// Reports need the compute time alone: from the start of the iteration until
// the worker's own gradient is there, without waiting for anybody. So it does
// not matter how gradients meet, by all-reduce or at parameter servers. The
// allocator Federated also counts the time a worker needs to send its update,
// which must then be its own, without waiting.
//
// The package is pure: it has no clock, no goroutine and no randomness but
// Options.Seed. What comes from outside can't make it panic, nor make a vector
// that does not sum to the global batch size: nonsense is refused with an
// error that names field and value, and everything else is taken in.
package balance
