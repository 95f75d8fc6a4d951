package metis

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/cotenant/cotenant/internal/num"
	"github.com/cotenant/cotenant/internal/tensors"
	"github.com/cotenant/cotenant/place/encode"
)

// File is a trained policy as it is kept: the networks, and how they were
// trained to be used.
type File struct {
	// Nets: Part may be missing where Divide does without it, Turn always.
	Nets Nets
	// Divide, Parts and Refresh are those of Options in training.
	Divide  Divide
	Parts   int
	Refresh float64
	// Encoder is the version of the features that the networks read; Save takes
	// 0 for that of now.
	Encoder  int
	Training Training
	// Notes are for people.
	Notes string
}

// Training says how a policy came to be, so that it can be made again. The
// zero value is that of an untrained one.
type Training struct {
	// Data is a hash of what was learned from, as "sha256:..."; Source names
	// whose measurements these are, and their licence.
	Data   string `json:"data,omitempty"`
	Source string `json:"source,omitempty"`
	// Batches are the seeds of the task batches of training, Validation those of
	// the batches by which the best network was chosen.
	Batches    Seeds `json:"batches"`
	Validation Seeds `json:"validation"`
	// Command trains the same policy again.
	Command string `json:"command,omitempty"`
}

// Seeds are First, First+1, ... Last.
type Seeds struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
}

// Has reports whether a seed is among them.
func (s Seeds) Has(seed uint64) bool { return s.First <= seed && seed <= s.Last }

var fileFormat = tensors.Format{
	Name:     "cotenant-metis-policy",
	Versions: map[string]int{"format_version": 1, "encoder_version": encode.ServicesVersion},
	What:     "a Cotenant policy file for services", Make: "write one with `cotenant train services --out FILE`", Again: "train again",
}

// netShapes are those of the networks of a file; nil where it has none.
type netShapes struct {
	Node *num.ScorerShape `json:"node"`
	Part *num.ScorerShape `json:"part,omitempty"`
	Turn *num.ScorerShape `json:"turn,omitempty"`
}

// kept is what a file holds of Options.
type kept struct {
	Divide  Divide  `json:"divide"`
	Parts   int     `json:"parts"`
	Refresh float64 `json:"refresh"`
}

// network is one of a file's: where it and its shape are, and what the encoder of
// now feeds it. Its tensors are named after it.
type network struct {
	name  string
	net   **num.Scorer
	shape **num.ScorerShape
	want  num.ScorerShape
}

func (f *File) networks(s *netShapes) []network {
	node, part, turn := Shapes(0)
	return []network{
		{"node", &f.Nets.Node, &s.Node, node}, {"part", &f.Nets.Part, &s.Part, part}, {"turn", &f.Nets.Turn, &s.Turn, turn},
	}
}

// Save writes a policy. The same policy gives the same bytes. It is an error
// where a network is not of the shape that the encoder of now feeds or holds a
// number that is not finite, and where the file is larger than
// tensors.MaxPolicy.
func Save(w io.Writer, f *File) error {
	if f.Encoder != 0 && f.Encoder != encode.ServicesVersion {
		return fmt.Errorf("policy of encoder version %d: this program writes version %d; train again", f.Encoder, encode.ServicesVersion)
	}
	if err := f.check(); err != nil {
		return fmt.Errorf("policy to save: %w", err)
	}
	var t tensors.Writer
	var s netShapes
	for _, n := range f.networks(&s) {
		if *n.net == nil {
			continue
		}
		*n.shape = &(*n.net).Shape
		if err := t.Scorer(n.name+".", *n.net); err != nil {
			return err
		}
	}
	metadata := map[string]string{"notes": f.Notes}
	for key, v := range map[string]any{"shapes": s, "options": kept{f.Divide, f.Parts, f.Refresh}, "training": f.Training} {
		text, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("%s of the policy to save: %w", key, err)
		}
		metadata[key] = string(text)
	}
	return t.SavePolicy(w, fileFormat, metadata)
}

// check is what holds of all files, written or read.
func (f *File) check() error {
	if f.Nets.Node == nil {
		return fmt.Errorf("the network that chooses nodes is missing")
	}
	for _, n := range f.networks(&netShapes{}) {
		if *n.net == nil {
			continue
		}
		if s := (*n.net).Shape; s.Features != n.want.Features || s.Context != n.want.Context {
			return fmt.Errorf("network %s of %d features and %d of context; encoder version %d has %d and %d: train again",
				n.name, s.Features, s.Context, encode.ServicesVersion, n.want.Features, n.want.Context)
		}
	}
	if f.Nets.Part == nil && f.Divide == Hierarchy {
		return fmt.Errorf("the network that chooses parts is missing, and the policy divides by a hierarchy")
	}
	if f.Divide != Hierarchy && f.Divide != Flat && f.Divide != Even {
		return fmt.Errorf("divide %q is none of %q, %q, %q", f.Divide, Hierarchy, Flat, Even)
	}
	if f.Parts < 0 || f.Parts == 1 || f.Parts > maxParts {
		return fmt.Errorf("parts %d: 2 to %d, or 0 for the default", f.Parts, maxParts)
	}
	if !(f.Refresh >= 0) || math.IsInf(f.Refresh, 0) {
		return fmt.Errorf("refresh %g is not a share of the nodes, 0 for the default", f.Refresh)
	}
	if f.Training.Batches.Last < f.Training.Batches.First || f.Training.Validation.Last < f.Training.Validation.First {
		return fmt.Errorf("training seeds %+v, %+v: the last comes before the first", f.Training.Batches, f.Training.Validation)
	}
	return nil
}

// maxParts is far above what is of use.
const maxParts = 10_000

// Load reads what Save wrote. Any other file (tensors.ErrForeign), a damaged
// one, one by a newer program and one for features that are no longer made are
// errors that say so and what to do.
func Load(r io.Reader) (*File, error) {
	t, err := tensors.Read(r, fileFormat)
	if err != nil {
		return nil, err
	}
	f := &File{Notes: t.Metadata["notes"]}
	if f.Encoder, err = strconv.Atoi(t.Metadata["encoder_version"]); err != nil || f.Encoder != encode.ServicesVersion {
		return nil, fmt.Errorf("encoder_version %s: this program makes features of version %d; train it again (%s), or use the program that it was trained with", t.Metadata["encoder_version"], encode.ServicesVersion, t.Command("cotenant train services"))
	}
	var s netShapes
	var o kept
	for key, v := range map[string]any{"shapes": &s, "options": &o, "training": &f.Training} {
		if err := json.Unmarshal([]byte(t.Metadata[key]), v); err != nil {
			return nil, fmt.Errorf("%s %q: %w; train again", key, t.Metadata[key], err)
		}
	}
	f.Divide, f.Parts, f.Refresh = o.Divide, o.Parts, o.Refresh
	for _, n := range f.networks(&s) {
		if *n.shape == nil {
			continue
		}
		if *n.net, err = t.Scorer(n.name+".", **n.shape); err != nil {
			return nil, err
		}
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	return f, t.Finish()
}
