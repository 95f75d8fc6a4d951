package jobs

import (
	"slices"

	"github.com/cotenant/cotenant/place"
)

// Scales is implemented by an Alone that knows jobs of other sizes;
// history.AloneRates does. Scale is the rate alone of a job of the given number
// of workers over that of one of own workers, each on its fastest class of
// those given; ok is false where nobody knows.
type Scales interface {
	Scale(workload string, own, workers int, classes []string) (scale float64, ok bool)
}

type scaleKey struct{ workload, own, workers int32 }

// scaleOf is by what factor a job of the workload is faster with a number of
// workers than with its own; 0 where nobody knows.
func (b *Board) scaleOf(w, own, workers int32) float64 {
	if own == workers {
		return 1
	}
	known, ok := b.speeds.options.Alone.(Scales)
	if !ok {
		return 0
	}
	key := scaleKey{w, own, workers}
	v, met := b.scales[key]
	if !met {
		v, ok = known.Scale(b.speeds.workloads[w], int(own), int(workers), b.usable)
		if !ok {
			v = 0
		}
		b.scales[key] = v
	}
	return v
}

// Faster is by what factor a job of the workload is believed to go faster with a
// number of workers than with its own. Where nobody knows, every worker goes as
// fast in one as in the other.
func (b *Board) Faster(workload string, own, workers int) float64 {
	if v := b.scaleOf(b.speeds.Number(workload), int32(own), int32(workers)); v > 0 {
		return v
	}
	return float64(workers) / float64(max(own, 1))
}

// rescale follows a change of a gang's number of workers.
func (b *Board) rescale(g int32) {
	k := &b.gangs[g]
	k.scale = 1
	if k.sizes == nil || k.workers == 0 {
		return
	}
	k.scale = b.Faster(b.speeds.workloads[b.workerOf(k)], len(k.sizes.Workers), int(k.workers))
	b.touchGang(g)
}

// workerOf is the workload of a gang's workers.
func (b *Board) workerOf(k *gang) int32 {
	for _, t := range k.tasks {
		if !b.tasks[t].ps {
			return b.tasks[t].workload
		}
	}
	return 0
}

// Scale is a gang's speed alone with the workers that it has on the board over
// that with its own: 1 for one that was not scaled.
func (b *Board) Scale(g int) float64 { return b.gangs[g].scale }

// Bounds are the least and the most workers that a gang may have; both 0 where
// it does not scale.
func (b *Board) Bounds(g int) (least, most int) {
	if z := b.gangs[g].sizes; z != nil {
		return z.MinWorkers, z.MaxWorkers
	}
	return 0, 0
}

// Shrinkable reports whether a gang can have a worker less.
func (b *Board) Shrinkable(g int) bool {
	k := &b.gangs[g]
	return k.sizes != nil && b.rules == nil && int(k.workers) > max(1, k.sizes.MinWorkers) && b.worker(k, int(k.workers)-1) >= 0 &&
		b.scaleOf(b.workerOf(k), int32(len(k.sizes.Workers)), k.workers-1) > 0
}

// Growable reports whether a gang can have a worker more: one that lost a
// worker which runs cannot get another in the same decision.
func (b *Board) Growable(g int) bool {
	k := &b.gangs[g]
	return k.sizes != nil && b.rules == nil && k.workers > 0 && int(k.workers) < k.sizes.MaxWorkers && (k.waits || k.net >= 0) &&
		b.scaleOf(b.workerOf(k), int32(len(k.sizes.Workers)), k.workers+1) > 0
}

// worker is the i-th worker of a gang that scales, -1 where it has none of that
// name.
func (b *Board) worker(k *gang, i int) int32 {
	id := k.sizes.WorkerID(k.name, i)
	for _, t := range k.tasks {
		if b.tasks[t].id == id {
			return t
		}
	}
	return -1
}

// Grow gives a gang that is Growable one more worker, which is placed nowhere
// yet, and returns it: Put it, or Undo.
func (b *Board) Grow(g int) (t int) {
	k := &b.gangs[g]
	like := k.tasks[slices.IndexFunc(k.tasks, func(t int32) bool { return !b.tasks[t].ps })]
	fresh := b.tasks[like]
	fresh.id = k.sizes.WorkerID(k.name, int(k.workers))
	fresh.site, fresh.home, fresh.run, fresh.movable = -1, -1, -1, false
	fresh.on, fresh.homeOn, fresh.reason = nil, nil, place.Reason{}
	n := b.addTask(fresh)
	k.net++
	b.log = append(b.log, step{task: n, join: true})
	b.resettle(int32(g))
	return int(n)
}

// Shrink takes the last worker of a gang that is Shrinkable, from where it is.
func (b *Board) Shrink(g int) {
	k := &b.gangs[g]
	t := b.worker(k, int(k.workers)-1)
	if b.tasks[t].site >= 0 {
		b.Lift(int(t))
	}
	at := slices.Index(k.tasks, t)
	k.tasks = slices.Delete(k.tasks, at, at+1)
	k.net--
	b.log = append(b.log, step{task: t, part: true, at: int32(at)})
	b.resettle(int32(g))
}

// unsize takes back a Grow or a Shrink whose task is placed nowhere.
func (b *Board) unsize(u step) {
	g := b.tasks[u.task].gang
	k := &b.gangs[g]
	if u.part {
		k.tasks = slices.Insert(k.tasks, int(u.at), u.task)
		k.net++
	} else {
		k.tasks = k.tasks[:len(k.tasks)-1]
		b.freeTasks = append(b.freeTasks, u.task)
		k.net--
	}
	b.resettle(g)
}

// resettle values a gang whose number of tasks changed, and counts it anew where
// it waits.
func (b *Board) resettle(g int32) {
	k := &b.gangs[g]
	b.touchGang(g)
	b.dirty = append(b.dirty, g)
	b.settle()
	if !k.waits {
		return
	}
	for i := range b.waiting {
		w := &b.waiting[i]
		if w.gang != g {
			continue
		}
		k.wants = 0
		for _, t := range k.tasks {
			k.wants += b.tasks[t].wants
		}
		k.kind = b.kindOf(k, w.whole)
		w.tasks, w.wants, w.kind = int32(len(k.tasks)), k.wants, k.kind
		return
	}
}

// resizes lists the gangs that run, or are bound, with another number of workers
// than before.
func (b *Board) resizes(d *place.Decision) {
	seen := map[int32]bool{}
	for _, u := range b.log {
		g := b.tasks[u.task].gang
		if !u.join && !u.part || seen[g] {
			continue
		}
		seen[g] = true
		k := &b.gangs[g]
		if k.net == 0 || k.waits && b.placed[g] == 0 {
			continue
		}
		d.Resize = append(d.Resize, place.Resize{Group: k.name, Workers: int(k.workers)})
		for _, t := range k.tasks {
			if x := &b.tasks[t]; x.run < 0 && x.site >= 0 && !k.waits {
				b.bind(d, x)
			}
		}
		if u.part {
			explain(d, &b.tasks[u.task])
		}
	}
}
