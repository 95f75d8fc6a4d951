package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history/formats"
)

// quantities are resources as people write them: cpu in cores ("500m", 2),
// memory in bytes ("16Gi"), by Kubernetes' rules.
type quantities map[string]quantity

type quantity struct{ text string }

// UnmarshalJSON keeps a string or a number as it was written.
func (q *quantity) UnmarshalJSON(data []byte) error {
	data = bytes.TrimSpace(data)
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &q.text)
	}
	q.text = string(data)
	return nil
}

func (q quantities) resources(what string) (cluster.Resources, error) {
	if q == nil {
		return nil, nil
	}
	r := cluster.Resources{}
	for name, v := range q {
		n, err := parseAmount(name, v.text)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", what, name, err)
		}
		r[name] = n
	}
	return r, nil
}

// parseAmount reads a quantity of a resource in the unit that
// cluster.Resources counts.
func parseAmount(name, text string) (int64, error) {
	n, err := formats.ParseQuantity(name, text)
	if err != nil {
		return 0, fmt.Errorf("%q %w", text, err)
	}
	return n, nil
}

// parseCapacity reads [class:]resource=quantity,... as --capacity has it.
func parseCapacity(s string) (class string, r cluster.Resources, err error) {
	list := s
	if before, after, ok := strings.Cut(s, ":"); ok {
		class, list = before, after
	}
	r = cluster.Resources{}
	for part := range strings.SplitSeq(list, ",") {
		name, text, ok := strings.Cut(part, "=")
		if !ok || name == "" {
			return "", nil, wrongUse("--capacity %s: %q is not resource=quantity, such as cpu=16 or memory=64Gi", s, part)
		}
		if r[name], err = parseAmount(name, text); err != nil {
			return "", nil, wrongUse("--capacity %s: %s: %v", s, name, err)
		}
	}
	return class, r, nil
}
