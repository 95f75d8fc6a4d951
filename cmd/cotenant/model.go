package main

import (
	"bytes"
	"fmt"

	"github.com/cotenant/cotenant/interference"
)

// readModel reads a model file.
func readModel(in *inputs, file string) (interference.Model, error) {
	content, err := in.read("model", file)
	if err != nil {
		return nil, err
	}
	m, err := interference.Load(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("--model %s: %w", file, err)
	}
	return m, nil
}
