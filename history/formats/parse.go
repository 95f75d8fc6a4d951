package formats

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// parseNumber reads a decimal number. missing is true for the ways in which
// files say "not measured": nothing, null, NaN. Infinities, hexadecimal and
// what does not fit a float64 are errors: a reader never makes up a number.
func parseNumber(text string) (v float64, missing bool, err error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "", strings.EqualFold(text, "null"), strings.EqualFold(text, "nan"):
		return 0, true, nil
	case strings.ContainsFunc(text, notDecimal):
		return 0, false, errors.New("is not a finite decimal number")
	}
	v, err = strconv.ParseFloat(text, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, false, errors.New("is too large for a number")
	case err != nil:
		return 0, false, errors.New("is not a number")
	}
	return v, false, nil
}

func notDecimal(r rune) bool {
	return (r < '0' || r > '9') && r != '.' && r != '-' && r != '+' && r != 'e' && r != 'E'
}

// parseCount reads a whole number from 0 to most. Files written through
// floats say 3.0: that is 3.
func parseCount(text string, most int) (n int, missing bool, err error) {
	v, missing, err := parseNumber(text)
	if missing || err != nil {
		return 0, missing, err
	}
	n, err = wholeCount(v, most)
	return n, false, err
}

// wholeCount turns a float into a whole number from 0 to most.
func wholeCount(v float64, most int) (int, error) {
	switch {
	case v < 0:
		return 0, errors.New("is negative")
	case v != math.Trunc(v): // NaN too
		return 0, errors.New("is not a whole number")
	case v > float64(most):
		return 0, errors.New("is more than " + strconv.Itoa(most))
	}
	return int(v), nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
