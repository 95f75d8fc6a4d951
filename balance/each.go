package balance

// ObserveEach is Observe with an error, or nil, for each report.
func (b *Balancer) ObserveEach(reports []Report) []error {
	b.Learn()
	refused := make([]error, len(reports))
	for i, r := range reports {
		refused[i] = b.observe(r)
	}
	if b.untrained {
		b.forecaster.forecast()
	}
	return refused
}
