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
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cotenant/cotenant/balance"
	"github.com/cotenant/cotenant/internal/whole"
)

// saver keeps two files a job in a folder that it has to itself: the shares in
// force, small, soon after they change, and what was learned, now and then.
// Files are written beside the work, not before an answer: a coordinator that
// was killed may come back with shares that are a moment old, and learns from
// ReportRequest.held_iteration that it did. A nil saver keeps nothing.
type saver struct {
	dir  string
	lock io.Closer
	wake chan struct{}

	mu sync.Mutex
	// shares and learned are the names of jobs whose files are out of date.
	shares, learned map[string]bool
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
	return &saver{dir: dir, lock: lock, wake: make(chan struct{}, 1), shares: map[string]bool{}, learned: map[string]bool{}}, nil
}

func (s *saver) close() error {
	if s == nil {
		return nil
	}
	return s.lock.Close()
}

// mark says that a job's files are out of date; shares, that both are.
func (s *saver) mark(j *job, shares bool) {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.learned[j.name] = true
	if shares {
		s.shares[j.name] = true
	}
	s.mu.Unlock()
	if shares {
		select {
		case s.wake <- struct{}{}:
		default: // it is awake
		}
	}
}

// remove is mark of a job that is gone.
func (s *saver) remove(j *job) { s.mark(j, true) }

// path of a job's files: names have characters that files' names can't have.
func (s *saver) path(name string) string {
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:16])+".json")
}

func learnedPath(path string) string { return strings.TrimSuffix(path, ".json") + ".learned" }

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

// save writes the shares that are out of date and, where asked, what was
// learned.
func (c *Coordinator) save(learned bool) error {
	if c.saver == nil {
		return nil
	}
	failed := c.saveEach(c.saver.shares, (*job).sharesFile, func(path string) string { return path })
	if learned {
		failed = errors.Join(failed, c.saveEach(c.saver.learned, (*job).learnedFile, learnedPath))
	}
	return failed
}

// saveEach empties a set of names and writes a file for each job. Files of
// jobs that are gone are removed.
func (c *Coordinator) saveEach(dirty map[string]bool, text func(*job) ([]byte, error), at func(string) string) error {
	c.saver.mu.Lock()
	names := slices.Sorted(maps.Keys(dirty))
	clear(dirty)
	c.saver.mu.Unlock()
	var failed []error
	for _, name := range names {
		path := at(c.saver.path(name))
		j, err := c.find(name, false)
		if err != nil {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				failed = append(failed, whole.Explain(path, err))
			}
			continue
		}
		data, err := text(j)
		if err == nil && data != nil {
			err = whole.File(path, func(w io.Writer) error {
				_, err := w.Write(data)
				return err
			})
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// sharesFile is what a job's first file holds; nil of a job that is being
// opened or is gone, and marked again when it is.
func (j *job) sharesFile() ([]byte, error) {
	j.mu.Lock()
	if j.gone || j.balancer == nil {
		j.mu.Unlock()
		return nil, nil
	}
	// All slices are replaced, never changed.
	record := saved{formatVersion, j.name, j.workload, j.workers, j.sites, j.options, j.shares, j.reported, j.opened}
	j.mu.Unlock()
	return json.Marshal(record)
}

// learnedFile is the balancer's state.
func (j *job) learnedFile() ([]byte, error) {
	j.mu.Lock()
	if j.gone || j.balancer == nil {
		j.mu.Unlock()
		return nil, nil
	}
	state := j.balancer.Snapshot()
	j.mu.Unlock()
	return state()
}

// load reads the jobs of the folder. What can't be read is told and left: its
// job opens anew.
func (c *Coordinator) load() error {
	files, err := filepath.Glob(filepath.Join(c.saver.dir, "*.json"))
	if err != nil {
		return err
	}
	// What was learned of jobs that were closed just before the end.
	orphans, err := filepath.Glob(filepath.Join(c.saver.dir, "*.learned"))
	if err != nil {
		return err
	}
	for _, f := range orphans {
		if !slices.Contains(files, strings.TrimSuffix(f, ".learned")+".json") {
			_ = os.Remove(f) // stays where it can't be removed, and harms nobody
		}
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
	j, err := s.job(path, c.o.Now())
	if err != nil {
		return nil, err
	}
	if err := j.recall(learnedPath(path)); err != nil {
		c.o.Warn(fmt.Sprintf("%v; job %q keeps its shares and learns anew", err, j.name))
	}
	return j, nil
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

// recall gives a job that holds its shares what was learned before them.
func (j *job) recall(path string) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	b, err := balance.Restore(text)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if b.Options() != j.balancer.Options() {
		return nil // of another global batch or allocator: nothing to go on with
	}
	if !reflect.DeepEqual(b.Workers(), j.workers) {
		if err := b.Change(j.workers); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	if err := b.Adopt(j.shares); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	j.balancer = b
	return nil
}

// Run saves, records and forgets until the context ends, and saves once more.
func (c *Coordinator) Run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var wake chan struct{}
	if c.saver != nil {
		wake = c.saver.wake
	}
	const learned = 30 * time.Second // between files of what was learned
	lastSave, lastHistory := c.o.Now(), c.o.Now()
	for {
		done := false
		select {
		case <-ctx.Done():
			done = true
		case <-wake:
		case <-tick.C:
		}
		now := c.o.Now()
		c.forget(now)
		all := done || now.Sub(lastSave) >= learned
		if all {
			lastSave = now
		}
		c.warn(c.save(all))
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
