package formats

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"
)

// eachField calls f with the name and the raw value of each field of a JSON
// object, in order; both are good until f returns. encoding/json alone would take "Value" for "value" and
// the second of two equal names for the first.
func eachField(object []byte, f func(name, value []byte) error) error {
	switch {
	case !utf8.Valid(object):
		return errors.New("is not UTF-8 text")
	case !json.Valid(object):
		var v any
		if err := json.Unmarshal(object, &v); err != nil {
			return errors.New("is not JSON: " + err.Error())
		}
		return errors.New("is not JSON")
	}
	// From here on the syntax is known to be right.
	i := skipSpace(object, 0)
	if object[i] != '{' {
		return errors.New("is not a JSON object")
	}
	i = skipSpace(object, i+1)
	for object[i] != '}' {
		end := skipValue(object, i)
		name, err := jsonString(object[i:end])
		if err != nil {
			return err
		}
		i = skipSpace(object, end) // at the colon
		i = skipSpace(object, i+1) // at the value
		end = skipValue(object, i)
		if err := f(name, object[i:end]); err != nil {
			return err
		}
		if i = skipSpace(object, end); object[i] == ',' {
			i = skipSpace(object, i+1)
		}
	}
	return nil
}

func skipSpace(b []byte, i int) int {
	for b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r' {
		i++
	}
	return i
}

// skipValue returns the index after the value that begins at i.
func skipValue(b []byte, i int) int {
	depth := 0
	for {
		switch b[i] {
		case '"':
			for i++; b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
		case '}', ']', ',':
			if depth == 0 {
				return i // the end of a number or a literal
			}
			if b[i] != ',' {
				depth--
			}
		case ' ', '\t', '\n', '\r', ':':
			if depth == 0 {
				return i
			}
			i++
			continue
		default:
			i++
			continue
		}
		i++
		if depth == 0 {
			return i
		}
	}
}

// jsonString reads a JSON string; null is "". It copies only what is escaped.
func jsonString(value []byte) ([]byte, error) {
	if string(value) == "null" {
		return nil, nil
	}
	if value[0] != '"' {
		return nil, errors.New("is not a string")
	}
	if bytes.IndexByte(value, '\\') >= 0 {
		var s string
		err := json.Unmarshal(value, &s)
		return []byte(s), err
	}
	return value[1 : len(value)-1], nil
}

// jsonText is what parseNumber and parseCount take: a number as it stands,
// or the text of a string ("NaN").
func jsonText(value []byte) ([]byte, error) {
	switch c := value[0]; {
	case c == '"':
		return jsonString(value)
	case c == '{', c == '[', c == 't', c == 'f':
		return nil, errors.New("is not a number")
	}
	return value, nil
}
