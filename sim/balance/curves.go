package balance

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// Curve is how long one worker takes for each batch size from Lo on.
type Curve struct {
	Worker string
	Lo     int       // the least size measured
	Ms     []float64 // time of Lo, Lo+1, ... in milliseconds, without gaps
}

// Hi is the largest size measured.
func (c Curve) Hi() int { return c.Lo + len(c.Ms) - 1 }

// At is the time of a size between Lo and Hi, in milliseconds.
func (c Curve) At(size int) float64 { return c.Ms[size-c.Lo] }

// Limits of ReadCurves: a curve of more points than this is no measurement.
const (
	maxPoints = 1 << 20
	maxMs     = 1e9
)

// ReadCurves reads a CSV with the columns worker, batch and ms, in any order
// and with any others: a row is the time of one iteration of one worker at one
// batch size, in milliseconds. Repeats are averaged; sizes between two that were
// measured are interpolated. It is an error if a value is missing, not a
// number or not positive.
func ReadCurves(r io.Reader, name string) ([]Curve, error) {
	raw, err := io.ReadAll(io.LimitReader(r, 1<<28))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	in := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))))
	in.TrimLeadingSpace = true
	header, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("%s: header: %w", name, err)
	}
	column := map[string]int{}
	for i, h := range header {
		column[strings.TrimSpace(h)] = i
	}
	for _, want := range []string{"worker", "batch", "ms"} {
		if _, ok := column[want]; !ok {
			return nil, fmt.Errorf("%s: line 1: header: no column %q; it needs worker, batch, ms", name, want)
		}
	}
	type sum struct {
		total float64
		n     int
	}
	points := map[string]map[int]sum{}
	var order []string
	for n := 0; ; n++ {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		line, _ := in.FieldPos(0)
		bad := func(field, why string) error {
			return fmt.Errorf("%s: line %d: %s: %q %s", name, line, field, record[column[field]], why)
		}
		if n == maxPoints {
			return nil, fmt.Errorf("%s: more than %d rows", name, maxPoints)
		}
		worker := strings.TrimSpace(record[column["worker"]])
		size, err := strconv.Atoi(strings.TrimSpace(record[column["batch"]]))
		if err != nil || size <= 0 || size > maxPoints {
			return nil, bad("batch", "is no batch size")
		}
		ms, err := strconv.ParseFloat(strings.TrimSpace(record[column["ms"]]), 64)
		if err != nil || !(ms > 0) || ms > maxMs {
			return nil, bad("ms", "is no time in milliseconds")
		}
		if worker == "" {
			return nil, bad("worker", "is empty")
		}
		if points[worker] == nil {
			points[worker] = map[int]sum{}
			order = append(order, worker)
		}
		p := points[worker][size]
		points[worker][size] = sum{p.total + ms, p.n + 1}
	}
	if len(order) == 0 {
		return nil, fmt.Errorf("%s: no rows under the header", name)
	}
	curves := make([]Curve, len(order))
	for i, worker := range order {
		var sizes []int
		for s := range points[worker] {
			sizes = append(sizes, s)
		}
		slices.Sort(sizes)
		c := Curve{Worker: worker, Lo: sizes[0]}
		for k, s := range sizes {
			p := points[worker][s]
			ms := p.total / float64(p.n)
			if k > 0 {
				from, last := sizes[k-1], c.Ms[len(c.Ms)-1]
				for x := from + 1; x < s; x++ {
					c.Ms = append(c.Ms, last+(ms-last)*float64(x-from)/float64(s-from))
				}
			}
			c.Ms = append(c.Ms, ms)
		}
		curves[i] = c
	}
	return curves, nil
}

// Optimal are the sizes with the least longest time on known curves, found by
// walking the times upwards with the set of sums that can be reached: another
// way than the allocator's, so that each checks the other. It is an error if
// no sizes sum to the total.
func Optimal(curves []Curve, total int) (sizes []int, ms float64, err error) {
	var times []float64
	for _, c := range curves {
		times = append(times, c.Ms...)
	}
	slices.Sort(times)
	times = slices.Compact(times)
	from := func(t float64) []int { return choose(curves, total, t) }
	lo, hi := -1, len(times)-1
	if total < 0 || from(times[hi]) == nil {
		least, most := 0, 0
		for _, c := range curves {
			least, most = least+c.Lo, most+c.Hi()
		}
		return nil, 0, fmt.Errorf("global batch %d: the curves reach %d to %d", total, least, most)
	}
	for lo+1 < hi {
		if mid := (lo + hi) / 2; from(times[mid]) != nil {
			hi = mid
		} else {
			lo = mid
		}
	}
	return from(times[hi]), times[hi], nil
}

// choose finds sizes of at most t that sum to the total; nil where none do.
func choose(curves []Curve, total int, t float64) []int {
	// sums[i] are the sums that the first i workers reach, one bit each.
	sums := make([]*big.Int, len(curves)+1)
	sums[0] = big.NewInt(1)
	shifted := new(big.Int)
	for i, c := range curves {
		sums[i+1] = new(big.Int)
		for k, ms := range c.Ms {
			if ms <= t {
				sums[i+1].Or(sums[i+1], shifted.Lsh(sums[i], uint(c.Lo+k)))
			}
		}
	}
	if sums[len(curves)].Bit(total) == 0 {
		return nil
	}
	sizes := make([]int, len(curves))
	for i := len(curves) - 1; i >= 0; i-- {
		for k := len(curves[i].Ms) - 1; k >= 0; k-- {
			x := curves[i].Lo + k
			if curves[i].Ms[k] <= t && x <= total && sums[i].Bit(total-x) == 1 {
				sizes[i] = x
				break
			}
		}
		total -= sizes[i]
	}
	return sizes
}

// slowest is the longest time of the sizes, in milliseconds.
func slowest(curves []Curve, sizes []int) float64 {
	t := 0.0
	for i, s := range sizes {
		if s > 0 {
			t = math.Max(t, curves[i].At(s))
		}
	}
	return t
}
