package balance

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
)

var sweep = flag.Int("sweep", 0, "try every size of the measured curves with `N` seeds, and print where the bars are missed")

// swept is one run of the sweep.
type swept struct {
	x      int
	seed   uint64
	change Change
	judged Judged
}

// sweepCurves runs the allocator on curves at every size, with every worker
// changing in turn.
func sweepCurves(t testing.TB, curves []Curve, sizes []int, seeds int, factors []float64, delay int) []swept {
	var all []swept
	for _, x := range sizes {
		for seed := range seeds {
			for _, w := range curves {
				for _, f := range factors {
					all = append(all, swept{x: x, seed: uint64(seed + 1), change: Change{Iteration: 200, Worker: w.Worker, Factor: f}})
				}
			}
		}
	}
	var wg sync.WaitGroup
	next := make(chan int)
	for range 2 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range next {
				s := &all[i]
				c := Curves{Workers: curves, GlobalBatch: s.x, Policy: Cotenant, Noise: 0.05, Seed: s.seed, Changes: []Change{s.change}, Delay: delay}
				r, err := RunCurves(c)
				if err != nil {
					t.Error(err)
				}
				s.judged = c.Judge(r)
			}
		}()
	}
	for i := range all {
		next <- i
	}
	close(next)
	wg.Wait()
	return all
}

func TestSweep(t *testing.T) {
	if *sweep == 0 {
		t.Skip("-sweep N was not given")
	}
	var sizes []int
	step := 8
	if v, err := strconv.Atoi(os.Getenv("STEP")); err == nil {
		step = v
	}
	for x := 64; x <= 512; x += step {
		sizes = append(sizes, x)
	}
	delay, _ := strconv.Atoi(os.Getenv("DELAY"))
	curves := lbb(t)
	report(sweepCurves(t, curves, sizes, *sweep, []float64{1.5, 0.7}, delay))
}

func report(all []swept) {
	var first, settled, back []float64
	for _, s := range all {
		j := s.judged
		first, settled, back = append(first, j.First), append(settled, j.Settled), append(back, j.Back)
		if j.First > 1.3 || j.Settled > 1.03 || j.Back > 1.03 {
			fmt.Printf("X %d seed %d %s x%v: first %.3f settled %.4f back %.4f after %.4f\n", s.x, s.seed, s.change.Worker, s.change.Factor, j.First, j.Settled, j.Back, j.After)
		}
	}
	for _, v := range []struct {
		name string
		v    []float64
		bar  float64
	}{{"first", first, 1.3}, {"settled", settled, 1.03}, {"back", back, 1.03}} {
		slices.Sort(v.v)
		sum, over := 0.0, 0
		for _, x := range v.v {
			sum += x
			if x > v.bar {
				over++
			}
		}
		n := len(v.v)
		fmt.Printf("%s: mean %.4f p90 %.4f p99 %.4f max %.4f, over %.2f: %d of %d\n", v.name, sum/float64(n), v.v[n*9/10], v.v[n*99/100], v.v[n-1], v.bar, over, n)
	}
}
