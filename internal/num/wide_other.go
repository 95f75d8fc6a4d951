//go:build !amd64

package num

// Where there are no wide instructions, nothing calls what needs them.
const wide = false

func multiply4x16(c, a, b *float32, k, cRow, aRow, aStep, bRow int) { panic("num: no wide registers") }

func multiply1x16(c, a, b *float32, k, aStep, bRow int) { panic("num: no wide registers") }

func silu8(y, x *float32, n int) { panic("num: no wide registers") }

func siluSlope8(y, d, x *float32, n int) { panic("num: no wide registers") }
