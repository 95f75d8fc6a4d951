// Package impure does what no core package may: it shows that the check for
// it sees it. It is never built.
package impure

import (
	"math/rand/v2"
	"time"

	"os"
)

// Decide is not a function of its arguments.
func Decide(r *rand.Rand) int {
	start := time.Now()
	n := rand.IntN(10) + r.IntN(10)
	go os.Exit(n)
	return n + int(start.Unix()) + int(time.Second)
}
