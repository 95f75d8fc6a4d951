package main

import (
	"fmt"

	"github.com/cotenant/cotenant/interference"
)

// readModel reads a model file.
func readModel(in *inputs, file string) (interference.Model, error) {
	data, err := in.read("model", file)
	if err != nil {
		return nil, err
	}
	_ = data
	return nil, fmt.Errorf("--model %s: cannot be read", file)
}
