package balance

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cotenant/cotenant/internal/num"
)

// Kinds of drawn traces.
const (
	Static    = "static"     // speeds differ, and waver by a few percent
	Shifting  = "shifting"   // each node's speed jumps every half a minute or so
	Cotenants = "co-tenants" // programs come and go; the node's CPU use tells a little ahead
)

// TraceKinds lists them.
func TraceKinds() []string { return []string{Static, Shifting, Cotenants} }

// DrawTraces draws the speeds of workers of unlike machines, a value a second.
// It is an error if the kind is unknown or a number not positive.
func DrawTraces(kind string, workers, length int, seed uint64) ([]Trace, error) {
	if !slices.Contains(TraceKinds(), kind) {
		return nil, fmt.Errorf("traces %q are none of %s", kind, strings.Join(TraceKinds(), ", "))
	}
	if workers < 1 || workers > 1<<16 || length < 1 || length > 1<<24/workers {
		return nil, fmt.Errorf("%d traces of length %d: both must be positive, and together at most %d", workers, length, 1<<24)
	}
	out := make([]Trace, workers)
	for i := range out {
		rng := num.Rand(seed, 0x7a, uint64(i))
		t := Trace{Worker: fmt.Sprint("worker", i)}
		alone := 100 * math.Exp(0.5*rng.NormFloat64())
		level, load := 1.0, 0.0
		for range length {
			switch kind {
			case Shifting:
				if rng.Float64() < 1.0/30 {
					level = 0.25 + 0.75*rng.Float64()
				}
			case Cotenants:
				// What the co-tenants use now slows the worker in the next second.
				level = 1 - 0.7*load
				if rng.Float64() < 0.1 {
					load = max(0, rng.Float64()*1.4-0.4)
				}
			}
			v := alone * level * math.Exp(0.03*rng.NormFloat64())
			t.Speed = append(t.Speed, v)
			t.CPU = append(t.CPU, min(max(0.3+0.6*load+0.02*rng.NormFloat64(), 0), 1))
			t.Memory = append(t.Memory, min(max(0.2+0.4*load+0.01*rng.NormFloat64(), 0), 1))
		}
		out[i] = t
	}
	return out, nil
}

// ReadTraces reads a CSV with the columns worker, speed, cpu and memory: a row
// is a worker's speed in samples a second and its node's CPU and memory use for
// one step, in the order of time. It is an error if a value is missing, not a
// number, negative, or a speed of 0.
func ReadTraces(r io.Reader, name string) ([]Trace, error) {
	in := csv.NewReader(io.LimitReader(r, 1<<28))
	in.TrimLeadingSpace = true
	header, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("%s: header: %w", name, err)
	}
	columns := []string{"worker", "speed", "cpu", "memory"}
	at := make([]int, len(columns))
	for k, want := range columns {
		at[k] = slices.IndexFunc(header, func(h string) bool {
			return strings.TrimSpace(strings.TrimPrefix(h, "\ufeff")) == want
		})
		if at[k] < 0 {
			return nil, fmt.Errorf("%s: line 1: header: no column %q; it needs %s", name, want, strings.Join(columns, ", "))
		}
	}
	var out []Trace
	index := map[string]int{}
	for {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		worker := strings.TrimSpace(record[at[0]])
		i, ok := index[worker]
		if !ok {
			i = len(out)
			index[worker] = i
			out = append(out, Trace{Worker: worker})
		}
		var v [3]float64
		for k := range v {
			text := strings.TrimSpace(record[at[k+1]])
			v[k], err = strconv.ParseFloat(text, 64)
			if err != nil || !(v[k] >= 0) || v[k] > 1e15 || k == 0 && v[k] == 0 {
				line, _ := in.FieldPos(at[k+1])
				return nil, fmt.Errorf("%s: line %d: %s: %q is not such a number", name, line, columns[k+1], text)
			}
		}
		out[i].Speed = append(out[i].Speed, v[0])
		out[i].CPU = append(out[i].CPU, v[1])
		out[i].Memory = append(out[i].Memory, v[2])
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no rows under the header", name)
	}
	return out, nil
}
