package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
)

// plainly says what a flag takes that was given something else.
func plainly(_ *cobra.Command, err error) error {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return err
	}
	takes, known := map[string]string{
		"int": "a whole number", "int32": "a whole number", "uint64": "a whole number of 0 or more",
		"float32": "a number", "float64": "a number", "bool": "true or false", "duration": "a time with its unit, such as 30s",
	}[bad.GetFlag().Value.Type()]
	if !known {
		return err
	}
	return fmt.Errorf("--%s %s: give %s", bad.GetFlag().Name, bad.GetValue(), takes)
}

// checkShape finds what no node can have, by its flag.
func (f upFlags) checkShape() error {
	for _, q := range []struct{ flag, given, such string }{
		{"cpu", f.shape.CPU, "8 or 500m"}, {"memory", f.shape.Memory, "32Gi"}, {"pods", f.shape.Pods, "110"},
	} {
		quantity, err := resource.ParseQuantity(q.given)
		_, whole := quantity.AsInt64()
		if err != nil || quantity.Sign() <= 0 || q.flag == "pods" && !whole {
			return fmt.Errorf("--%s %q: give a quantity above 0, such as %s", q.flag, q.given, q.such)
		}
	}
	return nil
}
