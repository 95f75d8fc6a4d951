package main

import (
	"fmt"

	"github.com/cotenant/cotenant/place"
	place_harmony "github.com/cotenant/cotenant/place/harmony"
	"github.com/cotenant/cotenant/train/harmony"
)

// learner makes a trained policy go on learning: compare.Setting's Learner.
func learner(p place.Policy, seed uint64) (place.Policy, error) {
	trained, ok := p.(*place_harmony.Policy)
	if !ok {
		return nil, fmt.Errorf("a policy (%T) that has no network cannot learn; leave learn=1 out", p)
	}
	return harmony.NewOnline(trained, harmony.OnlineOptions{Seed: seed})
}
