package report

import (
	"strconv"
	"unicode"
)

// codes gives each name a code of two characters, unique in the list: it
// stands in the cells of the placement map, so that they can be read without
// telling colours apart. Letters of the name are preferred, those that tell
// it from its neighbours first; the same list gives the same codes.
func codes(names []string) []string {
	letters := make([][]rune, len(names))
	sharing := map[string]int{}
	for i, n := range names {
		for _, r := range n {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				letters[i] = append(letters[i], unicode.ToLower(r))
			}
		}
		if len(letters[i]) > 1 {
			sharing[string(letters[i][:2])]++
		}
	}
	taken := map[string]bool{}
	out := make([]string, len(names))
	for i, l := range letters {
		out[i] = code(l, i, sharing, taken)
		taken[out[i]] = true
	}
	return out
}

func code(l []rune, i int, sharing map[string]int, taken map[string]bool) string {
	if len(l) > 1 {
		if start := string(l[:2]); sharing[start] == 1 && !taken[start] {
			return start
		}
		for at := len(l) - 1; at > 0; at-- {
			if c := string([]rune{l[0], l[at]}); !taken[c] {
				return c
			}
		}
	}
	for n := i; ; n++ {
		c := strconv.FormatInt(int64(n), 36)
		if len(c) == 1 {
			c = "0" + c
		}
		if !taken[c] {
			return c
		}
	}
}

// name is a name in parts between which a narrow column may break it.
type name []string

// longestPart is how many characters of a name are never broken.
const longestPart = 14

// breakable leaves names that fit in a narrow column whole; longer ones break
// after a separator, or anywhere if there is none.
func breakable(s string) name {
	runes := []rune(s)
	if len(runes) <= longestPart {
		return name{s}
	}
	var parts name
	start := 0
	for i, r := range runes {
		separator := !unicode.IsLetter(r) && !unicode.IsDigit(r)
		if separator || i+1-start == longestPart {
			parts = append(parts, string(runes[start:i+1]))
			start = i + 1
		}
	}
	if start < len(runes) {
		parts = append(parts, string(runes[start:]))
	}
	return parts
}
