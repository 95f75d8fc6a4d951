package serve

import (
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
	"sync"
	"time"

	"github.com/cotenant/cotenant/balance"
	"github.com/cotenant/cotenant/internal/whole"
)

// saver keeps a file a job in a folder that it has to itself. Files are
// written beside the work, not before an answer: a coordinator that was killed
// may come back with shares that are a moment old, and learns from
// ReportRequest.held_iteration that it did. A nil saver keeps nothing.
type saver struct {
	dir  string
	lock io.Closer
	wake chan struct{}

	mu    sync.Mutex
	dirty map[string]bool // names of jobs
}

// newSaver makes the folder where it is absent.
func newSaver(dir string) (*saver, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, whole.Explain(dir, err)
	}
	lock, err := lockFolder(dir)
	if err != nil {
		return nil, err
	}
	return &saver{dir: dir, lock: lock, wake: make(chan struct{}, 1), dirty: map[string]bool{}}, nil
}

func (s *saver) close() error {
	if s == nil {
		return nil
	}
	return s.lock.Close()
}

// mark says that a job's file is out of date; soon, that it matters.
func (s *saver) mark(j *job, soon bool) {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.dirty[j.name] = true
	s.mu.Unlock()
	if soon {
		select {
		case s.wake <- struct{}{}:
		default: // it is awake
		}
	}
}

// remove is mark of a job that is gone.
func (s *saver) remove(j *job) { s.mark(j, true) }

// path of a job's file: names have characters that files' names can't have.
func (s *saver) path(name string) string {
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:16])+".json")
}

// formatVersion of state files.
const formatVersion = 1

// saved is a job's file.
type saved struct {
	Format   int              `json:"format"`
	Job      string           `json:"job"`
	Workload string           `json:"workload"`
	Workers  []balance.Worker `json:"workers"`
	Sites    []site           `json:"sites"`
	Options  balance.Options  `json:"options"`
	Shares   balance.Shares   `json:"shares"`
	Reported int64            `json:"reported"`
	Opened   time.Time        `json:"opened"`
}

// save writes the files that are out of date.
func (c *Coordinator) save() error {
	if c.saver == nil {
		return nil
	}
	c.saver.mu.Lock()
	names := make([]string, 0, len(c.saver.dirty))
	for name := range c.saver.dirty {
		names = append(names, name)
	}
	clear(c.saver.dirty)
	c.saver.mu.Unlock()
	slices.Sort(names)
	var failed []error
	for _, name := range names {
		if err := c.saveJob(name); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func (c *Coordinator) saveJob(name string) error {
	path := c.saver.path(name)
	j, err := c.find(name, false)
	if err != nil {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return whole.Explain(path, err)
		}
		return nil
	}
	record, ok := j.saved()
	if !ok {
		return nil // being opened or gone, and marked again when it is
	}
	return whole.File(path, func(w io.Writer) error { return json.NewEncoder(w).Encode(record) })
}

// saved is a copy of what a job's file holds.
func (j *job) saved() (saved, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.gone || j.balancer == nil {
		return saved{}, false
	}
	return saved{formatVersion, j.name, j.workload, j.workers, j.sites, j.options, j.shares, j.reported, j.opened}, true
}

// load reads the jobs of the folder. What can't be read is told and left: its
// job opens anew.
func (c *Coordinator) load() error {
	files, err := filepath.Glob(filepath.Join(c.saver.dir, "*.json"))
	if err != nil {
		return err
	}
	for _, f := range files {
		j, err := c.loadJob(f)
		if err != nil {
			c.o.Warn(fmt.Sprintf("%v; its job begins anew when it is opened", err))
			continue
		}
		c.jobs[j.name] = j
		c.recorder.place(j, c.o.Now())
	}
	return nil
}

func (c *Coordinator) loadJob(path string) (*job, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var s saved
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	switch {
	case s.Format != formatVersion:
		return nil, fmt.Errorf("%s: format: %d; this version reads %d", path, s.Format, formatVersion)
	case c.saver.path(s.Job) != path:
		return nil, fmt.Errorf("%s: job: %q belongs in %s", path, short(s.Job), c.saver.path(s.Job))
	case len(s.Sites) != len(s.Workers):
		return nil, fmt.Errorf("%s: sites: %d, of %d workers", path, len(s.Sites), len(s.Workers))
	}
	return s.job(path, c.o.Now())
}

func (s saved) job(path string, now time.Time) (*job, error) {
	j := &job{name: s.Job}
	o := opening{job: s.Job, workload: s.Workload, workers: s.Workers, sites: s.Sites, options: s.Options, agreed: &s.Shares}
	if _, err := j.open(o, now); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	j.reported, j.opened = s.Reported, s.Opened
	return j, nil
}

// Run saves, records and forgets until the context ends, and saves once more.
func (c *Coordinator) Run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var wake chan struct{}
	if c.saver != nil {
		wake = c.saver.wake
	}
	const learned = 10 * time.Second // between files that differ in what was learned only
	lastSave, lastHistory := c.o.Now(), c.o.Now()
	for {
		saveNow, done := false, false
		select {
		case <-ctx.Done():
			saveNow, done = true, true
		case <-wake:
			saveNow = true
		case <-tick.C:
		}
		now := c.o.Now()
		c.forget(now)
		if saveNow || now.Sub(lastSave) >= learned {
			lastSave = now
			c.warn(c.save())
		}
		windows := done || now.Sub(lastHistory) >= c.o.HistoryEvery
		if windows {
			lastHistory = now
		}
		c.warn(c.recorder.save(windows, now))
		if done {
			c.warn(c.saver.close())
			return
		}
	}
}

func (c *Coordinator) warn(err error) {
	if err != nil {
		c.o.Warn(err.Error())
	}
}
