package placetest

import (
	"pgregory.net/rapid"

	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
)

// Worth is what the model says of a policy's plan, higher is better whatever the
// objective, and how many tasks the plan holds.
func Worth(t rapid.TB, p place.Policy, req place.Request, m interference.Model) (value float64, held int) {
	t.Helper()
	d, err := p.Place(req)
	if err != nil {
		t.Fatal(err)
	}
	e, err := place.Evaluate(req, d, m)
	if err != nil {
		t.Fatal(err)
	}
	if req.Objective.Minimises() {
		return -e.Value, e.Held
	}
	return e.Value, e.Held
}
