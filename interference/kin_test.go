package interference

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"gonum.org/v1/gonum/mat"
)

// pairSamples are jobs that share devices two by two: families of programs at
// several batch sizes, which suffer and hurt the more the larger they are.
// That is what kin can learn and a network of a hundred samples cannot.
func pairSamples(classes ...string) []history.Sample {
	type program struct {
		name           string
		suffers, hurts float64
	}
	var all []program
	for f, family := range []string{"cnn", "rnn", "vit"} {
		for size := range 4 {
			all = append(all, program{
				family + "/" + strconv.Itoa(16<<size), 0.5 + 0.2*float64(f), 0.3 + 0.15*float64(size),
			})
		}
	}
	rng := rand.New(rand.NewPCG(7, 7))
	var samples []history.Sample
	for k, class := range classes {
		for i, a := range all {
			for _, b := range all[:i+1] {
				c := cluster.Colocation{a.name: 1}
				c[b.name]++
				for _, p := range [][2]program{{a, b}, {b, a}} {
					v := math.Exp(-p[0].suffers*p[1].hurts*float64(k+1) + 0.01*rng.NormFloat64())
					s := history.Sample{Class: class, Scope: history.ScopeDevice, Colocation: c, Workload: p[0].name, Metric: history.Rate, Value: 10 * v, Alone: 10}
					samples = append(samples, s)
					if a == b {
						break
					}
				}
			}
		}
	}
	return samples
}

func TestKinPredictPairsThatNobodyMeasured(t *testing.T) {
	samples := pairSamples("v100")
	var fit, held []history.Sample
	rng := rand.New(rand.NewPCG(3, 1))
	out := map[string]bool{}
	for _, s := range samples {
		k := s.Colocation.Key()
		if _, seen := out[k]; !seen {
			out[k] = rng.Float64() < 0.2
		}
		if out[k] {
			held = append(held, s)
		} else {
			fit = append(fit, s)
		}
	}
	m, err := Fit(KindNeural, fit, Options{Seed: 1, Steps: 300, PredictedOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	k := m.(*fitted).core.(*neural).kin
	if k == nil || k.networks[0] > 0.5 {
		t.Fatalf("the networks count for %+v: kin should know better", k)
	}
	e, err := Evaluate(m, history.Rate, held)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("error %.4f of %d cells, 90 %% intervals hold %.2f", e.Mean, e.Cells, e.Coverage)
	if e.Mean > 0.03 || e.Coverage < 0.75 {
		t.Errorf("error %.4f, 90 %% intervals hold %.2f", e.Mean, e.Coverage)
	}
}

func TestFamily(t *testing.T) {
	for _, c := range []struct {
		a, b string
		kin  bool
	}{
		{"resnet-50/32", "resnet-50/64", true},
		{"resnet-50/32/ps", "resnet-50/64/ps", true},
		{"resnet-50/32", "resnet-50/64/ps", false},
		{"resnet-50/32", "resnet-18/32", false},
		{"redis", "redis-2", false},
		{"8/16", "8/32", true},
		{"16", "32", false},
		{"a/0", "a/1", false},
		{"a/x", "a/y", false},
	} {
		if got := kinship([]string{c.a, c.b}).At(0, 1) > 0; got != c.kin {
			t.Errorf("%s and %s are kin: %v", c.a, c.b, got)
		}
	}
}

// The table is the posterior mean of a Gaussian process over cells: the same
// by the textbook's formula in the space of functions (Rasmussen and Williams,
// 2006, equations 2.25 and 2.26), and so is what it says of a cell whose whole
// co-location was left out.
func TestKinAgreesWithGaussianProcess(t *testing.T) {
	d, err := gather(append(pairSamples("v100")[:40], someSamples("v100")...), []history.Metric{history.Rate})
	if err != nil {
		t.Fatal(err)
	}
	n := len(d.workloads)
	k := &kin{width: n}
	cells := k.cells(d, 0, 0)
	s := kinship(d.workloads)
	old := kinNoise
	defer func() { kinNoise = old }()
	const noise = 0.01
	kinNoise = []float64{noise}
	p, ok := fitKin(kinPrior(d.workloads), cells)
	if !ok {
		t.Fatal("no posterior")
	}
	cov := func(a, b kinCell) float64 {
		wa, wb := a.at[0]/(n+1), b.at[0]/(n+1)
		sum := 0.0
		for i := range len(a.at) - 1 {
			for j := range len(b.at) - 1 {
				u, v := a.at[i]%(n+1), b.at[j]%(n+1)
				sum += a.x[i] * b.x[j] * s.At(u, v)
			}
		}
		return constantVariance + targetVariance*s.At(wa, wb) + (neighbourVariance+pairVariance*s.At(wa, wb))*sum
	}
	predict := func(train []kinCell, at kinCell) (mean, std float64) {
		c, y := mat.NewSymDense(len(train), nil), mat.NewVecDense(len(train), nil)
		to := mat.NewVecDense(len(train), nil)
		for i, a := range train {
			y.SetVec(i, a.y)
			to.SetVec(i, cov(a, at))
			for j := range i + 1 {
				c.SetSym(i, j, cov(a, train[j]))
			}
			c.SetSym(i, i, c.At(i, i)+noise)
		}
		var chol mat.Cholesky
		if !chol.Factorize(c) {
			t.Fatal("not positive definite")
		}
		var solved, alpha mat.VecDense
		if chol.SolveVecTo(&solved, to) != nil || chol.SolveVecTo(&alpha, y) != nil {
			t.Fatal("no solution")
		}
		return mat.Dot(to, &alpha), math.Sqrt(cov(at, at) - mat.Dot(to, &solved))
	}
	for i := 0; i < len(cells); i += 5 {
		c := cells[i]
		table := 0.0
		for j, at := range c.at {
			table += c.x[j] * p.mean.AtVec(at)
		}
		if mean, _ := predict(cells, c); abs(mean-table) > 1e-6 {
			t.Errorf("cell %d: %g by the table, %g by the process", i, table, mean)
		}
		var rest []kinCell
		for _, o := range cells {
			if o.row != c.row {
				rest = append(rest, o)
			}
		}
		mean, std := predict(rest, c)
		if abs(mean-p.left[i]) > 1e-6 || abs(std-p.leftStd[i]) > 1e-6 {
			t.Errorf("cell %d left out: %g +- %g by the shortcut, %g +- %g by the process", i, p.left[i], p.leftStd[i], mean, std)
		}
	}
}

func TestKinSurviveAFile(t *testing.T) {
	m, err := Fit(KindNeural, pairSamples("k80", "v100"), Options{Seed: 1, Steps: 60})
	if err != nil {
		t.Fatal(err)
	}
	if m.(*fitted).core.(*neural).kin == nil {
		t.Fatal("no kin: the test shows nothing")
	}
	file := saved(t, m)
	back, err := Load(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(file, saved(t, back)) {
		t.Error("saved again, the bytes differ")
	}
	c := []cluster.Colocation{{"cnn/16": 1, "rnn/128": 2}, {"vit/16": 3}, {"vit/32": 1}}
	for i, row := range m.Predict("k80", history.Rate, c) {
		for j, e := range row {
			if got := back.Predict("k80", history.Rate, c)[i][j]; got != e {
				t.Errorf("%s: %+v, read again %+v", c[i].Key(), e, got)
			}
		}
	}
	// A file of version 1 is one without kin.
	old := reseal(bytes.Replace(saved(t, withoutKin(t)), []byte(`"format_version":"2"`), []byte(`"format_version":"1"`), 1))
	if _, err := Load(bytes.NewReader(old)); err != nil {
		t.Errorf("version 1: %v", err)
	}
}

func withoutKin(t *testing.T) Model {
	t.Helper()
	m, err := Fit(KindNeural, someSamples(), Options{Steps: 60})
	if err != nil {
		t.Fatal(err)
	}
	m.(*fitted).core.(*neural).kin = nil
	return m
}
