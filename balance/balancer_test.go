package balance

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func workers(n int) []Worker {
	w := make([]Worker, n)
	for i := range w {
		w[i].Name = fmt.Sprint("rank", i)
	}
	return w
}

// iterate plays an iteration in which worker i computes at speeds[i].
func iterate(t testing.TB, b *Balancer, k int64, speeds []float64) Shares {
	t.Helper()
	s := b.Next(k)
	var reports []Report
	for i, w := range b.Workers() {
		if s.BatchSizes[i] > 0 {
			reports = append(reports, Report{
				Worker: w.Name, Generation: s.Generation, Iteration: k, BatchSize: s.BatchSizes[i],
				Compute: time.Duration(float64(s.BatchSizes[i]) / speeds[i] * 1e9),
			})
		}
	}
	if err := b.Observe(reports); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSharesFollowSpeeds(t *testing.T) {
	for _, allocator := range []string{CPU, GPU, Federated} {
		for _, predictor := range append(predictorNames[:], Auto) {
			b, err := New(workers(4), Options{GlobalBatch: 200, Allocator: allocator, Predictor: predictor})
			if err != nil {
				t.Fatal(err)
			}
			for k := range int64(130) {
				iterate(t, b, k, []float64{100, 200, 300, 400})
			}
			got := b.Next(200).BatchSizes
			for i, want := range []int{20, 40, 60, 80} {
				if abs(got[i]-want) > 3 {
					t.Errorf("%s, %s: shares %v, want about 20, 40, 60, 80", allocator, predictor, got)
					break
				}
			}
		}
	}
}

func TestSmallGainsMoveNothing(t *testing.T) {
	b, err := New(workers(2), Options{GlobalBatch: 200, Predictor: Last})
	if err != nil {
		t.Fatal(err)
	}
	iterate(t, b, 0, []float64{100, 104}) // a gain of 2 %
	if got := iterate(t, b, 1, []float64{100, 104}).BatchSizes; !slices.Equal(got, []int{100, 100}) {
		t.Errorf("moved to %v for a gain under 5 %%", got)
	}
	iterate(t, b, 2, []float64{100, 125})
	if got := b.Next(3).BatchSizes; !slices.Equal(got, []int{89, 111}) {
		t.Errorf("shares %v, want 89, 111: the gain is 11 %%", got)
	}
}

func TestUploadCountsForFederated(t *testing.T) {
	clients := workers(3)
	clients[2].Data = 10
	b, err := New(clients, Options{GlobalBatch: 110, Allocator: Federated})
	if err != nil {
		t.Fatal(err)
	}
	var s Shares
	for k := range int64(20) {
		s = b.Next(k)
		var reports []Report
		for i, c := range clients {
			reports = append(reports, Report{
				Worker: c.Name, Generation: 1, Iteration: k, BatchSize: s.BatchSizes[i],
				Compute: time.Duration(s.BatchSizes[i]) * 10 * time.Millisecond, Communicate: []time.Duration{400, 0, 0}[i] * time.Millisecond,
			})
		}
		if err := b.Observe(reports); err != nil {
			t.Fatal(err)
		}
	}
	// 30 x 10 + 400 = 70 x 10, and 10 is all that the third has.
	if !slices.Equal(s.BatchSizes, []int{30, 70, 10}) {
		t.Errorf("shares %v, want 30, 70, 10", s.BatchSizes)
	}
}

func TestOutOfMemoryIsBackedOffFrom(t *testing.T) {
	b, err := New(workers(2), Options{GlobalBatch: 200, Allocator: GPU})
	if err != nil {
		t.Fatal(err)
	}
	burst := 0
	for k := range int64(200) {
		s := b.Next(k)
		var reports []Report
		for i, w := range b.Workers() {
			x := s.BatchSizes[i]
			r := Report{Worker: w.Name, Generation: 1, Iteration: k, BatchSize: x, Compute: time.Duration(x) * time.Millisecond}
			if i == 0 {
				r.Compute /= 4
				if x > 120 {
					r.OutOfMemory, r.Compute = true, 0
					burst++
				}
			}
			reports = append(reports, r)
		}
		if err := b.Observe(reports); err != nil {
			t.Fatal(err)
		}
	}
	if s := b.Next(200).BatchSizes; s[0] < 100 || s[0] > 120 || burst > 8 {
		t.Errorf("shares %v after running out of memory %d times; the limit is 120", s, burst)
	}
}

func TestNonsenseIsRefused(t *testing.T) {
	b, err := New(workers(2), Options{GlobalBatch: 20})
	if err != nil {
		t.Fatal(err)
	}
	good := Report{Worker: "rank0", Generation: 1, BatchSize: 10, Compute: time.Second}
	for name, c := range map[string]struct {
		change func(*Report)
		want   error
	}{
		"year":        {func(r *Report) { r.Compute = 365 * 24 * time.Hour }, ErrInvalid},
		"negative":    {func(r *Report) { r.Compute = -1 }, ErrInvalid},
		"no time":     {func(r *Report) { r.Compute = 0 }, ErrInvalid},
		"upload":      {func(r *Report) { r.Communicate = -1 }, ErrInvalid},
		"batch":       {func(r *Report) { r.BatchSize = -1 }, ErrInvalid},
		"iteration":   {func(r *Report) { r.Iteration = -1 }, ErrInvalid},
		"cpu":         {func(r *Report) { r.CPU = math.NaN() }, ErrInvalid},
		"memory":      {func(r *Report) { r.Memory = math.Inf(1) }, ErrInvalid},
		"generation":  {func(r *Report) { r.Generation = 2 }, ErrStale},
		"worker":      {func(r *Report) { r.Worker = "nobody" }, ErrUnknownWorker},
		"first again": {func(*Report) {}, nil},
		"duplicate":   {func(*Report) {}, ErrDuplicate},
	} {
		if name == "first again" || name == "duplicate" {
			continue
		}
		r := good
		c.change(&r)
		if err := b.Observe([]Report{r}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if err := b.Observe([]Report{good, good}); !errors.Is(err, ErrDuplicate) {
		t.Errorf("two reports of one iteration: %v", err)
	}
	if v := b.known["rank0"].Rows; len(v) != 1 {
		t.Errorf("%d rows, want the good report's", len(v))
	}
}

func TestWhatCannotBeIsRefused(t *testing.T) {
	w := workers(2)
	for name, c := range map[string]struct {
		workers []Worker
		o       Options
		want    error
	}{
		"no workers": {nil, Options{GlobalBatch: 1}, ErrInvalid},
		"no batch":   {w, Options{}, ErrInvalid},
		"twice":      {[]Worker{w[0], w[0]}, Options{GlobalBatch: 10}, ErrInvalid},
		"min":        {[]Worker{{Name: "a", Min: 6}, {Name: "b", Min: 6}}, Options{GlobalBatch: 10}, ErrInfeasible},
		"max":        {[]Worker{{Name: "a", Max: 4}, {Name: "b", Data: 4}}, Options{GlobalBatch: 10}, ErrInfeasible},
		"buckets":    {[]Worker{{Name: "a", Buckets: []int{4, 8}}, {Name: "b", Buckets: []int{4, 8}}}, Options{GlobalBatch: 10}, ErrInfeasible},
		"allocator":  {w, Options{GlobalBatch: 10, Allocator: "magic"}, ErrInvalid},
		"predictor":  {w, Options{GlobalBatch: 10, Predictor: "oracle"}, ErrInvalid},
		"threshold":  {w, Options{GlobalBatch: 10, Threshold: math.NaN()}, ErrInvalid},
	} {
		if _, err := New(c.workers, c.o); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestChangeKeepsWhatIsKnown(t *testing.T) {
	b, err := New(workers(3), Options{GlobalBatch: 90})
	if err != nil {
		t.Fatal(err)
	}
	for k := range int64(20) {
		iterate(t, b, k, []float64{10, 20, 60})
	}
	if err := b.Change(workers(2)); err != nil {
		t.Fatal(err)
	}
	if s := b.Next(20); s.Generation != 2 || !slices.Equal(s.BatchSizes, []int{30, 60}) {
		t.Errorf("shares %+v after the third left, want 30, 60 of generation 2", s)
	}
	if err := b.Change(nil); !errors.Is(err, ErrInvalid) || b.Generation() != 2 {
		t.Errorf("no workers: %v, generation %d", err, b.Generation())
	}
}

func TestAskedAgainTheSameVector(t *testing.T) {
	b, err := New(workers(2), Options{GlobalBatch: 30})
	if err != nil {
		t.Fatal(err)
	}
	first := iterate(t, b, 0, []float64{10, 20})
	second := iterate(t, b, 1, []float64{10, 20})
	if slices.Equal(first.BatchSizes, second.BatchSizes) {
		t.Fatal("the shares did not move")
	}
	if got := b.Next(0); !slices.Equal(got.BatchSizes, first.BatchSizes) {
		t.Errorf("iteration 0 asked again: %v, was %v", got, first)
	}
	got := b.Next(1)
	got.BatchSizes[0] = 99
	if again := b.Next(1); !slices.Equal(again.BatchSizes, second.BatchSizes) {
		t.Errorf("iteration 1 asked again: %v, was %v", again, second)
	}
}

// TestSumAndLimitsAlwaysHold feeds whatever comes, in any order.
func TestSumAndLimitsAlwaysHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.SampledFrom([]int{1, 7, 64, 1000, 1 << 20}).Draw(t, "total")
		draw := func() []Worker {
			var all []Worker
			for i := range rapid.IntRange(1, 5).Draw(t, "workers") {
				w := Worker{Name: fmt.Sprint("w", (i+rapid.IntRange(0, 1).Draw(t, "name")*7)%13)}
				w.Min = rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "min")
				w.Max = rapid.SampledFrom([]int{0, 0, 5, 200}).Draw(t, "max")
				w.Data = rapid.SampledFrom([]int{0, 0, 100}).Draw(t, "data")
				if rapid.IntRange(0, 3).Draw(t, "bucketed") == 0 {
					w.Buckets = []int{0, 1, 8, 16, 64, 500}
				}
				all = append(all, w)
			}
			return all
		}
		o := Options{
			GlobalBatch: total, Seed: 1,
			Allocator: rapid.SampledFrom([]string{CPU, GPU, Federated}).Draw(t, "allocator"),
			Predictor: rapid.SampledFrom(append(predictorNames[:], Auto)).Draw(t, "predictor"),
		}
		b, err := New(draw(), o)
		if err != nil {
			return
		}
		for k := range int64(rapid.IntRange(0, 12).Draw(t, "iterations")) {
			s := b.Next(k)
			if !holds(b.limits, s.BatchSizes, total) {
				t.Fatalf("iteration %d: %v of limits %v, total %d", k, s, b.limits, total)
			}
			var reports []Report
			for i, w := range b.Workers() {
				reports = append(reports, Report{
					Worker: w.Name, Generation: s.Generation, Iteration: k,
					BatchSize:   rapid.SampledFrom([]int{s.BatchSizes[i], s.BatchSizes[i], 0, 1, -5, 1 << 40, math.MaxInt}).Draw(t, "size"),
					Compute:     time.Duration(rapid.SampledFrom([]int64{1, 1e6, 1e9, 0, -1, math.MaxInt64, 24 * 3600e9}).Draw(t, "compute")),
					Communicate: time.Duration(rapid.SampledFrom([]int64{0, 1e6, 24 * 3600e9, -1}).Draw(t, "communicate")),
					CPU:         rapid.SampledFrom([]float64{0, 0.5, 1e15, math.NaN()}).Draw(t, "cpu"),
					OutOfMemory: rapid.IntRange(0, 5).Draw(t, "oom") == 0,
				})
			}
			_ = b.Observe(reports)
			if rapid.IntRange(0, 5).Draw(t, "change") == 0 {
				_ = b.Change(draw())
			}
			if rapid.IntRange(0, 3).Draw(t, "restart") == 0 {
				b = restored(t, b)
			}
		}
	})
}

func restored(t interface {
	Fatal(...any)
	Fatalf(string, ...any)
}, b *Balancer,
) *Balancer {
	text, err := b.State()
	if err != nil {
		t.Fatal(err)
	}
	r, err := Restore(text)
	if err != nil {
		t.Fatalf("restore: %v\n%.2000s", err, text)
	}
	again, err := r.State()
	if err != nil || !bytes.Equal(text, again) {
		t.Fatalf("the state of what was restored differs: %v", err)
	}
	return r
}

func TestRestoredGoesOnTheSame(t *testing.T) {
	for _, allocator := range []string{CPU, GPU} {
		b, err := New(workers(3), Options{GlobalBatch: 100, Allocator: allocator})
		if err != nil {
			t.Fatal(err)
		}
		for k := range int64(25) {
			iterate(t, b, k, []float64{10 + 3*float64(k%5), 20, 60})
		}
		r := restored(t, b)
		for k := int64(25); k < 60; k++ {
			speeds := []float64{10 + 3*float64(k%5), 20, 60 - float64(k)}
			x, y := iterate(t, b, k, speeds), iterate(t, r, k, speeds)
			if !slices.Equal(x.BatchSizes, y.BatchSizes) {
				t.Fatalf("%s, iteration %d: %v, restored %v", allocator, k, x, y)
			}
		}
		one, _ := b.State()
		two, _ := r.State()
		if !bytes.Equal(one, two) {
			t.Errorf("%s: the states differ after the same reports", allocator)
		}
	}
}

func FuzzRestore(f *testing.F) {
	for _, allocator := range []string{CPU, GPU, Federated} {
		b, err := New(workers(2), Options{GlobalBatch: 20, Allocator: allocator})
		if err != nil {
			f.Fatal(err)
		}
		for k := range int64(10) {
			iterate(f, b, k, []float64{10, 30})
		}
		text, err := b.State()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"version":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := Restore(text)
		if err != nil {
			return
		}
		if b.options.GlobalBatch > 1<<20 || len(b.workers) > 64 {
			return
		}
		for k := int64(1000); k < 1004; k++ {
			s := b.Next(k)
			if !holds(b.limits, s.BatchSizes, b.options.GlobalBatch) {
				t.Fatalf("%v does not hold", s)
			}
			for i, w := range b.workers {
				_ = b.Observe([]Report{{Worker: w.Name, Generation: s.Generation, Iteration: k, BatchSize: s.BatchSizes[i], Compute: time.Millisecond}})
			}
		}
	})
}
