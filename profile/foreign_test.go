package profile

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cotenant/cotenant/cluster"
)

func TestForeignCountsWhatIsNotOurs(t *testing.T) {
	before := map[int]usage{
		1: {"init", 0, time.Second, 0}, 10: {"profiler", 1, time.Second, 0}, 11: {"server", 10, time.Second, 0},
		12: {"worker", 11, 0, 0}, 20: {"editor", 1, time.Second, 0}, 30: {"daemon", 1, 0, 0},
	}
	after := map[int]usage{
		1: {"init", 0, time.Second, time.Hour}, 10: {"profiler", 1, 2 * time.Second, time.Second}, 11: {"server", 10, 3 * time.Second, 0},
		12: {"worker", 11, time.Second, 0}, 20: {"editor", 1, 1100 * time.Millisecond, 100 * time.Millisecond}, 30: {"daemon", 1, time.Second, 0},
		40: {"compiler", 20, 300 * time.Millisecond, 0}, 50: {"shell", 1, 0, time.Hour},
	}
	total, who := foreign(before, after, map[int]bool{10: true, 30: true}, 2*time.Second)
	if total != 500*time.Millisecond || who != "compiler (process 40)" {
		t.Errorf("%s, most of all %q", total, who)
	}
	if total, who := foreign(before, before, nil, time.Second); total != 0 || who != "" {
		t.Errorf("nothing happened: %s, %q", total, who)
	}
}

func TestParseStat(t *testing.T) {
	u, ok := parseStat([]byte("123 (a (b) c) S 45 123 123 0 -1 4194560 9 0 0 0 7 3 20 10 20 0 1 0 99\n"))
	if !ok || u.name != "a (b) c" || u.parent != 45 || u.self != 100*time.Millisecond || u.children != 300*time.Millisecond {
		t.Errorf("%+v, %v", u, ok)
	}
	for _, text := range []string{"", "1 (x) S 2", "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 1 0 0 20 0 1 0 0", ") (", "1 (x) S x 1 1 0 -1 0 9 0 0 0 7 3 20 10 20"} {
		if u, ok := parseStat([]byte(text)); ok {
			t.Errorf("%q read as %+v", text, u)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	if text, err := os.ReadFile("/proc/self/stat"); err == nil {
		f.Add(text)
	}
	f.Fuzz(func(_ *testing.T, text []byte) { parseStat(text) })
}

// A process of somebody else that spins makes the window be measured again.
func TestForeignProcessesAreNoticed(t *testing.T) {
	if processes() == nil {
		t.Skip("no /proc here")
	}
	dir := t.TempDir()
	s := newSession(t, dir, shellSuite)
	defer s.Log.Close()
	var said []string
	s.Warn = func(text string) { said = append(said, text) }
	// The spinner's parent ends, so that it is no descendant of ours.
	pid := filepath.Join(dir, "spinner")
	if err := exec.Command("/bin/sh", "-c", "setsid timeout 20 sh -c 'while :; do :; done' >/dev/null 2>&1 & echo $! > "+pid).Run(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = exec.Command("/bin/sh", "-c", "kill $(cat "+pid+")").Run() }()
	if err := s.Run(t.Context(), []Step{{cluster.Colocation{"fast": 1}, 1}}); err != nil {
		t.Fatal(err)
	}
	if len(said) != 4 || !strings.Contains(said[0], "fast: other processes used ") || !strings.HasSuffix(said[0], ": measuring again") || !strings.Contains(said[3], "kept all the same") {
		t.Errorf("said %q", said)
	}
	if n := s.Log.Repeats("", cluster.Colocation{"fast": 1}); n != 1 {
		t.Errorf("%d repeats on record, want 1", n)
	}
}
