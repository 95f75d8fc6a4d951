package harmony

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/cotenant/cotenant/internal/num"
	"github.com/cotenant/cotenant/internal/tensors"
	"github.com/cotenant/cotenant/place/encode"
)

// File is a trained policy as it is kept: the network, and what it was trained
// to go with.
type File struct {
	Net   *num.Scorer
	Moves Moves
	// Threshold is that of the features; the zero value is
	// encode.DefaultThreshold of where the policy is used.
	Threshold encode.Threshold
	// MaxWait is Options.MaxWait: 0 is for ever.
	MaxWait time.Duration
	// Encoder is the version of the features that the network reads; Save takes
	// 0 for that of now.
	Encoder  int
	Training Training
	// Notes are for people.
	Notes string
}

// Training says how a policy came to be, so that it can be made again. The
// zero value is that of an untrained one.
type Training struct {
	// Data is a hash of what was learned from, as "sha256:..."; files and models
	// have their own.
	Data string `json:"data,omitempty"`
	// Seeds are those of training; validation seeds are derived from them.
	Seeds []uint64 `json:"seeds,omitempty"`
	// Command trains the same policy again.
	Command string `json:"command,omitempty"`
}

// MaxFileSize is what a policy file stays below, in bytes.
const MaxFileSize = tensors.MaxPolicy

var fileFormat = tensors.Format{
	Name: "cotenant-harmony-policy",
	// Format 1 has no threshold.
	Versions: map[string]int{"format_version": 2, "encoder_version": encode.JobsVersion},
	What:     "a Cotenant policy file for jobs", Make: "write one with `cotenant train jobs --out FILE`", Again: "train again",
}

// Save writes a policy. The same policy gives the same bytes. It is an error
// where the network is not of the shape that the encoder of now feeds, holds a
// number that is not finite, or is too large for MaxFileSize.
func Save(w io.Writer, f *File) error {
	if f.Encoder != 0 && f.Encoder != encode.JobsVersion {
		return fmt.Errorf("policy of encoder version %d: this program writes version %d; train again", f.Encoder, encode.JobsVersion)
	}
	if err := f.check(); err != nil {
		return fmt.Errorf("policy to save: %w", err)
	}
	metadata := map[string]string{"max_wait": f.MaxWait.String(), "notes": f.Notes}
	for key, v := range map[string]any{"shape": f.Net.Shape, "moves": f.Moves, "threshold": f.Threshold, "training": f.Training} {
		text, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("%s of the policy to save: %w", key, err)
		}
		metadata[key] = string(text)
	}
	var t tensors.Writer
	if err := t.Scorer("", f.Net); err != nil {
		return err
	}
	return t.SavePolicy(w, fileFormat, metadata)
}

// check is what holds of all files, written or read.
func (f *File) check() error {
	s := f.Net.Shape
	if s.Features != encode.Features || s.Context != encode.Contexts {
		return fmt.Errorf("network of %d features and %d of context; encoder version %d has %d and %d: train again", s.Features, s.Context, encode.JobsVersion, encode.Features, encode.Contexts)
	}
	m := f.Moves
	for _, v := range []float64{m.Fade, m.Horizon, m.Welcome} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("moves %+v: a number is not finite", m)
		}
	}
	if m.Fade < 0 || m.Horizon <= 0 && m != (Moves{}) {
		return fmt.Errorf("moves %+v: fade must not be negative, and the horizon is a number of seconds above 0", m)
	}
	h := f.Threshold
	if sum := h.Free + h.Queued + h.Fall + h.Apart + h.Ages; math.IsNaN(sum) || math.IsInf(sum, 0) || h.Fall < 0 || h.Ages < 0 {
		return fmt.Errorf("threshold %+v: its numbers are finite, and fall and ages are at least 0", h)
	}
	if f.MaxWait < 0 {
		return fmt.Errorf("max wait %s is negative; 0 is for ever", f.MaxWait)
	}
	return nil
}

// Load reads what Save wrote. Any other file (tensors.ErrForeign), a damaged
// one, one by a newer program and one for features that are no longer made are
// errors that say so and what to do.
func Load(r io.Reader) (*File, error) {
	t, err := tensors.Read(r, fileFormat)
	if err != nil {
		return nil, err
	}
	f := &File{Notes: t.Metadata["notes"]}
	if f.Encoder, err = strconv.Atoi(t.Metadata["encoder_version"]); err != nil || f.Encoder != encode.JobsVersion {
		return nil, fmt.Errorf("encoder_version %s: this program makes features of version %d; train it again (%s), or use the program that it was trained with", t.Metadata["encoder_version"], encode.JobsVersion, t.Command("cotenant train jobs"))
	}
	if f.MaxWait, err = time.ParseDuration(t.Metadata["max_wait"]); err != nil {
		return nil, fmt.Errorf("max_wait: %w; train again", err)
	}
	var shape num.ScorerShape
	parts := map[string]any{"shape": &shape, "moves": &f.Moves, "threshold": &f.Threshold, "training": &f.Training}
	if t.Metadata["format_version"] == "1" {
		f.Threshold = encode.Fixed(0.3)
		delete(parts, "threshold")
	}
	for key, v := range parts {
		if err := json.Unmarshal([]byte(t.Metadata[key]), v); err != nil {
			return nil, fmt.Errorf("%s %q: %w; train again", key, t.Metadata[key], err)
		}
	}
	if f.Net, err = t.Scorer("", shape); err != nil {
		return nil, err
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	return f, t.Finish()
}
