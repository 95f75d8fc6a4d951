package main

import (
	"fmt"
	"strings"
)

// didYouMean is "; did you mean X?" for the known word that a mistyped one is
// nearest to, and nothing where none is near.
func didYouMean(word string, known []string) string {
	if n := nearest(word, known); n != "" {
		return fmt.Sprintf("; did you mean %s?", n)
	}
	return ""
}

// nearest is the first of the known words with the fewest slips (a letter too
// many, too few, wrong, or two exchanged) from a word: at most two, and fewer
// than a half of its letters. A word that begins another is near it too.
func nearest(word string, known []string) string {
	word = strings.ToLower(word)
	best, fewest := "", min(2, (len(word)-1)/2)+1
	for _, k := range known {
		if n := slips(word, strings.ToLower(k)); n < fewest {
			best, fewest = k, n
		}
	}
	for _, k := range known {
		if best == "" && len(word) > 2 && strings.HasPrefix(strings.ToLower(k), word) {
			best = k
		}
	}
	return best
}

// slips counts how many make a of b (the optimal string alignment distance).
func slips(a, b string) int {
	// The last three rows of the table of distances between beginnings.
	var before, last []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			wrong := 1
			if a[i] == b[j] {
				wrong = 0
			}
			row[j+1] = min(last[j]+wrong, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
