package contention

// claim is what one job asks of a resource of a node: a rate, for a number of
// tasks.
type claim struct {
	rate   float64
	weight float64
}

// share is the rate that own gets of a capacity beside others: the weighted
// max-min fair allocation, in which nobody gets more than he asks, and what
// the modest leave is shared by the greedy in proportion to their weights. It
// sorts others.
func share(capacity float64, own claim, others []claim) float64 {
	if own.rate <= 0 {
		return 0
	}
	total := own.rate
	for _, o := range others {
		total += o.rate
	}
	if total <= capacity {
		return own.rate
	}
	byNeed(others)
	// Water rises by level = rate per weight; whoever asks less than the level
	// is served and leaves.
	left, weight := capacity, own.weight
	for _, o := range others {
		weight += o.weight
	}
	need := own.rate / own.weight
	for _, o := range others {
		level := left / weight
		if need <= level {
			return own.rate
		}
		if o.rate > level*o.weight {
			break
		}
		left -= o.rate
		weight -= o.weight
	}
	return min(own.rate, left/weight*own.weight)
}

// byNeed sorts by rate per weight; a node holds few jobs.
func byNeed(claims []claim) {
	for i := 1; i < len(claims); i++ {
		for j := i; j > 0 && less(claims[j], claims[j-1]); j-- {
			claims[j], claims[j-1] = claims[j-1], claims[j]
		}
	}
}

// less breaks ties by weight, so that a sum over the sorted claims does not
// depend on the order in which they came.
func less(a, b claim) bool {
	x, y := a.rate*b.weight, b.rate*a.weight
	return x < y || x == y && a.weight < b.weight
}
