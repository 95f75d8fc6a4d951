package balance

import (
	"errors"
	"time"
)

// Worker is a data-parallel worker (a rank, a client) and the limits of its
// batch size, all in samples or all in tokens.
type Worker struct {
	Name string `json:"name"`
	// Min and Max bound the batch size, both included. Max 0 is no limit.
	Min int `json:"min,omitempty"`
	Max int `json:"max,omitempty"`
	// Buckets are the only sizes allowed, such as those of compiled graphs; empty
	// allows all. Buckets outside Min and Max are never used. Zero is a size only
	// if it is among them.
	Buckets []int `json:"buckets,omitempty"`
	// Data is the number of samples the worker owns; it takes no more in an
	// iteration (federated learning). 0 is no limit.
	Data int `json:"data,omitempty"`
}

// Report is what one worker measured in one iteration.
type Report struct {
	Worker     string `json:"worker"`
	Generation int64  `json:"generation"`
	Iteration  int64  `json:"iteration"`
	// BatchSize is what the worker really processed; it may differ from its
	// share, as where an epoch ends.
	BatchSize int `json:"batch_size"`
	// Compute is the time until the worker's own gradient was there, Communicate
	// the time of sending it. Only Federated reads Communicate.
	Compute     time.Duration `json:"compute"`
	Communicate time.Duration `json:"communicate,omitempty"`
	// CPU and Memory are how much of the worker's node was in use, by anybody:
	// 0..1 by convention, but any unit will do that stays the same for the worker.
	// 0 throughout where they are not measured.
	CPU    float64 `json:"cpu,omitempty"`
	Memory float64 `json:"memory,omitempty"`
	// OutOfMemory: the batch size did not fit. Compute is not read then.
	OutOfMemory bool `json:"out_of_memory,omitempty"`
}

// Shares are the batch sizes of all workers of a generation, valid from an
// iteration on until other shares hold.
type Shares struct {
	Generation int64 `json:"generation"`
	// Iteration is the first that the shares hold for.
	Iteration int64 `json:"iteration"`
	// BatchSizes are in the order of the workers and sum to the global batch.
	BatchSizes []int `json:"batch_sizes"`
}

// Allocators.
const (
	CPU       = "cpu"       // proportional to predicted speed
	GPU       = "gpu"       // min-max on each worker's learned curve of time by size
	Federated = "federated" // compute and upload time equalised, capped by data
)

// Predictors of the next speed.
const (
	Auto  = "auto" // whichever erred least lately, for each worker
	Last  = "last"
	EMA   = "ema"
	ARIMA = "arima"
	RNN   = "rnn"
	NARX  = "narx"
)

// Options of a Balancer. The zero value of each but GlobalBatch is its default.
type Options struct {
	// GlobalBatch is the sum of all batch sizes of an iteration.
	GlobalBatch int `json:"global_batch"`
	// Allocator is CPU (the default), GPU or Federated.
	Allocator string `json:"allocator,omitempty"`
	// Predictor of speeds for CPU and Federated; the default is Auto.
	Predictor string `json:"predictor,omitempty"`
	// Threshold is the predicted gain, as a share of the iteration time, under
	// which the shares stay; 0 is the default 0.05, negative moves for any gain.
	Threshold float64 `json:"threshold,omitempty"`
	// Seed of exploration and of the networks' first weights.
	Seed uint64 `json:"seed,omitempty"`
	// Last are shares that the workers hold already, from before a restart whose
	// state was lost: the Balancer goes on with them and their generation if they
	// fit the workers, and with the next generation if they don't.
	Last *Shares `json:"last,omitempty"`
}

// DefaultThreshold is the gain for which shares move (Options.Threshold).
const DefaultThreshold = 0.05

// What Observe, New and Change refuse wraps one of these.
var (
	// ErrInvalid: a value that no measurement and no sound configuration has.
	ErrInvalid = errors.New("invalid")
	// ErrStale: a report of another generation than the current one.
	ErrStale = errors.New("stale generation")
	// ErrUnknownWorker: a report of a worker that the generation lacks.
	ErrUnknownWorker = errors.New("unknown worker")
	// ErrDuplicate: a second report of a worker for an iteration.
	ErrDuplicate = errors.New("reported already")
	// ErrInfeasible: no vector within the workers' limits sums to the global batch.
	ErrInfeasible = errors.New("infeasible")
)
