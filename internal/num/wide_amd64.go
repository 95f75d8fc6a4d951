package num

// wide says whether this processor has the 256-bit instructions that the
// functions below are made of. It changes how fast results come, never a bit
// of them.
var wide = hasAVX2()

func hasAVX2() bool

// multiply4x16 adds to 4 rows and 16 columns of c the product of 4 rows of a
// and 16 columns of b over k > 0 steps. aRow and aStep are how far the elements
// of a are apart from row to row and from step to step.
//
//go:noescape
func multiply4x16(c, a, b *float32, k, cRow, aRow, aStep, bRow int)

// multiply1x16 does one row.
//
//go:noescape
func multiply1x16(c, a, b *float32, k, aStep, bRow int)

// silu8 is SiLU without slopes over n elements, a positive multiple of 8.
//
//go:noescape
func silu8(y, x *float32, n int)

// siluSlope8 is SiLU with slopes.
//
//go:noescape
func siluSlope8(y, d, x *float32, n int)
