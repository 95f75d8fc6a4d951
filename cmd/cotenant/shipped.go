package main

import (
	"fmt"

	"github.com/cotenant/cotenant/data"
	"github.com/cotenant/cotenant/history"
)

// shippedSamples are the measurements inside the program.
func shippedSamples() ([]history.Sample, string, error) {
	samples, err := data.Samples()
	if err != nil {
		return nil, "", fmt.Errorf("the measurements that ship: %w", err)
	}
	return samples, "the measurements that ship", nil
}
