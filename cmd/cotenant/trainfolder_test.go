package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// trainings are the verbs that train, each on little and with so many updates;
// they write the policy p.
var trainings = map[string]struct {
	args    []string // the fourth is a file
	updates string
	valid   string // a flag that changes the result
}{
	"jobs":     {little("--out", "p", "--imitate", "1"), "3", "--noted=0.5"},
	"services": {littleServices("--out", "p"), "2", "--slots=2"},
}

// eachTraining runs f in an empty folder for every verb that trains.
func eachTraining(t *testing.T, f func(t *testing.T, verb string, args func(more ...string) []string)) {
	for verb, training := range trainings {
		t.Run(verb, func(t *testing.T) {
			t.Chdir(t.TempDir())
			f(t, verb, func(more ...string) []string {
				args := append(append([]string{}, training.args...), more...)
				args[3] = filepath.Join(home, args[3])
				return args
			})
		})
	}
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestTrainingGoesOnAfterCtrlC wants a run without --log that is interrupted
// again and again to say how to go on, and to come to the bytes of one that is
// not.
func TestTrainingGoesOnAfterCtrlC(t *testing.T) {
	eachTraining(t, func(t *testing.T, verb string, args func(...string) []string) {
		updates := "--updates=" + trainings[verb].updates
		begin := time.Now()
		trained(t, args(updates, "--workers", "2")...)
		took := time.Since(begin)
		want := mustRead(t, "p")
		if err := errors.Join(os.Remove("p"), os.RemoveAll("p.log")); err != nil {
			t.Fatal(err)
		}
		line := args(updates, "--workers", "1")
		stops := 0
		for patience := took / 3; ; patience += took / 5 {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			out, errs, code := cotenantWith(t, ctx, "", line...)
			cancel()
			if code == 0 {
				break
			}
			if stops++; stops > 50 {
				t.Fatal("does not end")
			}
			if code != exitFailed || out != "" || strings.Count(errs, "interrupted") != 1 {
				t.Fatalf("exit %d, stdout %q, stderr %q", code, out, errs)
			}
			_, err := os.Stat("p.log/checkpoint")
			if errors.Is(err, fs.ErrNotExist) {
				continue // before training: there is nothing to go on with
			}
			if !strings.Contains(errs, "of "+trainings[verb].updates+" updates") || !strings.Contains(errs, "go on with: cotenant train "+verb+" ") || !strings.Contains(errs, "--resume=p.log") {
				t.Fatalf("stderr %q does not say how to go on", errs)
			}
			if _, err := os.Stat("p"); (err == nil) != strings.Contains(errs, "the best so far is written") {
				t.Fatalf("stderr %q, but of the policy: %v", errs, err)
			}
			// The flags of then need not be said again.
			line = []string{"train", verb, "--resume", "p.log"}
		}
		if stops == 0 {
			t.Error("never interrupted")
		}
		if got := mustRead(t, "p"); !bytes.Equal(got, want) {
			t.Errorf("interrupted %d times it wrote other bytes", stops)
		}
	})
}

// TestTrainingGoesOnWhenTheTimeIsUp stops after every step instead, and wants
// the same.
func TestTrainingGoesOnWhenTheTimeIsUp(t *testing.T) {
	eachTraining(t, func(t *testing.T, verb string, args func(...string) []string) {
		updates := "--updates=" + trainings[verb].updates
		trained(t, args(updates, "--workers", "2")...)
		want := mustRead(t, "p")
		if _, errs, code := cotenant(t, args(updates)...); code != exitFailed || !strings.Contains(errs, "holds a run already") {
			t.Errorf("a second run in the same folder: exit %d, %q", code, errs)
		}
		if err := os.RemoveAll("p.log"); err != nil {
			t.Fatal(err)
		}
		row, errs := trained(t, args(updates, "--time", "1ns", "--workers", "1")...)
		stops := 0
		for ; fmt.Sprint(row["updates"]) != trainings[verb].updates; stops++ {
			if stops > 10 {
				t.Fatal("does not end")
			}
			if !strings.Contains(errs, "the time is up after ") || !strings.Contains(errs, "--resume=p.log") {
				t.Fatalf("stderr %q does not say how to go on", errs)
			}
			row, errs = trained(t, args(updates, "--time", "1ns", "--workers", "1", "--resume", "p.log")...)
		}
		if stops < 2 {
			t.Errorf("stopped %d times; want after a look and every update", stops)
		}
		// Stopped in front of its last look, it has that to do.
		trained(t, args("--resume", "p.log")...)
		if got := mustRead(t, "p"); !bytes.Equal(got, want) {
			t.Error("a run that went on wrote other bytes")
		}
	})
}

// TestTrainingGoesOnOnlyAsItBegan wants every flag that differs by name, with
// what it was, and what to do; and likewise files.
func TestTrainingGoesOnOnlyAsItBegan(t *testing.T) {
	eachTraining(t, func(t *testing.T, verb string, args func(...string) []string) {
		trained(t, args("--updates=2", "--time=1ns", trainings[verb].valid)...)
		flag, value, _ := strings.Cut(trainings[verb].valid, "=")
		_, errs, code := cotenant(t, "train", verb, "--resume=p.log", "--seed=2", flag+"=0.75", "--updates=9")
		if verb == "services" {
			_, errs, code = cotenant(t, "train", verb, "--resume=p.log", "--seed=2", flag+"=4", "--updates=9")
		}
		for _, want := range []string{"--seed was 1 and is 2 now", flag + " was " + value + " and is ", "--updates was 2 and is 9 now", "start anew with another --log", "it began as: cotenant train " + verb} {
			if code != exitWrongUse || !strings.Contains(errs, want) || strings.Contains(errs, "{") {
				t.Errorf("exit %d, stderr %q; want %q", code, errs, want)
			}
		}
		given := args()[2:4]
		text := mustRead(t, given[1])
		if err := os.WriteFile("other", bytes.Replace(text, []byte("9"), []byte("8"), 1), 0o600); err != nil {
			t.Fatal(err)
		}
		_, errs, code = cotenant(t, "train", verb, "--resume=p.log", given[0]+"=other")
		if code != exitFailed || !strings.Contains(errs, given[0]+" is not what the run began with: then "+given[1]) || !strings.Contains(errs, "now other (") {
			t.Errorf("other content: exit %d, stderr %q", code, errs)
		}
		// The same content under another name will do.
		if err := os.WriteFile("other", text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, errs, code := cotenant(t, "train", verb, "--resume=p.log", given[0]+"=other"); code != 0 {
			t.Errorf("the same content: exit %d, stderr %q", code, errs)
		}
		if _, errs, code := cotenant(t, args("--resume", ".")...); code != exitFailed || !strings.Contains(errs, "no run to go on with") {
			t.Errorf("--resume of nothing: exit %d, %q", code, errs)
		}
	})
}

// TestTrainingNoticesADamagedCheckpoint turns, drops and adds bytes, and wants
// no training that goes on from them.
func TestTrainingNoticesADamagedCheckpoint(t *testing.T) {
	eachTraining(t, func(t *testing.T, verb string, args func(...string) []string) {
		if _, errs, code := cotenant(t, args("--updates=2", "--time=1ns")...); code != 0 {
			t.Fatalf("exit %d, stderr %q", code, errs)
		}
		const path = "p.log/checkpoint"
		whole := mustRead(t, path)
		turned := bytes.Clone(whole)
		turned[len(turned)/2] ^= 1
		for name, check := range map[string][]byte{
			"a bit turned": turned, "cut off": whole[:len(whole)-1], "half": whole[:len(whole)/2], "longer": append(bytes.Clone(whole), 0), "empty": nil, "another file": []byte("hello\n"),
		} {
			if err := os.WriteFile(path, check, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, errs, code := cotenant(t, "train", verb, "--resume=p.log"); code != exitFailed || !strings.Contains(errs, "--resume p.log: its checkpoint: damaged") || !strings.Contains(errs, "start anew") {
				t.Errorf("%s: exit %d, stderr %q", name, code, errs)
			}
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if _, errs, code := cotenant(t, "train", verb, "--resume=p.log"); code != exitFailed || !strings.Contains(errs, "start anew, with another --log") {
			t.Errorf("none: exit %d, stderr %q", code, errs)
		}
	})
}

// TestTrainingKeepsItsFolder wants no policy over the folder of the run or over
// what it goes on with, before anything is trained.
func TestTrainingKeepsItsFolder(t *testing.T) {
	eachTraining(t, func(t *testing.T, verb string, args func(...string) []string) {
		for _, out := range []string{"q", "./q/", "q/checkpoint", "q/../q/run.json", "q/scalars.jsonl"} {
			if _, errs, code := cotenant(t, args("--out", out, "--log", "q")...); code != exitWrongUse || !strings.Contains(errs, "name a") {
				t.Errorf("--out %s --log q: exit %d, stderr %q", out, code, errs)
			}
		}
		if _, errs, code := cotenant(t, args("--updates=2", "--time=1ns")...); code != 0 {
			t.Fatalf("exit %d, stderr %q", code, errs)
		}
		for _, out := range []string{"p.log/checkpoint", "p.log/run.json"} {
			before := mustRead(t, out)
			if _, errs, code := cotenant(t, "train", verb, "--resume=p.log", "--out", out); code != exitWrongUse || !strings.Contains(errs, "the run keeps its own there") {
				t.Errorf("--out %s: exit %d, stderr %q", out, code, errs)
			}
			if !bytes.Equal(before, mustRead(t, out)) {
				t.Errorf("--out %s was written", out)
			}
		}
	})
}
