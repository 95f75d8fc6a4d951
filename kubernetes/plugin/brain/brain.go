package brain

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/place/baseline"
	"github.com/cotenant/cotenant/place/metis"
	"github.com/cotenant/cotenant/sim/compare"
)

// Policy names a policy and what it is given.
type Policy struct {
	Name string
	// File is that of a trained policy; "" is the one that ships.
	File   string
	Params map[string]string
}

// Files say what is read, and by whom it is decided.
type Files struct {
	// Model is a file by `cotenant fit`, Samples one of measurements, which
	// override what the model predicts. One of them must be given.
	Model, Samples string
	// Columns are the workloads of samples that don't name them.
	Columns []string
	// Services and Jobs are the policies; no Jobs leaves gangs to Services.
	Services, Jobs Policy
}

// State is what is decided by, as read at one time. It is immutable.
type State struct {
	Model interference.Model
	// Version tells states apart: a hash of all that was read.
	Version string
	// Bad is why the files could not be read, where none were before: nothing is
	// known then. "" otherwise.
	Bad string

	known   map[string]bool
	classes []string
	trained *metis.File
	memory  *place.Memory
	world   *compare.World
	spec    compare.Spec
	files   Files
}

// Brain is the state of now.
type Brain struct {
	files Files
	now   atomic.Pointer[State]
	// reload is one at a time.
	reload sync.Mutex
	bad    string // hash of files that were refused, so that they are refused once
}

// New reads the files. Where they are bad it is an error, and there is a Brain
// nevertheless, which knows nothing until Reload finds better ones: pods are to
// be scheduled whatever a file holds. There is none where what is asked for makes
// no sense with any files.
func New(files Files) (*Brain, error) {
	if err := files.check(); err != nil {
		return nil, err
	}
	b := &Brain{files: files}
	content, hash, err := files.read()
	var s *State
	if err == nil {
		s, err = files.state(content, hash)
	} else {
		hash = err.Error()
	}
	if err != nil {
		b.bad = hash
		s = &State{Version: NoVersion, Bad: err.Error(), known: map[string]bool{}, files: files}
	}
	b.now.Store(s)
	return b, err
}

// NoVersion is that of a State of no files.
const NoVersion = "none"

// check finds what no file can make good.
func (f Files) check() error {
	if f.Model == "" && f.Samples == "" {
		return errNothing
	}
	if names := append(baseline.Names(), "metis"); !slices.Contains(names, f.Services.Name) {
		return fmt.Errorf("services policy: unknown policy %q; known are %s", f.Services.Name, strings.Join(names, ", "))
	}
	if f.Jobs.Name != "" {
		if _, err := f.spec(); err != nil {
			return fmt.Errorf("jobs policy: %w", err)
		}
	}
	return nil
}

var errNothing = errors.New("neither model nor samples are given: every workload would be unknown; name one")

// Now is the state to decide by.
func (b *Brain) Now() *State { return b.now.Load() }

// Reload reads the files again. changed says that there is a new state. Where
// the files are bad the old state stays; err says why, once for each content.
func (b *Brain) Reload() (changed bool, err error) {
	b.reload.Lock()
	defer b.reload.Unlock()
	content, hash, err := b.files.read()
	switch {
	case err != nil:
		hash = err.Error()
	case hash == b.Now().Version:
		b.bad = ""
		return false, nil
	}
	if hash == b.bad {
		return false, nil
	}
	var s *State
	if err == nil {
		s, err = b.files.state(content, hash)
	}
	if err != nil {
		b.bad = hash
		return false, fmt.Errorf("%w; version %s stays", err, b.Now().Version)
	}
	b.bad = ""
	b.now.Store(s)
	return true, nil
}

// maxFile bounds what is read: a ConfigMap holds 1 MiB, samples may be large.
const maxFile = 512 << 20

// read reads all files, by what they are for.
func (f Files) read() (map[string][]byte, string, error) {
	content := map[string][]byte{}
	hash := sha256.New()
	for _, x := range []struct{ what, path string }{
		{"model", f.Model}, {"samples", f.Samples}, {"services policy", f.Services.File}, {"jobs policy", f.Jobs.File},
	} {
		if x.path == "" {
			continue
		}
		info, err := os.Stat(x.path)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", x.what, err)
		}
		if info.Size() > maxFile {
			return nil, "", fmt.Errorf("%s: %s has %d bytes, more than the most that is read, %d", x.what, x.path, info.Size(), maxFile)
		}
		data, err := os.ReadFile(x.path)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", x.what, err)
		}
		content[x.what] = data
		fmt.Fprintf(hash, "%s %d\n", x.what, len(data))
		hash.Write(data)
	}
	return content, hex.EncodeToString(hash.Sum(nil))[:12], nil
}

// state makes what is decided by, and tries it: policies that can't be made are
// an error here, not when the first pod comes.
func (f Files) state(content map[string][]byte, hash string) (*State, error) {
	s := &State{files: f, Version: hash, known: map[string]bool{}, memory: &place.Memory{}}
	var samples []history.Sample
	if data, ok := content["samples"]; ok {
		var err error
		if samples, _, err = formats.ReadSamples(bytes.NewReader(data), formats.Options{Name: f.Samples, Columns: f.Columns}); err != nil {
			return nil, fmt.Errorf("samples: %w", err)
		}
		samples = history.Joined(samples)
	}
	var err error
	if s.Model, err = believed(f, content["model"], samples); err != nil {
		return nil, err
	}
	s.classes = s.Model.Classes()
	for _, c := range s.classes {
		for _, w := range s.Model.Workloads(c) {
			s.known[w] = true
		}
	}
	if data, ok := content["services policy"]; ok {
		if s.trained, err = metis.Load(bytes.NewReader(data)); err != nil {
			return nil, fmt.Errorf("services policy %s: %w", f.Services.File, err)
		}
	}
	if f.Jobs.Name != "" {
		if err := s.readJobs(content["jobs policy"], samples); err != nil {
			return nil, fmt.Errorf("jobs policy: %w", err)
		}
	}
	if _, err := s.Services(); err != nil {
		return nil, fmt.Errorf("services policy: %w", err)
	}
	if _, err := s.Jobs(context.Background()); err != nil {
		return nil, fmt.Errorf("jobs policy: %w", err)
	}
	return s, nil
}

func believed(f Files, model []byte, samples []history.Sample) (interference.Model, error) {
	if model == nil {
		if samples == nil {
			return nil, errNothing
		}
		m, err := interference.Fit(interference.KindTable, samples, interference.Options{})
		if err != nil {
			return nil, fmt.Errorf("samples %s: %w", f.Samples, err)
		}
		return m, nil
	}
	m, err := interference.Load(bytes.NewReader(model))
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", f.Model, err)
	}
	if samples == nil {
		return m, nil
	}
	if m, err = interference.Override(m, samples); err != nil {
		return nil, fmt.Errorf("samples %s over model %s: %w", f.Samples, f.Model, err)
	}
	return m, nil
}

// spec is the policy for jobs as simulations name it.
func (f Files) spec() (compare.Spec, error) {
	text := f.Jobs.Name
	if f.Jobs.File != "" {
		text += "@" + f.Jobs.File
	}
	for _, k := range slices.Sorted(maps.Keys(f.Jobs.Params)) {
		text += ":" + k + "=" + f.Jobs.Params[k]
	}
	spec, err := compare.ParseSpec(text)
	if err == nil && (spec.Truth || spec.Learns()) {
		err = fmt.Errorf("%s: truth and learn are for simulation", text)
	}
	return spec, err
}

func (s *State) readJobs(trained []byte, samples []history.Sample) error {
	var err error
	if s.spec, err = s.files.spec(); err != nil {
		return err
	}
	if trained != nil {
		if err := s.spec.Load(bytes.NewReader(trained)); err != nil {
			return err
		}
	}
	if samples == nil {
		s.world = &compare.World{Scope: history.ScopeNode, Alone: history.NewAloneRates(nil)}
		return nil
	}
	if s.world, err = compare.Known(samples, nil, nil); err != nil {
		return err
	}
	s.world.Scope = history.ScopeNode // which device a pod gets is the node's to say
	return nil
}

// Known reports whether the model knows the workload.
func (s *State) Known(workload string) bool { return s.known[workload] }

// Class is the model's class for what a node's labels say: itself where the
// model knows it, else "", which stands for the only class of a model that has
// one.
func (s *State) Class(labelled string) string {
	if slices.Contains(s.classes, labelled) {
		return labelled
	}
	return ""
}

// Most is how many tasks of known workloads were measured together on a class, as
// Class names it; 0 where that is unknown.
func (s *State) Most(class string) int {
	if s.Model == nil {
		return 0
	}
	return interference.Most(s.Model, place.ModelClass(s.Model, class))
}

// Services makes the policy for services; each is for one goroutine.
func (s *State) Services() (place.Policy, error) {
	p := s.files.Services
	params := maps.Clone(p.Params)
	pessimism := 0.0
	if text, ok := params["pessimism"]; ok {
		var err error
		if pessimism, err = strconv.ParseFloat(text, 64); err != nil || !(pessimism >= 0 && pessimism <= 10) {
			return nil, fmt.Errorf("%s: pessimism %q is not a number of standard deviations, 0 to 10", p.Name, text)
		}
		delete(params, "pessimism")
	}
	if p.Name != "metis" {
		return baseline.New(p.Name, baseline.Options{Model: s.Model, Pessimism: pessimism, Params: params})
	}
	file := s.trained
	if file == nil {
		var err error
		if file, err = metis.Shipped(params["trained"]); err != nil {
			return nil, err
		}
	}
	delete(params, "trained")
	return file.Policy(metis.Settings{Model: s.Model, Pessimism: pessimism, Params: params})
}

// Jobs makes the policy for gangs; nil where there is none.
func (s *State) Jobs(ctx context.Context) (place.Policy, error) {
	if s.world == nil {
		return nil, nil
	}
	p, _, err := s.spec.New(ctx, s.world, s.world.Speeds(s.Model, s.spec.Pessimism()), compare.PolicyOptions{})
	return p, err
}
