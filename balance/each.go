package balance

// ObserveEach is Observe with an error, or nil, for each report.
func (b *Balancer) ObserveEach(reports []Report) []error {
	b.Learn()
	noise := b.noise()
	refused := make([]error, len(reports))
	for i, r := range reports {
		refused[i] = b.observe(r, noise)
	}
	if _, learns := b.allocator.(*byGPU); b.untrained && !learns {
		b.forecaster.forecast()
	}
	return refused
}
