package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
)

// UnmarshalJSON implements json.Unmarshaler: it is as strict as kube-scheduler's
// own reader, and says which argument is wrong, what it was given, and what it
// takes.
func (a *CotenantArgs) UnmarshalJSON(text []byte) error {
	type plain CotenantArgs // without this method
	strict, err := kjson.UnmarshalStrict(text, (*plain)(a))
	if err != nil {
		return fault(text, err)
	}
	return errors.Join(strict...)
}

// fault finds the argument that does not take its value; where there is none, it
// is what the reader said.
func fault(text []byte, err error) error {
	var given map[string]json.RawMessage
	if kjson.UnmarshalCaseSensitivePreserveInts(text, &given) != nil {
		return err
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[CotenantArgs]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		value, ok := given[name]
		if !ok {
			continue
		}
		if e := kjson.UnmarshalCaseSensitivePreserveInts(value, reflect.New(f.Type).Interface()); e != nil {
			return fmt.Errorf("%s: %s is not %s", name, value, takes(f.Type))
		}
	}
	return err
}

// takes says in words what an argument of a type is given as.
func takes(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[metav1.Duration]():
		return `a time; give a number with its unit in quotes, such as "200ms" or "1m30s"`
	case t.Kind() == reflect.Struct:
		return `a map of its arguments, such as {path: ...} or {name: ...}`
	}
	return map[reflect.Kind]string{
		reflect.String: "text", reflect.Bool: "true or false", reflect.Map: "a map of names to texts",
		reflect.Int: "a whole number", reflect.Int64: "a whole number", reflect.Float64: "a number",
	}[t.Kind()]
}
