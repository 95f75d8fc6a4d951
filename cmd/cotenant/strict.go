package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/cotenant/cotenant/internal/misfit"
)

// decodeStrict reads YAML or JSON into a value with json tags. A field that
// the type lacks, a field given twice and a value of another kind are errors
// with their line.
func decodeStrict(what string, data []byte, into any) error {
	var doc yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(untab(data)))
	if err := decoder.Decode(&doc); err != nil {
		return fmt.Errorf("%s: not YAML or JSON, or empty: %w", what, misfit.YAML(data, err))
	}
	if err := decoder.Decode(&yaml.Node{}); err == nil {
		return fmt.Errorf("%s: more than one YAML document; keep one", what)
	}
	root := doc.Content[0]
	if err := checkNode(root, reflect.TypeOf(into).Elem(), ""); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	plain, err := plainValue(root)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	text, err := json.Marshal(plain)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// untab makes JSON that is indented by tabs readable as YAML. A JSON string
// holds no raw newline, so no leading tab is inside one.
func untab(data []byte) []byte {
	start := bytes.TrimLeft(data, " \t\r\n")
	if len(start) == 0 || start[0] != '{' && start[0] != '[' {
		return data
	}
	lines := bytes.Split(data, []byte("\n"))
	for i, l := range lines {
		body := bytes.TrimLeft(l, " \t")
		lines[i] = append(bytes.Repeat([]byte(" "), len(l)-len(body)), body...)
	}
	return bytes.Join(lines, []byte("\n"))
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

func checkNode(n *yaml.Node, t reflect.Type, path string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	bad := func(want string) error {
		return fmt.Errorf("line %d: %s is %s; it must be %s", n.Line, orRoot(path), nodeWords(n), want)
	}
	if n.Kind == yaml.AliasNode {
		return checkNode(n.Alias, t, path)
	}
	if n.Tag == "!!null" {
		return nil
	}
	// What reads itself has its own form, unless its fields have names in JSON.
	if reflect.PointerTo(t).Implements(unmarshaler) && (t.Kind() != reflect.Struct || len(fieldNames(t)) == 0) {
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		if n.Kind != yaml.MappingNode {
			return bad("a mapping of " + strings.Join(fieldNames(t), ", "))
		}
		return checkStruct(n, t, path)
	case reflect.Map:
		if n.Kind != yaml.MappingNode {
			return bad("a mapping")
		}
		return eachField(n, path, func(key, value *yaml.Node, at string) error {
			return checkNode(value, t.Elem(), at)
		})
	case reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			return bad("a list")
		}
		for i, item := range n.Content {
			if err := checkNode(item, t.Elem(), fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	case reflect.Int, reflect.Int64:
		if n.Kind != yaml.ScalarNode || n.Tag != "!!int" {
			return bad("a whole number")
		}
	case reflect.Float64:
		var f float64
		if n.Kind != yaml.ScalarNode || n.Tag != "!!int" && n.Tag != "!!float" || n.Decode(&f) != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return bad("a finite number")
		}
	case reflect.Bool:
		if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
			return bad("true or false")
		}
	case reflect.String:
		// A label or a name may look like a number: it is taken as written.
		if n.Kind != yaml.ScalarNode {
			return bad("text")
		}
		n.Tag = "!!str"
	}
	return nil
}

func checkStruct(n *yaml.Node, t reflect.Type, path string) error {
	return eachField(n, path, func(key, value *yaml.Node, at string) error {
		f, ok := fieldType(t, key.Value)
		if !ok {
			return fmt.Errorf("line %d: unknown field %q in %s; it knows %s", key.Line, key.Value, orRoot(path), strings.Join(fieldNames(t), ", "))
		}
		return checkNode(value, f, at)
	})
}

func eachField(n *yaml.Node, path string, f func(key, value *yaml.Node, at string) error) error {
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		at := strings.TrimPrefix(path+"."+key.Value, ".")
		if line, twice := seen[key.Value]; twice {
			return fmt.Errorf("line %d: %s was given on line %d already; keep one", key.Line, at, line)
		}
		seen[key.Value] = key.Line
		if err := f(key, n.Content[i+1], at); err != nil {
			return err
		}
	}
	return nil
}

// fieldsOf visits the fields of a struct as encoding/json sees them.
func fieldsOf(t reflect.Type, visit func(name string, f reflect.Type)) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			fieldsOf(f.Type, visit)
		case f.IsExported() && name != "-":
			if name == "" {
				name = f.Name
			}
			visit(name, f.Type)
		}
	}
}

func fieldNames(t reflect.Type) []string {
	var names []string
	fieldsOf(t, func(name string, _ reflect.Type) { names = append(names, name) })
	slices.Sort(names)
	return names
}

func fieldType(t reflect.Type, name string) (found reflect.Type, ok bool) {
	fieldsOf(t, func(n string, f reflect.Type) {
		if n == name {
			found, ok = f, true
		}
	})
	return found, ok
}

// plainValue is the node as encoding/json would have read it.
func plainValue(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.AliasNode:
		return nil, fmt.Errorf("line %d: YAML aliases are not supported; write the value out", n.Line)
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			v, err := plainValue(n.Content[i+1])
			if err != nil {
				return nil, err
			}
			m[n.Content[i].Value] = v
		}
		return m, nil
	case yaml.SequenceNode:
		l := make([]any, len(n.Content))
		for i, item := range n.Content {
			v, err := plainValue(item)
			if err != nil {
				return nil, err
			}
			l[i] = v
		}
		return l, nil
	}
	if n.Tag == "!!str" || n.Tag == "!!timestamp" || n.Tag == "!!binary" {
		return n.Value, nil
	}
	var v any
	if err := n.Decode(&v); err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	return v, nil
}

func orRoot(path string) string {
	if path == "" {
		return "the top level"
	}
	return path
}

func nodeWords(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	return fmt.Sprintf("%q", n.Value)
}
