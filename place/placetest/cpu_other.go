//go:build !unix

package placetest

import "time"

// CPU is how long f took.
func CPU(f func()) time.Duration {
	begin := time.Now()
	f()
	return time.Since(begin)
}
