package harmony

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
	"time"

	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/internal/num"
	"github.com/cotenant/cotenant/internal/tensors"
	"github.com/cotenant/cotenant/place/encode"
)

// untrained is a policy whose numbers are its defaults.
func untrained(tb testing.TB) *File {
	tb.Helper()
	net, err := num.NewScorer(Shape(20), num.Rand(1))
	if err != nil {
		tb.Fatal(err)
	}
	return &File{Net: net, Moves: DefaultMoves, Notes: "untrained: it follows greedy-wait"}
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
	for scope, file := range map[history.Scope][]byte{history.ScopeDevice: shippedDevice, history.ScopeNode: shippedNode} {
		f, err := Shipped(scope)
		if err != nil {
			t.Fatalf("%s: %v; docs/train.md says how to train it", scope, err)
		}
		if !bytes.Equal(saved(t, f), file) {
			t.Errorf("%s: saved again, the bytes differ", scope)
		}
		if f.Training.Command == "" {
			t.Errorf("%s: does not say how it was trained", scope)
		}
	}
}

func TestPoliciesSurviveAFile(t *testing.T) {
	f := untrained(t)
	f.MaxWait = 36 * time.Hour
	f.Moves = Moves{Fade: 0.25, Horizon: 1800, Welcome: 0.125}
	f.Threshold = encode.Threshold{Free: 0.5, Queued: -0.25, Fall: 2}
	f.Training = Training{Data: "sha256:00ff", Seeds: []uint64{1, 1 << 63}, Command: "cotenant train jobs --seed 1"}
	f.Notes = "two\nlines, \"quoted\""
	rng := num.Rand(3)
	for _, x := range f.Net.Tensors() {
		for i := range x.Data {
			x.Data[i] = float32(rng.NormFloat64())
		}
	}
	f.Net.Rescale(2, 3)
	file := saved(t, f)
	back, err := Load(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(file, saved(t, back)) {
		t.Error("saved again, the bytes differ")
	}
	if back.Encoder != encode.JobsVersion {
		t.Errorf("encoder version is %d, want %d", back.Encoder, encode.JobsVersion)
	}
	if !reflect.DeepEqual(f.Net.Tensors(), back.Net.Tensors()) {
		t.Error("the network differs")
	}
	back.Net, back.Encoder = f.Net, 0
	if !reflect.DeepEqual(f, back) {
		t.Errorf("saved %+v, loaded %+v", f, back)
	}
}

// Files of before thresholds were part of them go by the one of then.
func TestOldFilesLoad(t *testing.T) {
	f := untrained(t)
	f.Threshold = encode.Threshold{Free: 0.5, Queued: 0.5}
	file := reseal(bytes.Replace(saved(t, f), []byte(`"format_version":"2"`), []byte(`"format_version":"1"`), 1))
	back, err := Load(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	if back.Threshold != encode.Fixed(0.3) {
		t.Errorf("threshold %+v; want .3 whatever the queue", back.Threshold)
	}
}

func TestSaveRefusesWhatLoadWould(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*File)
		want   string
	}{
		"number":  {func(f *File) { f.Net.Tensors()[1].Data[0] = float32(math.NaN()) }, "is NaN"},
		"moves":   {func(f *File) { f.Moves.Horizon = 0 }, "horizon"},
		"fade":    {func(f *File) { f.Moves.Fade = math.Inf(1) }, "not finite"},
		"thresh":  {func(f *File) { f.Threshold.Fall = -1 }, "fall"},
		"wait":    {func(f *File) { f.MaxWait = -1 }, "negative"},
		"encoder": {func(f *File) { f.Encoder = encode.JobsVersion + 1 }, "train again"},
		"size":    {func(f *File) { f.Notes = strings.Repeat("x", MaxFileSize) }, "ConfigMap"},
		"shape": {func(f *File) {
			s := Shape(1)
			s.Features++
			f.Net, _ = num.NewScorer(s, num.Rand(1))
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
	if len(good) > 100_000 {
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
	version := fmt.Sprintf(`"encoder_version":"%d"`, encode.JobsVersion)
	other := fileFormat
	other.Name = "cotenant-interference-model"
	var w tensors.Writer
	if err := w.Save(&model, other, nil); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"empty":          {nil, "not a Cotenant policy file for jobs; write one with `cotenant train jobs --out FILE`"},
		"text":           {[]byte("job,workload\na,lm/80\n"), "not a Cotenant policy file"},
		"a model":        {model.Bytes(), "not a Cotenant policy file"},
		"cut header":     {good[:100], "truncated"},
		"cut data":       {good[:len(good)-5], "truncated"},
		"one bit":        {flipped, "checksum"},
		"newer":          {change(`"format_version":"2"`, `"format_version":"3"`), "format_version 3 is newer"},
		"newer features": {change(version, `"encoder_version":"9"`), "encoder_version 9 is newer"},
		"no features":    {reseal(change(version, `"encoder_version":"0"`)), "is not a version"},
		"wait":           {reseal(change(`"max_wait":"0s"`, `"max_wait":"-1"`)), "max_wait"},
		"moves":          {reseal(change(`\"horizon\":3600`, `\"horizon\":-600`)), "horizon"},
		"shape":          {reseal(change(`\"hidden\":[48,48]`, `\"hidden\":[48,49]`)), "want shape [48 49]"},
		"huge":           {reseal(change(`\"hidden\":[48,48]`, `\"hidden\":[99999]`)), "more than"},
		"no layer":       {reseal(change(`\"hidden\":[48,48]`, `\"hidden\":[     ]`)), "layer"},
		"tensor":         {reseal(change(`"candidate.w"`, `"candidate.v"`)), `"candidate.w" is missing`},
	} {
		_, err := Load(bytes.NewReader(c.file))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error is %v, want %q in it", name, err, c.want)
		}
		if want := strings.Contains(c.want, "not a Cotenant"); errors.Is(err, tensors.ErrForeign) != want {
			t.Errorf("%s: %v is foreign: %v, want %v", name, err, !want, want)
		}
	}
	for n := 0; n < len(good); n += 97 {
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
	small := Shape(1)
	small.Hidden = []int{2} // small seeds are mutated faster
	var err error
	if u.Net, err = num.NewScorer(small, num.Rand(1)); err != nil {
		f.Fatal(err)
	}
	f.Add(saved(f, u))
	f.Fuzz(func(t *testing.T, file []byte) {
		p, err := Load(bytes.NewReader(reseal(file)))
		if err != nil {
			return
		}
		var pass num.Pass
		pass.Score(p.Net, num.New(2, encode.Features), make([]float32, encode.Contexts))
		if _, err := Load(bytes.NewReader(saved(t, p))); err != nil {
			t.Fatalf("what was loaded and saved does not load: %v", err)
		}
	})
}
