package formats

import (
	"errors"
	"fmt"
	"strings"
)

// pyTuple is a Python tuple or list. Its items are strings, pyTuples and
// pyNumbers.
type pyTuple []any

// pyNumber is the text of a number, for parseNumber and parseCount to read.
type pyNumber string

// parsePython reads one Python literal made of tuples, lists, numbers and
// plain strings, as repr writes them. It evaluates nothing: names, operators,
// calls, prefixes of strings and escapes other than \\, \' and \" are errors.
func parsePython(text string) (any, error) {
	p := pyParser{text: text}
	v, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if p.space(); p.at < len(p.text) {
		return nil, fmt.Errorf("goes on after its end, with %s", quoteShort(p.text[p.at:]))
	}
	return v, nil
}

type pyParser struct {
	text string
	at   int
}

func (p *pyParser) space() {
	for p.at < len(p.text) && (p.text[p.at] == ' ' || p.text[p.at] == '\t') {
		p.at++
	}
}

// maxPyDepth bounds how deep tuples nest, so that no input can exhaust the
// stack.
const maxPyDepth = 8

func (p *pyParser) value(depth int) (any, error) {
	p.space()
	if p.at == len(p.text) {
		return nil, errors.New("ends too early")
	}
	switch c := p.text[p.at]; {
	case c == '(':
		return p.tuple(')', depth)
	case c == '[':
		return p.tuple(']', depth)
	case c == '\'' || c == '"':
		return p.str(c)
	case c >= '0' && c <= '9' || c == '.' || c == '-' || c == '+':
		start := p.at
		for p.at < len(p.text) && !notDecimal(rune(p.text[p.at])) {
			p.at++
		}
		return pyNumber(p.text[start:p.at]), nil
	}
	// A word: inf and nan are what repr writes of floats that are no numbers.
	start := p.at
	for p.at < len(p.text) && (p.text[p.at] >= 'a' && p.text[p.at] <= 'z' || p.text[p.at] >= 'A' && p.text[p.at] <= 'Z') {
		p.at++
	}
	if word := p.text[start:p.at]; word == "nan" || word == "inf" {
		return pyNumber(word), nil
	}
	return nil, fmt.Errorf("has %s where a tuple, text or number belongs", quoteShort(p.text[start:]))
}

func (p *pyParser) tuple(end byte, depth int) (any, error) {
	if depth == maxPyDepth {
		return nil, fmt.Errorf("nests deeper than %d", maxPyDepth)
	}
	p.at++ // past the bracket
	out := pyTuple{}
	for {
		if p.space(); p.at < len(p.text) && p.text[p.at] == end {
			p.at++
			return out, nil
		}
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
		switch p.space(); {
		case p.at == len(p.text):
			return nil, errors.New("ends too early")
		case p.text[p.at] == ',':
			p.at++
		case p.text[p.at] != end:
			return nil, fmt.Errorf("has %s where %q or a comma belongs", quoteShort(p.text[p.at:]), end)
		}
	}
}

func (p *pyParser) str(quote byte) (any, error) {
	var b strings.Builder
	for p.at++; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; c {
		case quote:
			p.at++
			return b.String(), nil
		case '\\':
			if p.at++; p.at == len(p.text) || !strings.ContainsRune(`\'"`, rune(p.text[p.at])) {
				return nil, errors.New("has an escape other than \\\\, \\' and \\\"")
			}
			b.WriteByte(p.text[p.at])
		default:
			b.WriteByte(c)
		}
	}
	return nil, errors.New("ends within a text")
}
