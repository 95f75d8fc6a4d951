package interference

import (
	"math"
	"math/rand/v2"

	"github.com/cotenant/cotenant/internal/num"
)

// A file of a forest holds the measurements and the seed that the trees follow
// from, and grows them again: far smaller than the trees.

// forest is a random forest (Breiman, 2001) for each workload on each class,
// over the counts of the tasks present: the profiler of Metis (SC 2020,
// section 4).
type forest struct {
	space
	// trees[class][metric][workload]
	trees [][][][]tree
	noise []noise // by metric; groups are class x workload
}

const (
	forestTrees = 100
	// minLeaf cells make a leaf: single cells repeat their own noise.
	minLeaf = 2
	// treeSpread scales the disagreement of trees, each grown on a sample of the
	// data, to what the mean of all is worth.
	treeSpread = 0.5
)

// tree is its nodes, the root first. A node with left 0 is a leaf.
type tree []node

type node struct {
	workload, most int32 // go left where there are at most that many tasks of it
	left, right    int32
	value          float32
}

func (t tree) predict(counts []int32) float32 {
	n := &t[0]
	for n.left != 0 {
		if counts[n.workload] <= n.most {
			n = &t[n.left]
		} else {
			n = &t[n.right]
		}
	}
	return n.value
}

// grove is one forest's training data.
type grove struct {
	counts [][]int32
	y      []float64
	shared []bool // more than one task: residuals count
}

func fitForest(d *dataset, o Options) *forest {
	f := &forest{space: d.space, noise: make([]noise, len(metrics))}
	type job struct {
		class, metric, workload int
		residuals               []residual
	}
	var jobs []job
	f.trees = make([][][][]tree, len(d.classes))
	for c := range d.classes {
		f.trees[c] = make([][][]tree, len(metrics))
		for m := range metrics {
			f.trees[c][m] = make([][]tree, len(d.workloads))
			for w := range d.workloads {
				if d.known[c][m][w] {
					jobs = append(jobs, job{class: c, metric: m, workload: w})
				}
			}
		}
	}
	tick := ticker(o.Progress, len(jobs))
	o.parallel(len(jobs), func(i int) {
		j := &jobs[i]
		g := d.grove(j.class, j.metric, j.workload)
		rng := num.Rand(o.Seed, 4, uint64(j.class), uint64(j.metric), uint64(j.workload))
		f.trees[j.class][j.metric][j.workload], j.residuals = g.grow(rng, j.class*len(d.workloads)+j.workload)
		tick(1)
	})
	residuals := make([][]residual, len(metrics))
	for _, j := range jobs {
		residuals[j.metric] = append(residuals[j.metric], j.residuals...)
	}
	for m := range metrics {
		f.noise[m] = fitNoise(residuals[m], len(d.classes)*len(d.workloads), d.shared(m))
	}
	return f
}

func (d *dataset) grove(class, metric, workload int) grove {
	var g grove
	for _, r := range d.rows {
		if r.class != class {
			continue
		}
		for i, o := range r.obs[metric] {
			if r.members[i].workload == workload && o.measured {
				counts := make([]int32, len(d.workloads))
				for _, m := range r.members {
					counts[m.workload] = int32(m.count)
				}
				g.counts = append(g.counts, counts)
				// As a file keeps it, so that the trees grown again are the same.
				g.y = append(g.y, logRatio(float64(float32(o.value))))
				g.shared = append(g.shared, r.tasks() > 1)
			}
		}
	}
	return g
}

// grow returns the trees, each on a bootstrap sample, and the residuals of
// each cell by the trees that had not drawn it.
func (g grove) grow(rng *rand.Rand, group int) ([]tree, []residual) {
	n := len(g.y)
	trees := make([]tree, forestTrees)
	sum, sum2, out := make([]float64, n), make([]float64, n), make([]float64, n)
	drawn := make([]bool, n)
	rows := make([]int32, n)
	b := builder{grove: g}
	for t := range trees {
		clear(drawn)
		for i := range rows {
			k := rng.IntN(n)
			rows[i] = int32(k)
			drawn[k] = true
		}
		b.tree = nil
		b.split(rows)
		trees[t] = b.tree
		for i, in := range drawn {
			if !in {
				p := float64(b.tree.predict(g.counts[i]))
				sum[i] += p
				sum2[i] += p * p
				out[i]++
			}
		}
	}
	var rs []residual
	for i := range n {
		if out[i] < 2 || !g.shared[i] {
			continue
		}
		p := sum[i] / out[i]
		sd := math.Sqrt(max(sum2[i]/out[i]-p*p, 0))
		rs = append(rs, residual{group: group, p: p, err: p - g.y[i], spread: treeSpread * sd})
	}
	return trees, rs
}

// builder grows one tree; sum and count are by number of tasks.
type builder struct {
	grove
	tree  tree
	sum   []float64
	count []int32
}

// split adds the node of rows and, below it, those of its parts; it reorders
// rows. The split is the one that leaves the least squared error.
func (b *builder) split(rows []int32) int32 {
	var total float64
	low, high := math.Inf(1), math.Inf(-1)
	for _, r := range rows {
		total += b.y[r]
		low, high = min(low, b.y[r]), max(high, b.y[r])
	}
	at := int32(len(b.tree))
	b.tree = append(b.tree, node{value: float32(total / float64(len(rows)))})
	if len(rows) < 2*minLeaf || low == high {
		return at
	}
	best, workload, most := 0.0, -1, int32(0)
	for w := range b.counts[0] {
		if gain, at := b.best(rows, w, total); gain > best*(1+1e-12)+1e-12 {
			best, workload, most = gain, w, at
		}
	}
	if workload < 0 {
		return at
	}
	i, j := 0, len(rows)
	for i < j {
		if b.counts[rows[i]][workload] <= most {
			i++
		} else {
			j--
			rows[i], rows[j] = rows[j], rows[i]
		}
	}
	left := b.split(rows[:i])
	right := b.split(rows[i:])
	n := &b.tree[at]
	n.workload, n.most, n.left, n.right = int32(workload), most, left, right
	return at
}

// best finds where to part rows by the count of one workload: the gain is how
// much smaller the sum of squared errors becomes.
func (b *builder) best(rows []int32, w int, total float64) (gain float64, most int32) {
	top := int32(0)
	for _, r := range rows {
		top = max(top, b.counts[r][w])
	}
	if top == 0 {
		return 0, 0
	}
	if int(top) >= len(b.sum) {
		b.sum, b.count = make([]float64, top+1), make([]int32, top+1)
	}
	sum, count := b.sum[:top+1], b.count[:top+1]
	clear(sum)
	clear(count)
	for _, r := range rows {
		c := b.counts[r][w]
		sum[c] += b.y[r]
		count[c]++
	}
	n := float64(len(rows))
	var left, k float64
	for c := range top {
		left += sum[c]
		k += float64(count[c])
		if k < minLeaf || n-k < minLeaf || count[c] == 0 {
			continue
		}
		right := total - left
		if g := left*left/k + right*right/(n-k) - total*total/n; g > gain {
			gain, most = g, c
		}
	}
	return gain, most
}

func (*forest) kind() string { return KindForest }

func (f *forest) answer(c, m int, rows [][]member, out [][]Estimate) {
	counts := make([]int32, len(f.workloads))
	for i, ms := range rows {
		clear(counts)
		for _, t := range ms {
			counts[t.workload] = int32(t.count)
		}
		for j, t := range ms {
			if !f.known[c][m][t.workload] {
				continue
			}
			var sum, sum2 float64
			for _, tree := range f.trees[c][m][t.workload] {
				p := float64(tree.predict(counts))
				sum += p
				sum2 += p * p
			}
			p := sum / forestTrees
			sd := math.Sqrt(max(sum2/forestTrees-p*p, 0))
			out[i][j] = f.noise[m].estimate(c*len(f.workloads)+t.workload, p, treeSpread*sd)
		}
	}
}
