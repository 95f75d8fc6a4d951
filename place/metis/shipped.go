package metis

import (
	"bytes"
	_ "embed" // the policies that ship
	"fmt"
	"strings"
)

// What the policies that ship were trained on.
const (
	// Embedded is a model of the measurements that ship, and made-up truths: for
	// any workloads.
	Embedded = "embedded"
	// Table is the table of 6,435 co-locations that Metis's authors measured.
	Table = "table"
)

var (
	//go:embed services.safetensors
	shippedEmbedded []byte
	//go:embed table.safetensors
	shippedTable []byte
)

// Shipped is a policy that comes with the program: Embedded, which "" stands
// for, or Table. Each call reads it anew: the caller may change what it gets.
func Shipped(trained string) (*File, error) {
	var data []byte
	switch trained {
	case Embedded, "":
		data = shippedEmbedded
	case Table:
		data = shippedTable
	default:
		return nil, fmt.Errorf("no policy that was trained on %q ships; those that do: %s", trained, strings.Join([]string{Embedded, Table}, ", "))
	}
	f, err := Load(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("the policy that ships: %w", err)
	}
	return f, nil
}
