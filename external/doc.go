// Package external runs policies written in any language: a program that
// reads requests and writes decisions, one JSON object a line, on its standard
// input and output (docs/external-policies.md describes the objects).
//
//	p := external.New(ctx, []string{"python3", "policy.py"}, external.Options{Model: model})
//	defer p.Close()
//	decision, err := p.Place(request)
//
// The program is started at the first request and reused for all further
// ones. It may ask for predictions of the model before it decides, so that it
// knows just what a built-in policy knows. A program that is late, ends, or
// writes something else than a decision gives an error that ends with what it
// last wrote to its standard error.
package external
