package curves

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// What TensorBoard 2.21 itself writes (tensorboard.summary.writer.record_writer)
// of a file version, the start of a session at step 7, and two scalars of it.
const byTensorBoard = "1800000000000000a37f4b220900001040fc54d9411a0d627261696e2e4576656e743a32338d2fe9" +
	"0f000000000000006d532b090900001040fc54d94110073a0208010f417177" +
	"3800000000000000a3797d570900001040fc54d94110072a2b0a150a0e706f6c6963792f656e74726f7079150000003f0a120a0b6372697469632f6c6f737315000010c08f85b090"

func TestEventsAreThoseOfTensorBoard(t *testing.T) {
	at := time.Unix(1700000000, 250e6)
	got := header(at)
	got = append(got, restart(at, 7)...)
	got = append(got, scalars(at, 7, []Scalar{{"policy/entropy", 0.5}, {"not/finite", math.NaN()}, {"critic/loss", -2.25}})...)
	if text := hex.EncodeToString(got); text != byTensorBoard {
		t.Errorf("wrote %s, want %s", text, byTensorBoard)
	}
}

// point is a scalar as it is read back.
type point struct {
	step  int
	tag   string
	value float32
}

// readEvents is a plain reader of event files: it checks every sum, and drops
// what a restart takes back.
func readEvents(t *testing.T, b []byte, points []point) []point {
	t.Helper()
	for len(b) > 0 {
		n := int(binary.LittleEndian.Uint64(b))
		if sum := binary.LittleEndian.Uint32(b[8:]); sum != masked(b[:8]) {
			t.Fatalf("sum of a length is %x, want %x", sum, masked(b[:8]))
		}
		data := b[12 : 12+n]
		if sum := binary.LittleEndian.Uint32(b[12+n:]); sum != masked(data) {
			t.Fatalf("sum of a record is %x, want %x", sum, masked(data))
		}
		b = b[16+n:]
		step := 0
		fields(t, data, func(number protowire.Number, v uint64, bytes []byte) {
			switch number {
			case eventStep:
				step = int(v)
			case eventSessionLog:
				kept := points[:0]
				for _, p := range points {
					if p.step < step {
						kept = append(kept, p)
					}
				}
				points = kept
			case eventSummary:
				fields(t, bytes, func(_ protowire.Number, _ uint64, value []byte) {
					p := point{step: step}
					fields(t, value, func(number protowire.Number, v uint64, bytes []byte) {
						if number == valueTag {
							p.tag = string(bytes)
						} else {
							p.value = math.Float32frombits(uint32(v))
						}
					})
					points = append(points, p)
				})
			}
		})
	}
	return points
}

// fields goes over the fields of a message.
func fields(t *testing.T, b []byte, each func(number protowire.Number, v uint64, bytes []byte)) {
	t.Helper()
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			t.Fatalf("bad tag in %x", b)
		}
		b = b[n:]
		var v uint64
		var bytes []byte
		switch kind {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			v, n = protowire.ConsumeFixed64(b)
		case protowire.Fixed32Type:
			var w uint32
			w, n = protowire.ConsumeFixed32(b)
			v = uint64(w)
		default:
			bytes, n = protowire.ConsumeBytes(b)
		}
		if n < 0 {
			t.Fatalf("bad field %d in %x", number, b)
		}
		each(number, v, bytes)
		b = b[n:]
	}
}
