package report

import (
	"fmt"
	"math"
	"strings"
)

// colour is sRGB, 0 to 1.
type colour [3]float64

func hex(s string) colour {
	var r, g, b int
	if _, err := fmt.Sscanf(s, "#%02x%02x%02x", &r, &g, &b); err != nil {
		panic("report: colour " + s + ": " + err.Error())
	}
	return colour{float64(r) / 255, float64(g) / 255, float64(b) / 255}
}

func (c colour) String() string {
	return fmt.Sprintf("#%02x%02x%02x", int(c[0]*255+.5), int(c[1]*255+.5), int(c[2]*255+.5))
}

func (c colour) mix(d colour, t float64) colour {
	for i := range c {
		c[i] += (d[i] - c[i]) * t
	}
	return c
}

// luminance is the relative luminance of WCAG 2.
func (c colour) luminance() float64 {
	for i, v := range c {
		if v <= .04045 {
			c[i] = v / 12.92
		} else {
			c[i] = math.Pow((v+.055)/1.055, 2.4)
		}
	}
	return .2126*c[0] + .7152*c[1] + .0722*c[2]
}

// contrast is the contrast ratio of WCAG 2, 1 to 21.
func (c colour) contrast(d colour) float64 {
	a, b := c.luminance(), d.luminance()
	return (max(a, b) + .05) / (min(a, b) + .05)
}

var black, white = hex("#000000"), hex("#ffffff")

// ink is the colour of text on c: black or white, whichever is told better.
func (c colour) ink() colour {
	if c.contrast(black) >= c.contrast(white) {
		return black
	}
	return white
}

// levels are the upper ends of the steps of performance that the diverging
// palette tells apart; the last step has none. Step neutral holds 1: alone.
var levels = []float64{.1, .2, .3, .4, .5, .6, .7, .8, .9, .97, 1.03, 1.1, 1.25, 1.5}

const neutral = 10

// level is the step of a performance; NaN has none: -1.
func level(performance float64) int {
	if math.IsNaN(performance) {
		return -1
	}
	for i, end := range levels {
		if performance < end {
			return i
		}
	}
	return len(levels)
}

// Orange to blue through grey is told apart with every common kind of colour
// blindness, and its ends differ from the middle in lightness too, so that it
// survives a grey print.
type ramp struct{ low, lowMid, middle, highMid, high colour }

var (
	lightRamp = ramp{hex("#7f3b08"), hex("#f1a340"), hex("#f4f4f4"), hex("#92c5de"), hex("#2166ac")}
	darkRamp  = ramp{hex("#ffb55e"), hex("#a85a0a"), hex("#2c2f36"), hex("#2c6ca3"), hex("#8cc8f5")}
)

func (r ramp) at(step int) colour {
	low, mid, high, t := r.low, r.lowMid, r.middle, float64(step)/neutral
	if step > neutral {
		low, mid, high = r.middle, r.highMid, r.high
		t = float64(step-neutral) / float64(len(levels)-neutral)
	}
	if t < .5 {
		return low.mix(mid, 2*t)
	}
	return mid.mix(high, 2*t-1)
}

// workloadColours are those of Okabe and Ito, made to be told apart with every
// kind of colour blindness; from the ninth workload on they repeat, and the
// codes in the cells tell them apart.
var workloadColours = []colour{
	hex("#0072b2"), hex("#e69f00"), hex("#009e73"), hex("#cc79a7"),
	hex("#56b4e9"), hex("#d55e00"), hex("#f0e442"), hex("#999999"),
}

// paletteCSS defines a class p0, p1, ... per step of performance and w0, w1,
// ... per workload colour, as the custom properties --p, --pi (ink), --w, --wi.
func paletteCSS() string {
	var b strings.Builder
	steps := func(r ramp) {
		for i := range len(levels) + 1 {
			c := r.at(i)
			fmt.Fprintf(&b, ".p%d{--p:%s;--pi:%s}\n", i, c, c.ink())
		}
	}
	steps(lightRamp)
	b.WriteString("@media screen and (prefers-color-scheme:dark){\n")
	steps(darkRamp)
	b.WriteString("}\n")
	for i, c := range workloadColours {
		fmt.Fprintf(&b, ".w%d{--w:%s;--wi:%s}\n", i, c, c.ink())
	}
	return b.String()
}
