// Package placetest has what tests of policies share: a model of interference,
// numbers that look random but are the same for the same question, with silence
// where a test asks for it; worlds of training jobs that run on from decision to
// decision; and large clusters for benchmarks.
//
//	rapid.Check(t, func(t *rapid.T) {
//		w := placetest.DrawWorld(t, placetest.Kind{Most: 4})
//		w.Arrive(t)
//		d, err := policy.Place(w.Request())
//		// hold d against what must be true
//		w.Apply(t, d)
//	})
package placetest
