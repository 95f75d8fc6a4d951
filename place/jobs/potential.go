package jobs

// Potential is how welcome one more task is in a co-location: the mean, over
// the workloads that the model knows on the class, of what it would add to the
// sum of performances, counting what would take away as nothing; 0 where
// nothing is known. It is remembered until the co-locations are forgotten.
func (s *Speeds) Potential(c Config) float64 {
	if s.potentialEpoch != s.epoch {
		s.potential, s.potentialEpoch = s.potential[:0], s.epoch
	}
	for int(c) >= len(s.potential) {
		s.potential = append(s.potential, -1)
	}
	if s.potential[c] < 0 {
		s.potential[c] = s.welcome(c)
	}
	return s.potential[c]
}

func (s *Speeds) welcome(c Config) float64 {
	if s.model == nil {
		return 1
	}
	known := s.model.Workloads(s.modelClass(s.configs[c].class))
	if len(known) == 0 {
		return 0
	}
	var ask []Config
	for _, w := range known {
		ask = append(ask, s.Next(c, s.Number(w)))
	}
	s.ask(ask)
	sum := 0.0
	for i, w := range known {
		if s.Fits(ask[i]) {
			sum += max(0, s.Added(c, s.Number(w)))
		}
	}
	return sum / float64(len(known))
}

// Added is by how much the sum of performances in a co-location changes if a
// task of workload w joins: its own less what the others lose.
func (s *Speeds) Added(c Config, w int32) float64 {
	next := s.Next(c, w)
	sum := s.Performance(next, w)
	for _, m := range s.configs[c].members {
		sum += float64(m.count) * (s.Performance(next, m.workload) - s.Performance(c, m.workload))
	}
	return sum
}
