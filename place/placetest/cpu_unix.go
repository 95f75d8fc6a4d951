//go:build unix

package placetest

import (
	"syscall"
	"time"
)

// CPU is how much processor time this process used while f ran: what else the
// machine does is left out, the garbage collector is not.
func CPU(f func()) time.Duration {
	begin := used()
	f()
	return used() - begin
}

func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
