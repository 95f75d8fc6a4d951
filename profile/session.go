package profile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

// Session measures co-locations of a suite, one after the other.
type Session struct {
	Suite   *Suite
	Measure Measure
	Log     *Log
	// Class names the hardware of this machine in the samples.
	Class string
	// Cgroups limits the tasks; nil runs them without limits.
	Cgroups *Cgroups
	// Cache keeps what workloads prepare, between sessions; Work is for the
	// tasks' own folders, which are removed. Both must exist.
	Cache, Work string
	// MaxDuration ends Run with ErrPaused before a step that would pass it; 0
	// means no limit.
	MaxDuration time.Duration
	// Progress, if set, is told before each step and after the last.
	Progress func(Progress)

	// Warn, if set, is told in words when others use the machine meanwhile.
	Warn func(string)

	keeper *keeper
	ports  ports
	tasks  int // for unique names
}

// Progress is where Run or Verify stands: Done of Total steps, besides those
// that were on record already. Next is nil at the end.
type Progress struct {
	Done, Total, Recorded int
	Next                  cluster.Colocation
}

// ErrPaused is Run's result when MaxDuration is over; running again goes on.
var ErrPaused = errors.New("paused: the time is over; run the same command to go on")

// Check reports what is missing on this machine for the named workloads, all
// of it at once.
func (s *Suite) Check(names []string) error {
	var missing []string
	for _, name := range names {
		w, err := s.Workload(name)
		if err != nil {
			return err
		}
		for _, n := range w.Needs {
			what, found := n.Program, true
			if n.Program != "" {
				_, err := lookProgram(n.Program)
				found = err == nil || executable(n.Program)
			}
			if n.Python != "" {
				what = "python3 module " + n.Python
				found = exec.Command("/usr/bin/python3", "-c", "import importlib.util as u, sys; sys.exit(u.find_spec(sys.argv[1]) is None)", n.Python).Run() == nil
			}
			if !found {
				text := fmt.Sprintf("workload %s needs %s", name, what)
				if n.Package != "" {
					text += fmt.Sprintf("; apt-get install %s", n.Package)
				}
				missing = append(missing, text)
			}
		}
	}
	if missing != nil {
		return errors.New("not installed:\n  " + strings.Join(missing, "\n  "))
	}
	return nil
}

func executable(path string) bool {
	matches, _ := filepath.Glob(path)
	return len(matches) > 0
}

// Run goes through the plan and skips what is on record. It returns ctx's
// error when interrupted, ErrPaused when its time is over.
func (s *Session) Run(ctx context.Context, plan []Step) error {
	begin := time.Now()
	k, err := startKeeper()
	if err != nil {
		return err
	}
	s.keeper = k
	defer k.close()
	have := map[string]int{}
	var todo []Step
	for _, step := range plan {
		key := step.Colocation.Key()
		if _, ok := have[key]; !ok {
			have[key] = s.Log.Repeats(s.Class, step.Colocation)
		}
		if have[key] < step.Repeats {
			todo = append(todo, step)
			have[key] = step.Repeats
		}
	}
	if err := s.prepare(ctx, todo); err != nil {
		return err
	}
	started := time.Now()
	for i, step := range todo {
		if err := ctx.Err(); err != nil {
			return err
		}
		var each time.Duration
		if i > 0 {
			each = time.Since(started) / time.Duration(i)
		}
		s.tell(Progress{i, len(todo), len(plan) - len(todo), step.Colocation})
		if s.MaxDuration > 0 && time.Since(begin)+each > s.MaxDuration {
			return ErrPaused
		}
		if err := s.step(ctx, step); err != nil {
			return fmt.Errorf("%s: %w", step.Colocation.Key(), err)
		}
	}
	s.tell(Progress{len(todo), len(todo), len(plan) - len(todo), nil})
	return nil
}

func (s *Session) tell(p Progress) {
	if s.Progress != nil {
		s.Progress(p)
	}
}

// step measures what the record lacks. A start may fail by chance (a port that
// somebody took), so it is tried twice.
func (s *Session) step(ctx context.Context, step Step) error {
	var err error
	for range 2 {
		n := step.Repeats - s.Log.Repeats(s.Class, step.Colocation)
		if err = s.colocation(ctx, step.Colocation, n, s.Log.Append); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// Once measures one co-location now and returns its repeats, unrecorded.
func (s *Session) Once(ctx context.Context, c cluster.Colocation) ([]history.Sample, error) {
	k, err := startKeeper()
	if err != nil {
		return nil, err
	}
	s.keeper = k
	defer k.close()
	if err := s.prepare(ctx, []Step{{Colocation: c}}); err != nil {
		return nil, err
	}
	var out []history.Sample
	err = s.colocation(ctx, c, s.Measure.Repeats, func(repeat []history.Sample) error {
		out = append(out, repeat...)
		return nil
	})
	return out, err
}

// prepare fills the cache of each workload that the steps use.
func (s *Session) prepare(ctx context.Context, steps []Step) error {
	done := map[string]bool{}
	for _, step := range steps {
		for _, name := range step.Colocation.Workloads() {
			w, err := s.Suite.Workload(name)
			if err != nil {
				return err
			}
			if done[name] || len(w.Prepare) == 0 {
				continue
			}
			done[name] = true
			if err := s.prepareOne(ctx, w); err != nil {
				return fmt.Errorf("preparing %s: %w", name, err)
			}
		}
	}
	return nil
}

func (s *Session) prepareOne(ctx context.Context, w *Workload) error {
	dir := s.cache(w)
	mark := dir + ".prepared"
	want := strings.Join(w.Prepare, "\x00")
	if text, err := os.ReadFile(mark); err == nil && string(text) == want {
		return nil
	}
	if err := errors.Join(os.RemoveAll(dir), os.RemoveAll(mark)); err != nil {
		return err
	}
	if err := makeDir(dir, w.User); err != nil {
		return err
	}
	values := map[string]string{"cache": dir, "dir": dir, "suite": s.Suite.Dir, "cotenant": self(), "instance": "0"}
	err := s.keeper.run(ctx, launch{
		what: w.Name + " prepare", argv: w.Prepare.expand(values), dir: dir,
		env: environment(w, values), user: w.User,
	})
	if err != nil {
		return err
	}
	return os.WriteFile(mark, []byte(want), 0o644)
}

func (s *Session) cache(w *Workload) string {
	return filepath.Join(s.Cache, strings.ReplaceAll(w.Name, "/", "_"))
}

// self is the path of the running program: {{cotenant}}.
func self() string {
	path, err := os.Executable()
	if err != nil {
		return "cotenant"
	}
	return path
}

func environment(w *Workload, values map[string]string) []string {
	var env []string
	for k, v := range w.Environment {
		env = append(env, k+"="+expand(v, values))
	}
	return env
}
