package profile

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

// task is one running instance of a workload.
type task struct {
	workload *Workload
	name     string // redis#2, for errors
	dir      string
	values   map[string]string
	group    *Group
	reader   *reader
	server   *process
	driver   *process
	ready    chan struct{} // a line of the server said so
}

// colocation starts the tasks, waits until all of them are pressed upon, and
// gives keep each window's samples.
func (s *Session) colocation(ctx context.Context, c cluster.Colocation, repeats int, keep func([]history.Sample) error) (err error) {
	tasks, err := s.newTasks(c)
	defer func() { err = errors.Join(err, s.stop(tasks)) }()
	if err != nil {
		return err
	}
	// Servers first, all at once, then drivers: nobody is measured while
	// another one still starts.
	each := func(f func(context.Context, *task) error) error {
		g, ctx := errgroup.WithContext(ctx)
		for _, t := range tasks {
			g.Go(func() error { return f(ctx, t) })
		}
		return g.Wait()
	}
	if err := each(s.serve); err != nil {
		return err
	}
	if err := each(s.drive); err != nil {
		return err
	}
	if err := s.sleep(ctx, tasks, s.Measure.WarmUp); err != nil {
		return err
	}
	for range repeats {
		repeat, err := s.quietWindow(ctx, c, tasks)
		if err != nil {
			return err
		}
		if err := keep(repeat); err != nil {
			return err
		}
	}
	return nil
}

func (s *Session) newTasks(c cluster.Colocation) ([]*task, error) {
	var tasks []*task
	for _, name := range c.Workloads() {
		w, err := s.Suite.Workload(name)
		if err != nil {
			return tasks, err
		}
		for i := range c[name] {
			s.tasks++
			t := &task{
				workload: w, name: fmt.Sprintf("%s#%d", name, i), ready: make(chan struct{}),
				dir:    filepath.Join(s.Work, strconv.Itoa(s.tasks)),
				reader: &reader{read: &w.Read},
			}
			tasks = append(tasks, t)
			port, err := s.ports.next()
			if err != nil {
				return tasks, err
			}
			port2, err := s.ports.next()
			if err != nil {
				return tasks, err
			}
			t.values = map[string]string{
				"port": strconv.Itoa(port), "port2": strconv.Itoa(port2), "dir": t.dir, "cache": s.cache(w),
				"suite": s.Suite.Dir, "cotenant": self(), "instance": strconv.Itoa(s.tasks),
			}
			if err := makeDir(t.dir, w.User); err != nil {
				return tasks, err
			}
			if s.Cgroups == nil {
				continue
			}
			t.group, err = s.Cgroups.New(fmt.Sprintf("cotenant-%d-%d", os.Getpid(), s.tasks), w.Limits)
			if err != nil {
				return tasks, err
			}
			for _, d := range t.group.Dirs {
				s.keeper.tell("+dir %s", d)
			}
		}
	}
	return tasks, nil
}

func (s *Session) launch(t *task, what string, c Command) launch {
	return launch{
		what: t.name + " " + what, argv: c.expand(t.values), dir: t.dir,
		env: environment(t.workload, t.values), user: t.workload.User, cgroup: t.group,
	}
}

// serve brings a task to the point where it can be driven.
func (s *Session) serve(ctx context.Context, t *task) (err error) {
	w := t.workload
	if len(w.Setup) > 0 {
		if err := s.keeper.run(ctx, s.launch(t, "setup", w.Setup)); err != nil {
			return err
		}
	}
	if len(w.Server) == 0 {
		return nil
	}
	l := s.launch(t, "server", w.Server)
	said := false
	l.line = func(at time.Time, text []byte) {
		if w.Ready.line != nil && !said && w.Ready.line.Match(text) {
			said = true
			close(t.ready)
		}
		if w.Read.From == FromServer {
			t.reader.line(at, text)
		}
	}
	if t.server, err = s.keeper.start(l); err != nil {
		return err
	}
	if err := t.awaitReady(ctx); err != nil {
		return err
	}
	if len(w.Load) > 0 {
		return s.keeper.run(ctx, s.launch(t, "load", w.Load))
	}
	return nil
}

func (t *task) awaitReady(ctx context.Context) error {
	r := t.workload.Ready
	deadline := time.After(r.Timeout)
	for waitLine, waitTCP := r.line != nil, r.TCP != ""; waitLine || waitTCP; {
		said := t.ready
		if !waitLine {
			said = nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.server.done:
			return t.server.died()
		case <-deadline:
			return fmt.Errorf("%s server: not ready after %s; its last output:\n%s", t.name, r.Timeout, t.server.tail.text())
		case <-said:
			waitLine = false
		case <-time.After(10 * time.Millisecond):
			if !waitTCP {
				continue
			}
			conn, err := net.DialTimeout("tcp", expand(r.TCP, t.values), time.Second)
			if err == nil {
				_ = conn.Close()
				waitTCP = false
			}
		}
	}
	return nil
}

// drive starts the driver and waits for the first reading.
func (s *Session) drive(ctx context.Context, t *task) (err error) {
	if len(t.workload.Driver) > 0 {
		l := s.launch(t, "driver", t.workload.Driver)
		if t.workload.Read.From == FromDriver {
			l.line = t.reader.line
		}
		if t.driver, err = s.keeper.start(l); err != nil {
			return err
		}
	}
	deadline := time.Now().Add(t.workload.Ready.Timeout)
	for t.reader.count() == 0 {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: no reading after %s: does read.rate.match fit? The last output:\n%s", t.name, t.workload.Ready.Timeout, t.output().tail.text())
		}
		if err := s.sleep(ctx, []*task{t}, 10*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func (t *task) output() *process {
	if t.workload.Read.From == FromDriver {
		return t.driver
	}
	return t.server
}

// sleep waits, and fails when a task ends meanwhile.
func (s *Session) sleep(ctx context.Context, tasks []*task, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
	}
	for _, t := range tasks {
		for _, p := range []*process{t.server, t.driver} {
			if p == nil {
				continue
			}
			select {
			case <-p.done:
				return p.died()
			default:
			}
		}
	}
	return nil
}

// quietWindow measures one repeat, again while others use the machine. After
// three times it is kept as it is, with a warning.
func (s *Session) quietWindow(ctx context.Context, c cluster.Colocation, tasks []*task) ([]history.Sample, error) {
	for again := 0; ; again++ {
		before, began := processes(), time.Now()
		repeat, err := s.window(ctx, c, tasks)
		if err != nil {
			return nil, err
		}
		took := time.Since(began)
		used, who := foreign(before, processes(), ours(tasks), took*time.Duration(runtime.NumCPU()))
		cores := used.Seconds() / took.Seconds()
		if cores <= maxForeign {
			return repeat, nil
		}
		if s.Warn != nil {
			what := "measuring again"
			if again == 3 {
				what = "kept all the same; stop it, and measure again"
			}
			s.Warn(fmt.Sprintf("%s: other processes used %.2f cores, most of all %s: %s", c.Key(), cores, who, what))
		}
		if again == 3 {
			return repeat, nil
		}
	}
}

// window measures one repeat. Where a slow task has no reading yet, the window
// is made longer for all, up to four times.
func (s *Session) window(ctx context.Context, c cluster.Colocation, tasks []*task) ([]history.Sample, error) {
	from := time.Now()
	for wait := s.Measure.Window; ; wait = s.Measure.Window / 8 {
		if err := s.sleep(ctx, tasks, wait); err != nil {
			return nil, err
		}
		to := time.Now()
		values := make([]map[history.Metric]float64, len(tasks))
		var silent *task
		for i, t := range tasks {
			var ok bool
			if values[i], ok = t.reader.window(from, to); !ok {
				silent = t
			}
		}
		if silent == nil {
			return s.samples(c, tasks, values, from, to), nil
		}
		if to.Sub(from) > 4*s.Measure.Window {
			return nil, fmt.Errorf("%s: no complete reading in %s; make the window longer, or let it print more often; its last output:\n%s",
				silent.name, to.Sub(from).Round(time.Millisecond), silent.output().tail.text())
		}
	}
}

// samples averages over the tasks of each workload. The rate comes last: it
// ends the workload's part of the record.
func (s *Session) samples(c cluster.Colocation, tasks []*task, values []map[history.Metric]float64, from, to time.Time) []history.Sample {
	var out []history.Sample
	for _, name := range c.Workloads() {
		w, _ := s.Suite.Workload(name)
		for _, metric := range []history.Metric{history.P50, history.P99, history.Rate} {
			sum, n := 0.0, 0
			for i, t := range tasks {
				if v, ok := values[i][metric]; ok && t.workload == w {
					sum += v
					n++
				}
			}
			if n == 0 {
				continue
			}
			out = append(out, history.Sample{
				Source: source, Class: s.Class, Scope: history.ScopeNode, Colocation: c,
				Start: from.UTC().Truncate(time.Millisecond), End: to.UTC().Truncate(time.Millisecond),
				Workload: name, Role: w.Role, Job: w.Job, Span: w.Span, BatchSize: w.BatchSize,
				Metric: metric, Value: round(sum / float64(n)), Repeats: 1,
			})
		}
	}
	return out
}

// round keeps six significant digits: more than any reading has.
func round(v float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64)
	if err != nil {
		return v
	}
	return r
}

// stop ends the tasks, all at once, and removes what they left.
func (s *Session) stop(tasks []*task) error {
	var g errgroup.Group
	for _, t := range tasks {
		g.Go(func() error {
			for _, p := range []*process{t.driver, t.server} {
				if p != nil {
					p.stop(s.keeper)
				}
			}
			var err error
			if t.group != nil {
				err = t.group.Close()
				for _, d := range t.group.Dirs {
					s.keeper.tell("-dir %s", d)
				}
			}
			return errors.Join(err, removeDir(t.dir))
		})
	}
	return g.Wait()
}

// removeDir removes a folder, for a second against processes that still write
// into it: outside cgroups, a server's own children may end a little later.
func removeDir(path string) error {
	for end := time.Now().Add(time.Second); ; {
		err := os.RemoveAll(path)
		if err == nil || time.Now().After(end) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// makeDir makes a folder that belongs to the user, where we are root.
func makeDir(path, name string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	if name == "" || os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return fmt.Errorf("user %q: %w; install the package that makes it, or change the field user", name, err)
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	return os.Chown(path, uid, gid)
}

// ports hands out ports below the range that the kernel gives to clients.
type ports struct{ last int }

func (p *ports) next() (int, error) {
	const first, end = 20000, 30000
	for range end - first {
		if p.last++; p.last < first || p.last >= end {
			p.last = first
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p.last))
		if err == nil {
			return p.last, l.Close()
		}
	}
	return 0, fmt.Errorf("no free port between %d and %d", first, end)
}
