package sqlstore

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

func TestAppendFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.db")
	good := history.Sample{Colocation: cluster.Colocation{"a": 1}, Workload: "a", Metric: history.Rate, Value: 1, Alone: 1}
	bad := good
	bad.Value = -1
	if err := AppendFile(path, good, bad); err == nil {
		t.Error("a bad sample: no error")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	// Several that make the store at once: one makes it, the others add to it.
	const writers = 4
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			if err := AppendFile(path, good, good); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	samples, err := s.All()
	if err != nil || len(samples) != 2*writers {
		t.Errorf("%d samples, %v; want %d", len(samples), err, 2*writers)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("beside the store: %v, %v", left, err)
	}
}
