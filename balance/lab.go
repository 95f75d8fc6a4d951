package balance

import (
	"os"
	"strconv"
)

func ev(k string, d float64) float64 {
	if v, err := strconv.ParseFloat(os.Getenv(k), 64); err == nil {
		return v
	}
	return d
}

var (
	optimism   = ev("OPT", 2.0)
	caution    = ev("CAUT", 0.35)
	fear       = ev("FEAR", 0.5)
	worthTry   = ev("WORTH", 0.004)
	maxTryCost = ev("MAXTRY", 0.25)
	tryBudget  = ev("BUDGET", 2.0)
	tryRate    = ev("RATE", 0.004)
	learning   = int(ev("LEARN", 100))
	relearn    = int(ev("RELEARN", 0))
	jumpRate   = ev("JR", 1.0/16)
	jumpSD     = ev("JSD", 0.15)
	calmRate   = ev("CALM", 1.0/64)
	slopeSD    = ev("SLOPE", 0.3)
	tile16     = ev("T16", 1.0/3)
	tile8      = ev("T8", 1.0/6)
	into       = ev("INTO", 1.0/12)
	mu16       = ev("MU", .08)
	other      = ev("OTHER", 1.0/32)
)

func rate(x, grain int) float64 {
	switch {
	case grain > 1:
		return jumpRate
	case x%16 == 0:
		return tile16
	case x%8 == 0:
		return tile8
	case (x+1)%8 == 0:
		return into
	}
	return other
}

// lean is the mean of a jump after size x.
func lean(x, grain int) float64 {
	switch {
	case grain > 1:
		return 0
	case x%8 == 0:
		return mu16
	case (x+1)%8 == 0:
		return -mu16
	}
	return 0
}

// drift of a step besides jumps, so that jumps change nothing on the whole.
func counter(grain int) float64 {
	if grain > 1 {
		return 0
	}
	return -mu16 * (tile16 + tile8 - 2*into) / 16
}
