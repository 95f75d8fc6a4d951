package formats

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/cotenant/cotenant/cluster"
)

// MaxQuantity bounds an amount of a resource, in the unit of
// cluster.Resources: 1 EiB of memory. A node that runs several times what it
// has must still be counted without overflow.
const MaxQuantity = 1 << 60

// ParseQuantity reads an amount of a resource by Kubernetes' rules ("100m",
// "1e3", "0.5Gi") into the unit of cluster.Resources: thousandths for CPU,
// whole units for the rest, rounded up as Kubernetes rounds. Errors say what is
// wrong with the text, without repeating it.
func ParseQuantity(name, text string) (int64, error) {
	// The library computes with as many digits as an exponent asks for.
	const longest, largestExponent = 64, 30
	if len(text) > longest {
		return 0, errors.New("is too long for a quantity")
	}
	most, unit := int64(MaxQuantity), ""
	if name == cluster.CPU {
		most, unit = MaxQuantity/1000, " cores"
	}
	tooMuch := fmt.Errorf("is out of range: at most %d%s", most, unit)
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		n, err := strconv.Atoi(text[at+1:])
		if errors.Is(err, strconv.ErrRange) || err == nil && (n > largestExponent || n < -largestExponent) {
			return 0, tooMuch
		}
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return 0, errors.New("is not a quantity like 500m, 2 or 16Gi")
	}
	if q.Sign() < 0 {
		return 0, errors.New("is negative")
	}
	if q.CmpInt64(most) > 0 {
		return 0, tooMuch
	}
	if name == cluster.CPU {
		return q.MilliValue(), nil
	}
	return q.Value(), nil
}

// resources reads a resource list. A request of 0 asks for nothing and is
// left out.
func resources(field string, list map[string]rawQuantity) (cluster.Resources, error) {
	out := make(cluster.Resources, len(list))
	for _, name := range sortedKeys(list) {
		text, err := list[name].text()
		if err != nil {
			return nil, &fieldError{field + "[" + name + "]", string(list[name]), err}
		}
		if text == "" {
			continue
		}
		n, err := ParseQuantity(name, text)
		if err != nil {
			return nil, &fieldError{field + "[" + name + "]", text, err}
		}
		if n != 0 {
			out[name] = n
		}
	}
	return out, nil
}

// rawQuantity is a quantity as it stands in JSON: a string or a number.
type rawQuantity []byte

func (q *rawQuantity) UnmarshalJSON(b []byte) error {
	*q = append((*q)[:0], b...)
	return nil
}

// text is "" for null.
func (q rawQuantity) text() (string, error) {
	if len(q) == 0 || string(q) == "null" {
		return "", nil
	}
	text, err := jsonText(q)
	if err == nil && len(text) == 0 {
		err = errors.New("is empty, which is no quantity")
	}
	return string(text), err
}

// sum adds b to a, and larger takes the larger of each resource; both fail
// where the total passes what an int64 holds.
func sum(a, b cluster.Resources) (cluster.Resources, error) {
	out := make(cluster.Resources, len(a)+len(b))
	for name, n := range a {
		out[name] = n
	}
	for name, n := range b {
		if out[name] > math.MaxInt64-n {
			return nil, badField(name, strconv.FormatInt(n, 10), "makes the pod's total too large for a number")
		}
		out[name] += n
	}
	return out, nil
}

func larger(a, b cluster.Resources) cluster.Resources {
	out := make(cluster.Resources, len(a)+len(b))
	for name, n := range a {
		out[name] = n
	}
	for name, n := range b {
		out[name] = max(out[name], n)
	}
	return out
}
