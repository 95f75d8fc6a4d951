package metis

import (
	"bytes"
	_ "embed" // the policy that ships
	"fmt"
)

//go:embed services.safetensors
var shipped []byte

// Shipped is the policy that comes with the program. Each call reads it anew:
// the caller may change what it gets.
func Shipped() (*File, error) {
	f, err := Load(bytes.NewReader(shipped))
	if err != nil {
		return nil, fmt.Errorf("the policy that ships: %w", err)
	}
	return f, nil
}
