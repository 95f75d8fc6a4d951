package brain_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cotenant/cotenant/kubernetes/plugin/brain"
)

const alone = `{"colocation":{"redis":1},"workload":"redis","metric":"rate","value":1,"alone":1}` + "\n"

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestReload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "samples.jsonl")
	write(t, file, alone)
	b, err := brain.New(brain.Files{Samples: file, Services: brain.Policy{Name: "greedy"}, Jobs: brain.Policy{Name: "harmony"}})
	if err != nil {
		t.Fatal(err)
	}
	first := b.Now()
	if !first.Known("redis") || first.Known("mms") || first.Class("m5") != "" {
		t.Errorf("redis %v, mms %v, class %q", first.Known("redis"), first.Known("mms"), first.Class("m5"))
	}
	if changed, err := b.Reload(); changed || err != nil {
		t.Errorf("nothing changed: %v, %v", changed, err)
	}
	write(t, file, "{")
	if changed, err := b.Reload(); changed || err == nil || !strings.Contains(err.Error(), first.Version) {
		t.Errorf("a bad file: changed %v, %v", changed, err)
	}
	if changed, err := b.Reload(); changed || err != nil {
		t.Errorf("the same bad file is told once: %v, %v", changed, err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if changed, err := b.Reload(); changed || err == nil {
		t.Errorf("no file: changed %v, %v", changed, err)
	}
	if b.Now() != first {
		t.Error("what was read before did not stay")
	}
	write(t, file, alone+strings.ReplaceAll(alone, "redis", "mms"))
	if changed, err := b.Reload(); !changed || err != nil || !b.Now().Known("mms") {
		t.Errorf("a good file: changed %v, %v", changed, err)
	}
}

func TestBadFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "samples.jsonl")
	write(t, file, alone)
	for _, c := range []struct {
		files brain.Files
		says  string
	}{
		{brain.Files{Services: brain.Policy{Name: "greedy"}}, "neither model nor samples"},
		{brain.Files{Samples: file, Services: brain.Policy{Name: "gready"}}, "unknown policy"},
		{brain.Files{Samples: file, Model: file, Services: brain.Policy{Name: "greedy"}}, "model"},
		{brain.Files{Samples: file, Services: brain.Policy{Name: "metis", File: file}}, "services policy"},
		{brain.Files{Samples: file, Services: brain.Policy{Name: "greedy"}, Jobs: brain.Policy{Name: "harmoney"}}, "jobs policy"},
		{brain.Files{Samples: file + "x", Services: brain.Policy{Name: "greedy"}}, "no such file"},
	} {
		if _, err := brain.New(c.files); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v; want an error that says %q", c.files, err, c.says)
		}
	}
}

func Example() {
	dir, _ := os.MkdirTemp("", "brain")
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "samples.jsonl")
	_ = os.WriteFile(file, []byte(alone), 0o600)
	b, err := brain.New(brain.Files{Samples: file, Services: brain.Policy{Name: "greedy"}})
	fmt.Println(err, b.Now().Known("redis"), b.Now().Known("mms"))
	// Output: <nil> true false
}

// A raw record, as `cotenant profile` and `cotenant import prometheus` write it,
// repeats its cells with some noise.
func TestRawRecordsAreRead(t *testing.T) {
	const window = `{"start":"2026-01-02T03:04:0%dZ","end":"2026-01-02T03:04:10Z","colocation":{"redis":%d},"workload":"redis","metric":"rate","value":%d}` + "\n"
	file := filepath.Join(t.TempDir(), "samples.jsonl")
	write(t, file, fmt.Sprintf(window+window+window, 1, 1, 100, 2, 1, 200, 3, 2, 75))
	b, err := brain.New(brain.Files{Samples: file, Services: brain.Policy{Name: "greedy"}})
	if err != nil {
		t.Fatal(err)
	}
	if !b.Now().Known("redis") {
		t.Error("redis is not known")
	}
}
