package bench

import (
	"context"
	"fmt"
	"math"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/sim"
)

// progress is how far the jobs of a replay are. It belongs to one goroutine.
type progress struct {
	Replay
	truth   sim.Truth
	view    *cluster.Snapshot
	now     float64 // seconds of the jobs since the beginning
	waiting []*replayed
	running []*replayed
	jct     []float64
	wait    []float64
}

// replayed is a job that was or will be submitted.
type replayed struct {
	*sim.Job
	left, rate float64 // seconds of work, and of work a second
}

// drive submits the jobs, watches where their pods are bound, and ends them
// when their work is done.
func (p Replay) drive(ctx context.Context, c kubernetes.Interface) (JobsResult, error) {
	r := JobsResult{Scheduler: p.Scheduler.Name, Rate: p.Rate}
	view, err := cluster.NewSnapshot(cluster.Spec{Nodes: p.Testbed.Nodes, Workloads: p.Testbed.Declared})
	if err != nil {
		return r, err
	}
	s := &progress{Replay: p, truth: p.Testbed.Truth(), view: view}
	for i := range p.Jobs {
		s.waiting = append(s.waiting, &replayed{Job: &p.Jobs[i], left: p.Jobs[i].Work})
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	seen, err := watchBindings(watching, c)
	if err != nil {
		return r, err
	}
	group, ctx := errgroup.WithContext(ctx)
	begin := time.Now()
	clock := &clock{rate: p.Rate, settle: p.Settle, from: begin}
	group.Go(func() error {
		submitted := 0
		for happened := begin; len(s.jct) < len(p.Jobs); {
			next := s.next()
			if submitted < len(p.Jobs) {
				next = min(next, p.Jobs[submitted].Arrival.Seconds())
			}
			timer := time.NewTimer(min(p.Patience, time.Until(clock.when(next))))
			select {
			case <-ctx.Done():
				timer.Stop()
				return ctx.Err()
			case <-seen.changed:
			case <-timer.C:
			}
			timer.Stop()
			ended, began, err := s.pass(clock.now(time.Now()), seen.where)
			if err != nil {
				return err
			}
			for _, j := range ended {
				group.Go(func() error { return finishJob(ctx, c, j) })
			}
			events := len(ended) + began
			for submitted < len(p.Jobs) && p.Jobs[submitted].Arrival.Seconds() <= s.now {
				if err := p.Testbed.submitJob(ctx, c, &p.Jobs[submitted], p.Scheduler.SchedulerName); err != nil {
					return err
				}
				submitted++
				events++
			}
			if events > 0 {
				happened = time.Now()
				clock.hold(s.now, happened)
			} else if time.Since(happened) > p.Patience && len(s.running) == 0 && submitted == len(p.Jobs) {
				return fmt.Errorf("%d of %d jobs have ended, and nothing happened for %v", len(s.jct), len(p.Jobs), p.Patience)
			}
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		return r, err
	}
	r.summary(s.jct, s.wait)
	r.Makespan, r.Seconds = s.now-p.Jobs[0].Arrival.Seconds(), time.Since(begin).Seconds()
	_, err = seen.placement()
	return r, err
}

// clock tells the jobs' time: it stands still for a while after each event, in
// which the scheduler does what is to be done, and then goes at a rate.
type clock struct {
	rate   float64
	settle time.Duration
	at     float64   // seconds of the jobs
	from   time.Time // when it goes on from there
}

func (c *clock) now(t time.Time) float64 {
	return c.at + max(0, t.Sub(c.from).Seconds())*c.rate
}

// when is the time at which it will show an instant, a day ahead at most.
func (c *clock) when(at float64) time.Time {
	const day = 24 * 3600
	return c.from.Add(time.Duration(math.Ceil(min(max(0, at-c.at)/c.rate, day) * 1e9)))
}

// hold lets it stand still.
func (c *clock) hold(at float64, t time.Time) { c.at, c.from = at, t.Add(c.settle) }

// next is when the first of the running jobs ends.
func (s *progress) next() float64 {
	first := math.Inf(1)
	for _, j := range s.running {
		first = min(first, s.now+j.left/j.rate)
	}
	return first
}

// pass lets the jobs work until an instant, ends those that are done, and
// begins those of which all pods are bound by then.
func (s *progress) pass(to float64, where func(pod string) string) (ended []*sim.Job, began int, err error) {
	var still []*replayed
	for _, j := range s.running {
		j.left -= j.rate * (to - s.now)
		if j.left > 1e-6 {
			still = append(still, j)
			continue
		}
		ended = append(ended, j.Job)
		s.jct = append(s.jct, to-j.Arrival.Seconds())
	}
	s.now, s.running = to, still
	var wait []*replayed
	var added []cluster.Running
	for _, j := range s.waiting {
		tasks := placed(j.Job, where)
		if tasks == nil {
			wait = append(wait, j)
			continue
		}
		added = append(added, tasks...)
		s.running = append(s.running, j)
		s.wait = append(s.wait, to-j.Arrival.Seconds())
		began++
	}
	s.waiting = wait
	if len(ended)+began == 0 {
		return nil, 0, nil
	}
	return ended, began, s.change(ended, added)
}

// placed is a job's tasks where their pods are; nil unless all are bound.
func placed(j *sim.Job, where func(pod string) string) []cluster.Running {
	out := make([]cluster.Running, 0, len(j.Tasks))
	for _, task := range j.Tasks {
		node := where(taskPod(task.ID))
		if node == "" {
			return nil
		}
		out = append(out, cluster.Running{Task: task, Node: node, Group: j.Name})
	}
	return out
}

// change asks the truth how fast all go now.
func (s *progress) change(ended []*sim.Job, added []cluster.Running) error {
	gone := map[string]bool{}
	for _, j := range ended {
		gone[j.Name] = true
	}
	var at []int
	for i, r := range s.view.Running() {
		if gone[r.Group] {
			at = append(at, i)
		}
	}
	var err error
	if s.view, err = s.view.Next(at, added); err != nil {
		return err
	}
	var all []cluster.TaskID
	for _, r := range s.view.Running() {
		all = append(all, r.ID)
	}
	rates := s.truth.Rates(s.view, all)
	for _, j := range s.running {
		j.rate = math.Inf(1)
		for _, task := range j.Tasks {
			if task.Role == cluster.Worker {
				j.rate = min(j.rate, rates[task.ID])
			}
		}
		if !(j.rate > 0) || math.IsInf(j.rate, 1) {
			return fmt.Errorf("job %s goes at %g of its speed", j.Name, j.rate)
		}
	}
	return nil
}
