package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cotenant/cotenant/internal/whole"
	"github.com/cotenant/cotenant/train/curves"
)

// The files of --log beside the curves.
const (
	checkpointFile = "checkpoint"
	stateFile      = "run.json"
)

// trainer is what the trainers of all policies have in common.
type trainer interface {
	Save(w io.Writer) error
	Restore(r io.Reader) error
	Updates() int
	Done() bool
}

// trainingRun is a training with its folder, which holds the curves and a
// checkpoint: every training begins, goes on and ends by it.
type trainingRun struct {
	trainer trainer
	planned int // updates
	from    int // the update after which this part of the run begins
	dir     string
	line    string        // the command that trains the same again
	limit   time.Duration // of --time; 0 is none
	state   runState
	before  *runState // of the run that goes on; nil for a new one
	curve   *curves.Log
	bar     *progress
	begin   time.Time
	saved   time.Time
	words   string // of the last look
}

// runState says what the checkpoint beside it belongs to, so that a run goes
// on only as what it was.
type runState struct {
	// Command trains the same again, with nothing in it of this machine.
	Command string `json:"command"`
	Version string `json:"version"`
	// Flags are those that were given, as far as the result depends on them.
	Flags   map[string]string `json:"flags"`
	Inputs  []inputHash       `json:"inputs"`
	Data    string            `json:"data"` // hash of what is learned from
	Updates int               `json:"updates"`
	Slots   int               `json:"slots,omitempty"` // of a node, with train services
	// Seconds of training so far; Looks are what the validation seeds said, by
	// update.
	Seconds float64           `json:"seconds"`
	Looks   map[int][]float64 `json:"looks"`
}

// Flags on which the bytes of a policy do not depend, and those that name a
// file, of which the content counts and not the name.
var (
	besides   = []string{"time", "workers", "log", "resume", "output"}
	fileFlags = []string{"samples", "model", "throughputs", "trace", "contention"}
)

// openTraining begins a run in the folder of --log, or goes on with that of
// --resume: flags that are not given are then those of then.
func openTraining(cmd *cobra.Command) (*trainingRun, error) {
	flag := func(name string) string { return cmd.Flags().Lookup(name).Value.String() }
	resume, log := flag("resume"), flag("log")
	r := &trainingRun{begin: time.Now(), state: runState{Version: version(), Looks: map[int][]float64{}}}
	if resume == "" {
		if r.dir = log; log == "" && flag("out") != "" {
			r.dir = flag("out") + ".log"
		}
		if err := r.keepsOut(flag("out")); err != nil {
			return nil, err
		}
		if _, err := os.Stat(filepath.Join(r.dir, checkpointFile)); r.dir != "" && err == nil {
			return nil, fmt.Errorf("%s holds a run already: go on with --resume %s, or remove the folder", r.dir, r.dir)
		}
		return r, nil
	}
	if log != "" && filepath.Clean(resume) != filepath.Clean(log) {
		return nil, wrongUse("--resume %s and --log %s: a run goes on in its own folder; leave --log out", resume, log)
	}
	r.dir = resume
	before, err := readState(resume)
	if err != nil {
		return nil, err
	}
	r.before = &before
	if err := before.adopt(cmd, resume); err != nil {
		return nil, err
	}
	return r, r.keepsOut(flag("out"))
}

// keepsOut refuses a policy that would be written over the folder of the run or
// over what the run goes on with.
func (r *trainingRun) keepsOut(out string) error {
	if out == "" {
		return nil
	}
	if filepath.Clean(out) == filepath.Clean(r.dir) {
		return wrongUse("--out %s is the folder of the run, too; name a file in it, or another --log", out)
	}
	for _, name := range []string{checkpointFile, stateFile, curves.LinesFile} {
		if sameFile(out, filepath.Join(r.dir, name)) {
			return wrongUse("--out %s: the run keeps its own there; name another file", out)
		}
	}
	return nil
}

func readState(dir string) (s runState, err error) {
	text, err := os.ReadFile(filepath.Join(dir, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return s, fmt.Errorf("--resume %s: there is no run to go on with; give the --log of one", dir)
	}
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return s, fmt.Errorf("--resume %s: %w; start anew, with another --log", dir, err)
	}
	return s, nil
}

// flagText is the value of a flag as one would give it.
func flagText(f *pflag.Flag) string {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		return strings.Join(list.GetSlice(), ",")
	}
	return f.Value.String()
}

// givenFlags are the flags that the result depends on.
func givenFlags(cmd *cobra.Command) map[string]string {
	given := map[string]string{}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains(besides, f.Name) {
			given[f.Name] = flagText(f)
		}
	})
	return given
}

// adopt sets the flags that are not given to what they were, and refuses those
// that are given as something else.
func (s *runState) adopt(cmd *cobra.Command, dir string) error {
	if s.Flags == nil {
		return nil // of a version that did not keep them
	}
	var other []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		then, given := s.Flags[f.Name]
		if slices.Contains(besides, f.Name) {
			return
		}
		if !f.Changed {
			if given {
				if err := cmd.Flags().Set(f.Name, then); err != nil {
					other = append(other, fmt.Sprintf("--%s was %q, which is no value of it any more", f.Name, then))
				}
			}
			return
		}
		now := flagText(f)
		if !given {
			then = strings.Trim(f.DefValue, "[]")
		}
		if now != then && f.Name != "out" && !slices.Contains(fileFlags, f.Name) {
			other = append(other, fmt.Sprintf("--%s was %s and is %s now", f.Name, cmp.Or(then, `""`), cmp.Or(now, `""`)))
		}
	})
	if len(other) > 0 {
		return wrongUse("--resume %s: a run goes on only as it began: %s; leave that out, or start anew with another --log; it began as: %s",
			dir, strings.Join(other, ", "), s.Command)
	}
	return nil
}

// settle notes what the run is, and refuses to go on with other files than
// those it began with.
func (r *trainingRun) settle(cmd *cobra.Command, in *inputs, data string) error {
	r.line = commandLine(cmd, besides...)
	r.state.Command = portable(cmd, r.line)
	r.state.Flags, r.state.Inputs, r.state.Data = givenFlags(cmd), in.hashes, data
	b := r.before
	if b == nil || b.Flags == nil {
		return nil
	}
	// hashOf is what a flag read: its content counts, not its name.
	hashOf := func(hashes []inputHash, flag string) inputHash {
		for _, h := range hashes {
			if h.Flag == flag {
				return h
			}
		}
		return inputHash{File: "none"}
	}
	for _, flag := range fileFlags {
		then, now := hashOf(b.Inputs, flag), hashOf(in.hashes, flag)
		if then.SHA256 != now.SHA256 {
			return fmt.Errorf("--resume %s: --%s is not what the run began with: then %s, now %s, with other content; give the file of then, or start anew with another --log",
				r.dir, flag, fileWords(then), fileWords(now))
		}
	}
	if b.Data != data {
		return fmt.Errorf("--resume %s: the measurements are not those that the run began with, by version %s of this program; start anew with another --log", r.dir, b.Version)
	}
	r.state.Command, r.state.Seconds, r.state.Looks = b.Command, b.Seconds, b.Looks
	if r.state.Looks == nil {
		r.state.Looks = map[int][]float64{}
	}
	return nil
}

func fileWords(h inputHash) string {
	if h.SHA256 == "" {
		return h.File
	}
	return fmt.Sprintf("%s (%d bytes, sha256 %s...)", h.File, h.Bytes, h.SHA256[:8])
}

// portable is a command with nothing in it of this machine: of a path from the
// root the last part stays.
func portable(cmd *cobra.Command, line string) string {
	for _, name := range append([]string{"out"}, fileFlags...) {
		if f := cmd.Flags().Lookup(name); f != nil && filepath.IsAbs(f.Value.String()) {
			line = strings.ReplaceAll(line, f.Value.String(), filepath.Base(f.Value.String()))
		}
	}
	return line
}

// start gives the run its trainer, restored where the run goes on.
func (r *trainingRun) start(t trainer, planned int, log io.Writer) error {
	r.trainer, r.planned, r.state.Updates = t, planned, planned
	r.state.Flags["updates"] = fmt.Sprint(planned)
	if r.before == nil {
		return nil
	}
	check, err := os.ReadFile(filepath.Join(r.dir, checkpointFile))
	if err == nil {
		check, err = unsealed(check)
	}
	if err != nil {
		return fmt.Errorf("--resume %s: its checkpoint: %w; start anew, with another --log", r.dir, err)
	}
	if err := t.Restore(bytes.NewReader(check)); err != nil {
		return fmt.Errorf("--resume %s: %w", r.dir, err)
	}
	fmt.Fprintf(log, "going on after %d of %d updates\n", t.Updates(), planned)
	return nil
}

// seal begins a checkpoint; the sum of what follows comes after it, in
// hexadecimal digits.
const seal = "cotenant checkpoint, sha256 "

// sealed is a checkpoint as it is written: a bit that a disk turns in the
// weights would otherwise go on learning unnoticed.
func sealed(state []byte) []byte {
	sum := sha256.Sum256(state)
	return slices.Concat([]byte(seal), []byte(hex.EncodeToString(sum[:])), []byte("\n"), state)
}

// unsealed is what sealed got.
func unsealed(check []byte) ([]byte, error) {
	head, state, _ := bytes.Cut(check, []byte("\n"))
	sum, ok := bytes.CutPrefix(head, []byte(seal))
	if !ok {
		return nil, errors.New("damaged, or not by this version of the program")
	}
	if now := sha256.Sum256(state); hex.EncodeToString(now[:]) != string(sum) {
		return nil, errors.New("damaged: its bytes are not those that were written")
	}
	return state, nil
}

// errTime ends a run whose time is up.
var errTime = errors.New("the time is up")

// follow trains to the end, saves now and then, and writes the best so far
// also where it is stopped. first says what is done before the first report.
func (r *trainingRun) follow(ctx context.Context, log io.Writer, first string, train, write func() error) (err error) {
	if r.curve, err = curves.Open(r.dir, r.trainer.Updates()+1, time.Now()); err != nil {
		return fmt.Errorf("--log: %w", err)
	}
	if err := r.save(); err != nil {
		return errors.Join(err, r.curve.Close())
	}
	r.from = r.trainer.Updates()
	r.bar = newProgress(log, "train", r.planned-r.from)
	r.bar.at(0, first)
	err = train()
	r.bar.end()
	if closed := r.curve.Close(); err == nil && closed != nil {
		err = closed
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, errTime) {
		return err
	}
	// What was done is done: the state is that after the last update.
	if saved := r.save(); saved != nil {
		return saved
	}
	if ctx.Err() != nil && len(r.state.Looks) == 0 {
		return stopped("%s", r.goOn("before the first look at how good it is: no policy is written"))
	}
	if err := write(); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return stopped("%s", r.goOn(bestWritten))
	case err != nil:
		fmt.Fprintf(log, "%s %s\n", err, r.goOn(bestWritten))
	}
	return nil
}

const bestWritten = "the best so far is written"

// goOn says how far the run is, what was written, and what goes on with it.
func (r *trainingRun) goOn(written string) string {
	return fmt.Sprintf("after %d of %d updates; %s; go on with: %s --resume=%s", r.trainer.Updates(), r.planned, written, r.line, r.dir)
}

// saveEvery bounds what a crash costs.
const saveEvery = 30 * time.Second

// report notes a step, or what a look said: looks is nil after a step, and
// scalars after one that has no curve.
func (r *trainingRun) report(update int, looks []float64, scalars []curves.Scalar) error {
	if looks != nil {
		r.state.Looks[update] = looks
	}
	if scalars != nil {
		if err := r.curve.Add(update, time.Now(), scalars); err != nil {
			return err
		}
	}
	r.bar.at(update-r.from, r.words)
	if time.Since(r.saved) > saveEvery {
		if err := r.save(); err != nil {
			return err
		}
	}
	if r.limit > 0 && time.Since(r.begin) > r.limit && !r.trainer.Done() {
		return errTime
	}
	return nil
}

func (r *trainingRun) seconds() float64 { return r.state.Seconds + time.Since(r.begin).Seconds() }

// save writes the checkpoint and what it belongs to, both or none.
func (r *trainingRun) save() error {
	r.saved = time.Now()
	state := r.state
	state.Seconds = r.seconds()
	text, err := json.MarshalIndent(state, "", "  ")
	if err != nil {
		return fmt.Errorf("--log: %w", err)
	}
	var held bytes.Buffer
	if err := r.trainer.Save(&held); err != nil {
		return fmt.Errorf("--log: %w", err)
	}
	check, err := whole.Stage(filepath.Join(r.dir, checkpointFile), func(w io.Writer) error {
		_, err := w.Write(sealed(held.Bytes()))
		return err
	})
	if err != nil {
		return fmt.Errorf("--log: %w", err)
	}
	about, err := whole.Stage(filepath.Join(r.dir, stateFile), func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
	if err != nil {
		check.Discard()
		return fmt.Errorf("--log: %w", err)
	}
	if err := whole.Commit(about, check); err != nil {
		return fmt.Errorf("--log: %w", err)
	}
	return nil
}
