package prometheus

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"
)

// Series are the values of one set of labels, in order of time. Values may be
// NaN or infinite, as Prometheus has them.
type Series struct {
	Labels map[string]string
	Times  []time.Time
	Values []float64
}

// label is the label of that name, or of what Prometheus calls it where the
// target had a label of its own by that name: an exporter's pod is "pod", the
// pod that it tells of "exported_pod".
func (s *Series) label(name string) string {
	if v := s.Labels["exported_"+name]; v != "" {
		return v
	}
	return s.Labels[name]
}

// pod is namespace/name of the pod that the series tells of; ok is false where
// it does not say.
func (s *Series) pod() (id string, ok bool) {
	namespace, name := s.label("namespace"), s.label("pod")
	return namespace + "/" + name, namespace != "" && name != ""
}

// Error is a refusal by the server.
type Error struct {
	// Kind is Prometheus' word for it, such as bad_data, timeout or execution.
	Kind  string
	words string
}

func (e *Error) Error() string { return e.words }

// ParseMatrix reads the answer to a range query, and the warnings in it.
func ParseMatrix(r io.Reader) (series []Series, warnings []string, err error) {
	var answer struct {
		Status    string   `json:"status"`
		ErrorType string   `json:"errorType"`
		Error     string   `json:"error"`
		Warnings  []string `json:"warnings"`
		Data      struct {
			Type   string `json:"resultType"`
			Result []struct {
				Metric     map[string]string    `json:"metric"`
				Values     [][2]json.RawMessage `json:"values"`
				Histograms []json.RawMessage    `json:"histograms"`
			} `json:"result"`
		} `json:"data"`
	}
	if err := json.NewDecoder(r).Decode(&answer); err != nil {
		return nil, nil, fmt.Errorf("the answer is not Prometheus' JSON: %w; is that its address?", err)
	}
	switch {
	case answer.Status == "error":
		return nil, answer.Warnings, &Error{answer.ErrorType, fmt.Sprintf("%s: %s", answer.ErrorType, answer.Error)}
	case answer.Status != "success":
		return nil, nil, fmt.Errorf("the answer's status is %.40q; is that address Prometheus'?", answer.Status)
	case answer.Data.Type != "matrix":
		return nil, nil, fmt.Errorf("the result is a %.40q, where a matrix belongs", answer.Data.Type)
	}
	for i, one := range answer.Data.Result {
		if len(one.Histograms) > 0 {
			return nil, nil, fmt.Errorf("result[%d]: %s: native histograms, where numbers belong; wrap the query in histogram_quantile or histogram_count", i, labels(one.Metric))
		}
		s := Series{Labels: one.Metric, Times: make([]time.Time, 0, len(one.Values)), Values: make([]float64, 0, len(one.Values))}
		for j, pair := range one.Values {
			t, v, err := parsePair(pair)
			if err == nil && j > 0 && !t.After(s.Times[j-1]) {
				err = fmt.Errorf("time %s is not after the one before", t.Format(time.RFC3339))
			}
			if err != nil {
				return nil, nil, fmt.Errorf("result[%d].values[%d]: %w", i, j, err)
			}
			s.Times, s.Values = append(s.Times, t), append(s.Values, v)
		}
		series = append(series, s)
	}
	return series, answer.Warnings, nil
}

// maxSeconds is the year 9999.
const maxSeconds = 253402300799

// parsePair reads [seconds, "value"]: values are strings, since JSON has no NaN.
func parsePair(pair [2]json.RawMessage) (t time.Time, v float64, err error) {
	var seconds float64
	if err := json.Unmarshal(pair[0], &seconds); err != nil || math.Abs(seconds) > maxSeconds {
		return t, 0, fmt.Errorf("time %.40s: no number of seconds", pair[0])
	}
	var text string
	if err := json.Unmarshal(pair[1], &text); err != nil {
		return t, 0, fmt.Errorf("value %.40s: no string", pair[1])
	}
	if v, err = strconv.ParseFloat(text, 64); err != nil && !errors.Is(err, strconv.ErrRange) {
		return t, 0, fmt.Errorf("value %.40q: no number", text)
	}
	return time.UnixMilli(int64(math.Round(seconds * 1000))).UTC(), v, nil
}

// labels are those of a series, for people.
func labels(m map[string]string) string {
	text := ""
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if len(text) > 200 {
			return "{" + text + ", ...}"
		}
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("%s=%q", k, m[k])
	}
	return "{" + text + "}"
}

// sorted are the keys of a map in order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
