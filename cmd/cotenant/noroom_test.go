//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// asProgram makes the test binary the program itself: a limit on the size of
// files holds for a whole process.
const asProgram = "COTENANT_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// TestNoRoom limits how large a file may grow and wants every writer to say
// so, with the file's name, and to leave nothing behind.
func TestNoRoom(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ args, out string }{
		{"import jsonl testdata/samples.jsonl --out", "x.jsonl"},
		{"import jsonl testdata/samples.jsonl --out", "x.csv.gz"},
		{"import jsonl testdata/samples.jsonl --out", "x.db"},
		{"fit --samples testdata/samples.jsonl --model linear --out", "m.model"},
		{"fit --samples testdata/samples.jsonl --model linear --onnx", "m.onnx"},
		{"plan services --samples testdata/samples.jsonl --batch testdata/batch.csv --nodes 3 --policy spread --out", "run/deep"},
	} {
		cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", `ulimit -f 0; exec "$0" "$@"`, os.Args[0]}, append(strings.Fields(c.args), filepath.Join(dir, c.out))...)...)
		cmd.Env = append(os.Environ(), asProgram+"=yes")
		var errs bytes.Buffer
		cmd.Stderr = &errs
		_ = cmd.Run() // judged by its exit code
		stderr, code := errs.String(), cmd.ProcessState.ExitCode()
		if code != exitFailed || !strings.Contains(stderr, filepath.Join(dir, c.out)) || !strings.Contains(stderr, "ulimit -f") {
			t.Errorf("%s %s: exit code %d, stderr %q", c.args, c.out, code, stderr)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Fatalf("%s %s: left behind: %v, %v", c.args, c.out, left, err)
		}
	}
}
