// Package misfit says in the words of whoever wrote a file where a value of it is of
// another kind than belongs there, or a field is unknown: encoding/json and
// go.yaml.in/yaml name types of Go instead.
//
//	if err := json.Unmarshal(data, &v); err != nil {
//		return fmt.Errorf("%s: %w", file, misfit.JSON(err))
//	}
package misfit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// JSON rewords an error of encoding/json, also one that is wrapped.
func JSON(err error) error {
	var kind *json.UnmarshalTypeError
	if !errors.As(err, &kind) {
		// Libraries pass on such errors as text.
		return errors.New(strings.TrimPrefix(passed.ReplaceAllString(err.Error(), "$2: a value of another kind ($1) than belongs there"), "json: "))
	}
	field := strings.Trim(kind.Field, ".")
	if field == "" {
		field = "the top level"
	}
	value, _, _ := strings.Cut(kind.Value, " ")
	is := map[string]string{"string": "text", "bool": "true or false", "number": "a number", "array": "a list", "object": "an object"}[value]
	if _, number, ok := strings.Cut(kind.Value, " "); ok {
		is = number
	}
	return fmt.Errorf("%s: %s, where %s belongs", field, is, goes(kind.Type))
}

func goes(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Map, reflect.Struct:
		return "an object"
	}
	return "a whole number"
}

var (
	passed  = regexp.MustCompile(`(?:json: )?cannot unmarshal (\w+) into Go struct field (?:[A-Z]\w*)?\.?(\S+) of type \S+`)
	unknown = regexp.MustCompile(`^line (\d+): field (.*) not found in type `)
	other   = regexp.MustCompile("^line (\\d+): cannot unmarshal !!(\\w+)(?: `(.*)`)? into (.*)$")
	key     = regexp.MustCompile(`^[\s-]*["']?([\w.-]+)["']?\s*:`)
)

// YAML rewords an error of go.yaml.in/yaml about a text: the first thing that is
// wrong, with its line and, where that is told by the line, its field.
func YAML(text []byte, err error) error {
	var kinds *yaml.TypeError
	if !errors.As(err, &kinds) || len(kinds.Errors) == 0 {
		return errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	first := kinds.Errors[0]
	if m := unknown.FindStringSubmatch(first); m != nil {
		return fmt.Errorf("line %s: unknown field %q, misspelt or in the wrong place", m[1], m[2])
	}
	m := other.FindStringSubmatch(first)
	if m == nil {
		return errors.New(first)
	}
	at := "line " + m[1]
	if line, err := strconv.Atoi(m[1]); err == nil {
		if lines := bytes.Split(text, []byte("\n")); line <= len(lines) {
			// A list that begins on this line is not the value of the field in it.
			list := m[2] == "seq" && bytes.HasPrefix(bytes.TrimLeft(lines[line-1], " "), []byte("-"))
			if k := key.FindSubmatch(lines[line-1]); k != nil && !list {
				at += ": " + string(k[1])
			}
		}
	}
	is := strconv.Quote(m[3])
	switch m[2] {
	case "seq":
		is = "a list"
	case "map":
		is = "a mapping"
	}
	return fmt.Errorf("%s: %s, where %s belongs", at, is, named(m[4]))
}

// named is what goes into a type of Go, in words.
func named(t string) string {
	switch {
	case strings.HasPrefix(t, "[]"):
		return "a list"
	case strings.HasSuffix(t, "Duration"):
		return "a time such as 30s"
	case t == "string":
		return "text"
	case t == "bool":
		return "true or false"
	case strings.HasPrefix(t, "float"):
		return "a number"
	case strings.HasPrefix(t, "int"), strings.HasPrefix(t, "uint"):
		return "a whole number"
	}
	return "a mapping of fields"
}
