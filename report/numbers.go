package report

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// unknown stands where a number is not known.
const unknown = "–"

func known(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func fixed(v float64, digits int) string {
	if !known(v) {
		return unknown
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

func percent(v float64, digits int) string {
	if !known(v) {
		return unknown
	}
	return fixed(100*v, digits) + " %"
}

func plusMinus(v, spread float64, format func(float64, int) string, digits int) string {
	if !known(v) || !known(spread) {
		return format(v, digits)
	}
	return format(v, digits) + " ± " + format(spread, digits)
}

// quantity has three significant digits of a number not below 0, thousands
// apart, and from a million on a prefix of its unit: "46 400 requests/s",
// "12.9 GB/s".
func quantity(v float64, unit string) string {
	if !known(v) {
		return unknown
	}
	prefix := ""
	if v >= 999_500 {
		for _, p := range []string{"k", "M", "G", "T", "P"} {
			if v < 999.5 {
				break
			}
			v, prefix = v/1000, p
		}
	}
	text := strconv.FormatFloat(v, 'g', 3, 64)
	if v >= 999.5 {
		round := math.Pow(10, math.Floor(math.Log10(v))-2)
		text = count(int(math.Round(v/round) * round))
	}
	if prefix+unit == "" {
		return text
	}
	return text + "\u202f" + prefix + unit
}

// count sets a narrow space every three digits.
func count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + many
}

// seconds keeps two digits that count, down to a tenth of a millisecond.
func seconds(s float64) string {
	switch {
	case !known(s):
		return unknown
	case s < .00095:
		return "< 1 ms"
	case s < .0995:
		return fmt.Sprintf("%.0f ms", 1000*s)
	case s < 9.95:
		return fmt.Sprintf("%.2f s", s)
	default:
		return fmt.Sprintf("%.0f s", s)
	}
}

func between(from, to time.Time) string {
	const day, minute = "2 January 2006", "15:04"
	if from.IsZero() {
		return ""
	}
	from, to = from.UTC(), to.UTC()
	if to.IsZero() || to.Equal(from) {
		return from.Format(day + " " + minute + " MST")
	}
	if from.Format(day) == to.Format(day) {
		return from.Format(day+" "+minute) + "–" + to.Format(minute+" MST")
	}
	return from.Format(day+" "+minute) + " – " + to.Format(day+" "+minute+" MST")
}

// meanAndSpread over the known values; the spread is NaN for fewer than two.
func meanAndSpread(values []float64) (mean, spread float64) {
	n, sum := 0, 0.0
	for _, v := range values {
		if known(v) {
			n++
			sum += v
		}
	}
	if n == 0 {
		return math.NaN(), math.NaN()
	}
	mean = sum / float64(n)
	if n < 2 {
		return mean, math.NaN()
	}
	squares := 0.0
	for _, v := range values {
		if known(v) {
			squares += (v - mean) * (v - mean)
		}
	}
	return mean, math.Sqrt(squares / float64(n-1))
}
