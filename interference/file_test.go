package interference

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

// someSamples are made up: what a task loses grows with the tasks beside it.
func someSamples(classes ...string) []history.Sample {
	if len(classes) == 0 {
		classes = []string{""}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	names := []string{"db", "web", "zip"}
	hurt := []float64{0.1, 0.2, 0.05}
	var samples []history.Sample
	for k, class := range classes {
		for db := range 4 {
			for web := range 4 {
				for zip := range 3 {
					c := cluster.Colocation{}
					pressure := 0.0
					for i, n := range []int{db, web, zip} {
						if n > 0 {
							c[names[i]] = n
							pressure += hurt[i] * float64(n)
						}
					}
					for i, w := range c.Workloads() {
						v := 1 / (1 + pressure*(1+float64(i+k)/3) - hurt[i]) * (1 + 0.02*rng.NormFloat64())
						if c.Alone() {
							v = 1
						}
						s := history.Sample{Class: class, Colocation: c, Workload: w, Metric: history.Rate, Value: 100 * v, Alone: 100}
						if i == 0 {
							s.Repeats, s.Spread = 4, 3
						}
						samples = append(samples, s)
						if w == "web" {
							samples = append(samples, history.Sample{Class: class, Colocation: c, Workload: w, Metric: history.P99, Value: 0.01 / v, Alone: 0.01})
						}
					}
				}
			}
		}
	}
	return samples
}

func saved(tb testing.TB, m Model) []byte {
	tb.Helper()
	var b bytes.Buffer
	if err := Save(&b, m); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

var probes = []cluster.Colocation{{"db": 1}, {"db": 2, "web": 1}, {"web": 7, "zip": 1}, {"db": 1, "web": 1, "zip": 9}, {"mail": 1}, {}}

// sameAnswers holds two models to each other; what was measured is kept in
// single precision.
func sameAnswers(t *testing.T, a, b Model) {
	t.Helper()
	for _, class := range append(a.Classes(), "none") {
		for _, metric := range metrics {
			x, y := a.Predict(class, metric, probes), b.Predict(class, metric, probes)
			for i := range x {
				for j, e := range x[i] {
					f := y[i][j]
					close := func(p, q float64) bool { return p == q || e.Measured && abs(p-q) <= 1e-7*abs(p) }
					if !close(e.Value, f.Value) || !close(e.Std, f.Std) || e.Known != f.Known || e.Measured != f.Measured {
						t.Errorf("%s on %q, %s of %s: %+v, then %+v", a.Kind(), class, metric, probes[i].Key(), e, f)
					}
				}
			}
		}
	}
}

func abs(v float64) float64 { return max(v, -v) }

func TestModelsSurviveAFile(t *testing.T) {
	for _, kind := range Kinds() {
		for _, only := range []bool{false, true} {
			m, err := Fit(kind, someSamples("a", "b"), Options{Seed: 3, PredictedOnly: only, Steps: 100})
			if err != nil {
				t.Fatal(err)
			}
			file := saved(t, m)
			back, err := Load(bytes.NewReader(file))
			if err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			sameAnswers(t, m, back)
			if !bytes.Equal(file, saved(t, back)) {
				t.Errorf("%s: saved again, the bytes differ", kind)
			}
			if Most(back, "a") != 8 || Most(back, "b") != 8 || Most(back, "c") != 0 {
				t.Errorf("%s: most tasks %d, %d; want those of 3 db, 3 web and 2 zip, and 0 of a class nobody measured", kind, Most(back, "a"), Most(back, "b"))
			}
			if len(file) > MaxFileSize {
				t.Errorf("%s: %d bytes", kind, len(file))
			}
		}
	}
}

func TestLoadSaysWhatIsWrong(t *testing.T) {
	m, err := Fit(KindLinear, someSamples(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	good := saved(t, m)
	change := func(old, new string) []byte {
		b := bytes.Replace(good, []byte(old), []byte(new), 1)
		if bytes.Equal(b, good) {
			t.Fatalf("%q is not in the file", old)
		}
		return b
	}
	flipped := bytes.Clone(good)
	flipped[len(flipped)-3] ^= 1
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"empty":          {nil, "not a Cotenant model file"},
		"text":           {[]byte("workload,value\nredis,1\n"), "not a Cotenant model file"},
		"other tensors":  {[]byte("\x02\x00\x00\x00\x00\x00\x00\x00{}"), "not a Cotenant model file"},
		"cut header":     {good[:100], "truncated"},
		"cut data":       {good[:len(good)-5], "truncated"},
		"one bit":        {flipped, "checksum"},
		"one name":       {change(`web`, `wab`), "checksum"},
		"newer":          {change(`"format_version":"2"`, `"format_version":"3"`), "format_version 3 is newer"},
		"newer features": {change(`"encoder_version":"1"`, `"encoder_version":"7"`), "encoder_version 7 is newer"},
		"other kind":     {reseal(change(`"kind":"linear"`, `"kind":"neural"`)), "metrics"},
		"no such kind":   {reseal(change(`"kind":"linear"`, `"kind":"oracle"`)), `kind "oracle"`},
		"shape":          {reseal(change(`"shape":[1,3,4]`, `"shape":[1,4,3]`)), "want shape [1 3 4]"},
	} {
		_, err := Load(bytes.NewReader(c.file))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error is %v, want %q in it", name, err, c.want)
		}
	}
}

// reseal makes the checksum right again, so that what is behind it is tested.
func reseal(file []byte) []byte {
	mark := []byte(`"checksum":"`)
	at, blank := bytes.Index(file, mark), strings.Repeat("0", 2*sha256.Size)
	if at < 0 || at+len(mark)+len(blank) > len(file) {
		return file
	}
	at += len(mark)
	out := bytes.Clone(file)
	copy(out[at:], blank)
	sum := sha256.Sum256(out)
	hex.Encode(out[at:], sum[:])
	return out
}

func FuzzLoad(f *testing.F) {
	for _, kind := range Kinds() {
		m, err := Fit(kind, someSamples()[:12], Options{Steps: 20})
		if err != nil {
			f.Fatal(err)
		}
		if n, ok := m.(*fitted).core.(*neural); ok {
			n.members = n.members[:1] // small seeds are mutated faster
		}
		file := saved(f, m)
		f.Add(file)
		f.Add(file[:len(file)/2])
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		m, err := Load(bytes.NewReader(reseal(file)))
		if err != nil {
			return
		}
		for _, class := range m.Classes() {
			c := cluster.Colocation{}
			for _, w := range m.Workloads(class) {
				c[w] = 2
			}
			for _, metric := range metrics {
				m.Predict(class, metric, []cluster.Colocation{c})
			}
		}
	})
}
