package curves

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of TensorFlow's event.proto and summary.proto.
const (
	eventWallTime    = 1 // double, seconds since 1970
	eventStep        = 2
	eventFileVersion = 3
	eventSummary     = 5
	eventSessionLog  = 7

	summaryValue      = 1
	valueTag          = 1
	valueSimple       = 2 // float
	sessionStatus     = 1
	sessionStart      = 1
	eventsFileVersion = "brain.Event:2"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked is the checksum of a record: CRC-32C, rotated right by 15 bits, plus a
// constant, so that the checksum of data that holds checksums stays good.
func masked(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

// record appends a TFRecord: the length, its checksum, the data, theirs; all
// numbers little-endian.
func record(to, data []byte) []byte {
	from := len(to)
	to = binary.LittleEndian.AppendUint64(to, uint64(len(data)))
	to = binary.LittleEndian.AppendUint32(to, masked(to[from:]))
	to = append(to, data...)
	return binary.LittleEndian.AppendUint32(to, masked(data))
}

// event begins an Event message.
func event(at time.Time, step int) []byte {
	b := protowire.AppendTag(nil, eventWallTime, protowire.Fixed64Type)
	b = protowire.AppendFixed64(b, math.Float64bits(float64(at.Unix())+float64(at.Nanosecond())/1e9))
	if step == 0 { // as protocol buffers write their zeros: not at all
		return b
	}
	b = protowire.AppendTag(b, eventStep, protowire.VarintType)
	return protowire.AppendVarint(b, uint64(int64(step)))
}

// header is the first record of every event file.
func header(at time.Time) []byte {
	b := protowire.AppendTag(event(at, 0), eventFileVersion, protowire.BytesType)
	return record(nil, protowire.AppendString(b, eventsFileVersion))
}

// restart is the record from which readers drop what earlier files say of step
// and later.
func restart(at time.Time, step int) []byte {
	status := protowire.AppendTag(nil, sessionStatus, protowire.VarintType)
	status = protowire.AppendVarint(status, sessionStart)
	b := protowire.AppendTag(event(at, step), eventSessionLog, protowire.BytesType)
	return record(nil, protowire.AppendBytes(b, status))
}

// scalars is the record of the values of a step. What is not finite is left
// out: there is no point to draw.
func scalars(at time.Time, step int, values []Scalar) []byte {
	var summary []byte
	for _, s := range values {
		if !s.finite() {
			continue
		}
		v := protowire.AppendTag(nil, valueTag, protowire.BytesType)
		v = protowire.AppendString(v, s.Tag)
		v = protowire.AppendTag(v, valueSimple, protowire.Fixed32Type)
		v = protowire.AppendFixed32(v, math.Float32bits(float32(s.Value)))
		summary = protowire.AppendTag(summary, summaryValue, protowire.BytesType)
		summary = protowire.AppendBytes(summary, v)
	}
	b := protowire.AppendTag(event(at, step), eventSummary, protowire.BytesType)
	return record(nil, protowire.AppendBytes(b, summary))
}
