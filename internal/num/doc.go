// Package num holds the numeric ground of the learned models: dense float32
// matrices on gonum's blas32, layers with reverse-mode gradients, the Adam
// optimiser and a seeded random source.
//
// Layers hold parameters only; whoever runs them keeps the activations. So a
// network that is no longer trained can be read by many goroutines at once:
//
//	rng := num.Rand(1)
//	l := num.NewLinear(3, 2, rng)
//	y := num.New(batch, 2)
//	l.Forward(y, x)           // y = x W + b
//	l.Backward(dx, dy, x)     // adds to l.W.Grad and l.B.Grad
//
// Everything is deterministic: the same inputs give the same bytes on the
// same architecture, whatever GOMAXPROCS is.
package num
