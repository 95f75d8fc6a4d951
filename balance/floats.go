package balance

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
)

// floats are numbers whose JSON is base64 of their little-endian bytes: exact,
// and a third of the digits.
type floats []float64

// MarshalJSON implements json.Marshaler.
func (f floats) MarshalJSON() ([]byte, error) {
	raw := make([]byte, 0, 8*len(f))
	for _, v := range f {
		raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(v))
	}
	return json.Marshal(base64.StdEncoding.EncodeToString(raw))
}

// UnmarshalJSON implements json.Unmarshaler; what is not finite is an error.
func (f *floats) UnmarshalJSON(text []byte) error {
	var encoded string
	if err := json.Unmarshal(text, &encoded); err != nil {
		return err
	}
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return err
	}
	if len(raw)%8 != 0 {
		return fmt.Errorf("%w: numbers: %d bytes are no multiple of 8", ErrInvalid, len(raw))
	}
	*f = make(floats, 0, len(raw)/8)
	for ; len(raw) > 0; raw = raw[8:] {
		v := math.Float64frombits(binary.LittleEndian.Uint64(raw))
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%w: numbers: %v is not finite", ErrInvalid, v)
		}
		*f = append(*f, v)
	}
	return nil
}
