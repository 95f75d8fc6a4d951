package metis

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/cotenant/cotenant/internal/num"
	"github.com/cotenant/cotenant/internal/tensors"
	"github.com/cotenant/cotenant/place/encode"
)

// untrained is a policy that goes by its priors alone: by greedy's rule.
func untrained(tb testing.TB) *File {
	tb.Helper()
	f := &File{Notes: "untrained: it follows greedy"}
	node, part, turn := Shapes(20)
	for seed, n := range []struct {
		to    **num.Scorer
		shape num.ScorerShape
	}{{&f.Nets.Node, node}, {&f.Nets.Part, part}, {&f.Nets.Turn, turn}} {
		var err error
		if *n.to, err = num.NewScorer(n.shape, num.Rand(uint64(seed))); err != nil {
			tb.Fatal(err)
		}
	}
	return f
}

// shaken is a policy whose every weight was drawn: its decisions follow from
// all features.
func shaken(tb testing.TB, seed uint64) *File {
	tb.Helper()
	f := untrained(tb)
	rng := num.Rand(seed)
	for _, net := range []*num.Scorer{f.Nets.Node, f.Nets.Part} {
		for _, x := range net.Tensors() {
			for i := range x.Data {
				x.Data[i] = 0.3 * float32(rng.NormFloat64())
			}
		}
		net.Rescale(2, 3)
	}
	return f
}

func saved(tb testing.TB, f *File) []byte {
	tb.Helper()
	var b bytes.Buffer
	if err := Save(&b, f); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func TestShippedLoads(t *testing.T) {
	for _, trained := range []string{Embedded, Table} {
		shipped := shippedEmbedded
		if trained == Table {
			shipped = shippedTable
		}
		shippedLoads(t, trained, shipped)
	}
	if _, err := Shipped("moon"); err == nil || !strings.Contains(err.Error(), "embedded, table") {
		t.Errorf("a policy trained on the moon: %v", err)
	}
}

func shippedLoads(t *testing.T, trained string, shipped []byte) {
	t.Helper()
	f, err := Shipped(trained)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(saved(t, f), shipped) {
		t.Error("saved again, the bytes differ")
	}
}

func TestPoliciesSurviveAFile(t *testing.T) {
	f := shaken(t, 3)
	f.Divide, f.Parts, f.Refresh = Even, 3, 0.125
	f.Training = Training{
		Data: "sha256:00ff", Source: "measured by somebody, Apache-2.0", Command: "cotenant train services --seed 1",
		Batches: Seeds{1, 1 << 63}, Validation: Seeds{7, 7},
	}
	f.Notes = "two\nlines, \"quoted\""
	back := survive(t, f)
	if back.Encoder != encode.ServicesVersion {
		t.Errorf("encoder version is %d, want %d", back.Encoder, encode.ServicesVersion)
	}
	// One that was trained flat has no use for a network that chooses parts.
	f.Divide, f.Nets.Part = Flat, nil
	survive(t, f)
	if !f.Training.Batches.Has(1<<63) || f.Training.Batches.Has(0) {
		t.Error("seeds end at their last")
	}
}

func survive(t *testing.T, f *File) *File {
	t.Helper()
	file := saved(t, f)
	back, err := Load(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(file, saved(t, back)) {
		t.Error("saved again, the bytes differ")
	}
	if !reflect.DeepEqual(f.Nets.Node.Tensors(), back.Nets.Node.Tensors()) ||
		f.Nets.Part != nil && !reflect.DeepEqual(f.Nets.Part.Tensors(), back.Nets.Part.Tensors()) {
		t.Error("a network differs")
	}
	same := *back
	same.Nets, same.Encoder = f.Nets, 0
	if !reflect.DeepEqual(f, &same) {
		t.Errorf("saved %+v, loaded %+v", f, back)
	}
	return back
}

func TestSaveRefusesWhatLoadWould(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*File)
		want   string
	}{
		"number":   {func(f *File) { f.Nets.Part.Tensors()[1].Data[0] = float32(math.NaN()) }, "tensor part.context.w is NaN"},
		"no net":   {func(f *File) { f.Nets.Node = nil }, "chooses nodes is missing"},
		"no parts": {func(f *File) { f.Nets.Part = nil }, "chooses parts is missing"},
		"swapped":  {func(f *File) { f.Nets.Part = f.Nets.Node }, "network part of"},
		"divide":   {func(f *File) { f.Divide = "thirds" }, `"thirds" is none of`},
		"parts":    {func(f *File) { f.Parts = 1 }, "parts 1"},
		"refresh":  {func(f *File) { f.Refresh = math.Inf(1) }, "refresh"},
		"seeds":    {func(f *File) { f.Training.Batches.First = 1 }, "last comes before"},
		"encoder":  {func(f *File) { f.Encoder = encode.ServicesVersion + 1 }, "train again"},
		"size":     {func(f *File) { f.Notes = strings.Repeat("x", tensors.MaxPolicy) }, "ConfigMap"},
		"shape": {func(f *File) {
			s, _, _ := Shapes(1)
			s.Features++
			f.Nets.Node, _ = num.NewScorer(s, num.Rand(1))
		}, "features"},
	} {
		f := untrained(t)
		c.change(f)
		var b bytes.Buffer
		err := Save(&b, f)
		if err == nil || !strings.Contains(err.Error(), c.want) || b.Len() > 0 {
			t.Errorf("%s: error is %v after %d bytes, want %q in it", name, err, b.Len(), c.want)
		}
	}
}

func TestLoadSaysWhatIsWrong(t *testing.T) {
	good := saved(t, untrained(t))
	if len(good) > 150_000 {
		t.Errorf("a policy has %d bytes", len(good))
	}
	change := func(old, with string) []byte {
		b := bytes.Replace(good, []byte(old), []byte(with), 1)
		if bytes.Equal(b, good) {
			t.Fatalf("%q is not in the file", old)
		}
		return b
	}
	flipped := bytes.Clone(good)
	flipped[len(flipped)-3] ^= 1
	var model bytes.Buffer
	other := fileFormat
	other.Name = "cotenant-harmony-policy"
	var w tensors.Writer
	if err := w.Save(&model, other, nil); err != nil {
		t.Fatal(err)
	}
	version := fmt.Sprintf(`"encoder_version":"%d"`, encode.ServicesVersion)
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"empty":          {nil, "not a Cotenant policy file for services; write one with `cotenant train services --out FILE`"},
		"text":           {[]byte("redis,mxnet\n4,5\n"), "not a Cotenant policy file"},
		"one for jobs":   {model.Bytes(), "not a Cotenant policy file for services"},
		"cut header":     {good[:100], "truncated"},
		"cut data":       {good[:len(good)-5], "truncated"},
		"one bit":        {flipped, "checksum"},
		"newer":          {change(`"format_version":"1"`, `"format_version":"2"`), "format_version 2 is newer"},
		"newer features": {change(version, `"encoder_version":"9"`), "encoder_version 9 is newer"},
		"old features":   {reseal(change(version, `"encoder_version":"1"`)), "train it again (cotenant train services"},
		"no features":    {reseal(change(version, `"encoder_version":"0"`)), "is not a version"},
		"options":        {reseal(change(`\"divide\":\"\"`, `\"divide\":1234`)), "options"},
		"divide":         {reseal(change(`\"divide\":\"\",\"parts\"`, `\"divide\":\"x\",\"part\"`)), "divide"},
		"no node":        {reseal(change(`\"node\":{`, `\"nude\":{`)), "chooses nodes is missing"},
		"no part":        {reseal(change(`\"part\":{`, `\"port\":{`)), "chooses parts is missing"},
		"shape":          {reseal(change(`\"hidden\":[64,64]`, `\"hidden\":[64,65]`)), "want shape [64 65]"},
		"huge":           {reseal(change(`\"hidden\":[64,64]`, `\"hidden\":[99999]`)), "more than"},
		"no layer":       {reseal(change(`\"hidden\":[64,64]`, `\"hidden\":[     ]`)), "layer"},
		"tensor":         {reseal(change(`"part.value.w"`, `"part.value.v"`)), `"part.value.w" is missing`},
	} {
		_, err := Load(bytes.NewReader(c.file))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error is %v, want %q in it", name, err, c.want)
		}
		if want := strings.Contains(c.want, "not a Cotenant"); errors.Is(err, tensors.ErrForeign) != want {
			t.Errorf("%s: %v is foreign: %v, want %v", name, err, !want, want)
		}
	}
	for n := 0; n < len(good); n += 997 {
		if _, err := Load(bytes.NewReader(good[:n])); err == nil {
			t.Fatalf("cut to %d of %d bytes, it loads", n, len(good))
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
	u := untrained(f)
	file := saved(f, u)
	f.Add(file)
	f.Add(file[:len(file)/2])
	node, part, turn := Shapes(1)
	node.Hidden, part.Hidden, turn.Hidden = []int{2}, []int{2}, []int{2} // small seeds are mutated faster
	u.Nets.Node, _ = num.NewScorer(node, num.Rand(1))
	u.Nets.Turn, _ = num.NewScorer(turn, num.Rand(1))
	u.Nets.Part, _ = num.NewScorer(part, num.Rand(1))
	f.Add(saved(f, u))
	f.Fuzz(func(t *testing.T, file []byte) {
		p, err := Load(bytes.NewReader(reseal(file)))
		if err != nil {
			return
		}
		var pass num.Pass
		pass.Score(p.Nets.Node, num.New(2, encode.ServiceFeatures), make([]float32, encode.ServiceContexts))
		if _, err := Load(bytes.NewReader(saved(t, p))); err != nil {
			t.Fatalf("what was loaded and saved does not load: %v", err)
		}
	})
}
