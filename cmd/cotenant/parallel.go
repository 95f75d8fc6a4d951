package main

import (
	"runtime"
	"sync"
)

// parallel runs f(0) ... f(n-1), as many at a time as there are cores, and
// returns when all are done.
func parallel(n int, f func(i int)) {
	var wait sync.WaitGroup
	next := make(chan int)
	for range min(n, runtime.GOMAXPROCS(0)) {
		wait.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wait.Wait()
}
