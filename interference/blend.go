package interference

import "math"

// blend fits kin, decides by the errors on left-out co-locations how much the
// networks count beside it, and makes left what both say together.
func (n *neural) blend(d *dataset, left []leftOut) {
	prior := kinPrior(n.workloads)
	if prior == nil {
		return
	}
	w, tables := len(n.workloads), len(n.classes)*len(n.metrics)
	k := &kin{
		width: w, weight: make([]float32, tables*w*(w+1)), std: make([]float32, tables*w*w),
		least: make([]float32, tables), most: make([]float32, tables), networks: make([]float32, tables),
	}
	alone := true
	for at := range tables {
		k.networks[at] = 1
		class, metric := at/len(n.metrics), at%len(n.metrics)
		cells := k.cells(d, class, n.metrics[metric])
		p, ok := fitKin(prior, cells)
		if !ok {
			continue
		}
		k.least[at], k.most[at] = span(cells)
		said := map[[2]int]int{} // by row and member
		for i, c := range cells {
			said[[2]int{c.row, c.member}] = i
		}
		var both []blended
		for i := range left {
			if o := &left[i]; o.metric == metric && d.rows[o.row].class == class {
				if j, ok := said[[2]int{o.row, o.member}]; ok {
					both = append(both, blended{o, k.within(at, p.left[j]), p.leftStd[j]})
				}
			}
		}
		share := bestShare(both)
		if share == 1 {
			continue
		}
		alone = false
		k.networks[at] = float32(share)
		k.keep(at, p)
		for _, b := range both {
			b.p, b.spread = blendOf(share, b.p, b.spread, b.kin, b.std)
			b.err = b.p - b.value
		}
	}
	if !alone {
		n.kin = k
	}
}

// span of what was measured, and 0, the logarithm of running alone.
func span(cells []kinCell) (least, most float32) {
	for _, c := range cells {
		least, most = min(least, float32(c.y)), max(most, float32(c.y))
	}
	return least, most
}

// blended is what the networks and kin say of a cell that neither had seen.
type blended struct {
	*leftOut
	kin, std float64
}

// bestShare is the weight of the networks with the least mean error; the
// larger of equals.
func bestShare(both []blended) float64 {
	best, least := 1.0, math.Inf(1)
	for _, share := range kinShares {
		err := 0.0
		for _, b := range both {
			err += math.Abs(share*b.p + (1-share)*b.kin - b.value)
		}
		if err <= least {
			best, least = share, err
		}
	}
	return best
}

// blendOf weighs two predictions of a logarithm with their spreads.
func blendOf(share, networks, spread, kin, std float64) (mean, both float64) {
	return share*networks + (1-share)*kin, math.Hypot(share*spread, (1-share)*std)
}

// keep stores a posterior as the table of one class and metric.
func (k *kin) keep(at int, p posterior) {
	for i := range k.table(at) {
		k.table(at)[i] = float32(p.mean.AtVec(i))
	}
	for w := range k.width {
		for v := range k.width {
			k.stds(at)[w*k.width+v] = float32(p.std(k.width, w, v))
		}
	}
}
