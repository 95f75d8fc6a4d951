package external

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
)

// Version is the version of the protocol, sent in every request. It rises
// when a program written for an older one would misread a line.
const Version = 1

// request is the first line of an exchange.
type request struct {
	Version int `json:"version"`
	// ID numbers the exchange; the answer repeats it.
	ID        uint64          `json:"id"`
	Cluster   cluster.Spec    `json:"cluster"`
	Pending   []cluster.Group `json:"pending"`
	Objective place.Objective `json:"objective"`
	// Seed fits a JSON number: 0 to 2^53-1.
	Seed     uint64  `json:"seed"`
	NowS     float64 `json:"now_s"`
	TimeoutS float64 `json:"timeout_s"`
	// Model says what a question for predictions can name; absent where the
	// policy has no model.
	Model *modelInfo `json:"model,omitempty"`
}

type modelInfo struct {
	Kind      string              `json:"kind"`
	Classes   []string            `json:"classes"`
	Workloads map[string][]string `json:"workloads"`
}

// answer is a line of the program: a question, a decision or a refusal.
type answer struct {
	ID      *uint64         `json:"id"`
	Predict *question       `json:"predict"`
	Error   string          `json:"error"`
	Bind    []place.Binding `json:"bind"`
	Move    []place.Move    `json:"move"`
	Resize  []place.Resize  `json:"resize"`
	Hold    []place.Hold    `json:"hold"`
	Why     place.Reasons   `json:"why"`
}

type question struct {
	Class       string               `json:"class"`
	Metric      history.Metric       `json:"metric"`
	Colocations []cluster.Colocation `json:"colocations"`
}

// reply answers a question. Each co-location has an estimate by workload, or
// null where the model is silent.
type reply struct {
	ID        uint64                 `json:"id"`
	Estimates []map[string]*estimate `json:"estimates"`
}

type estimate struct {
	Value    float64 `json:"value"`
	Std      float64 `json:"std"`
	Measured bool    `json:"measured"`
}

func describe(m interference.Model) *modelInfo {
	if m == nil {
		return nil
	}
	info := &modelInfo{Kind: m.Kind(), Classes: m.Classes(), Workloads: map[string][]string{}}
	for _, c := range info.Classes {
		info.Workloads[c] = m.Workloads(c)
	}
	return info
}

func (q *question) answer(id uint64, m interference.Model) (reply, error) {
	if m == nil {
		return reply{}, errors.New("asks for predictions, but there is no model")
	}
	metric := q.Metric
	switch metric {
	case "":
		metric = history.Rate
	case history.Rate, history.P50, history.P99:
	default:
		return reply{}, fmt.Errorf("asks for predictions of metric %q; it is one of rate, p50, p99", q.Metric)
	}
	for i, c := range q.Colocations {
		for w, n := range c {
			if n < 1 || n > math.MaxUint16 {
				return reply{}, fmt.Errorf("asks for predictions: colocations[%d] has %d tasks of %q; counts are 1 to %d", i, n, w, math.MaxUint16)
			}
		}
	}
	out := reply{ID: id, Estimates: make([]map[string]*estimate, len(q.Colocations))}
	for i, row := range m.Predict(place.ModelClass(m, q.Class), metric, q.Colocations) {
		out.Estimates[i] = map[string]*estimate{}
		for j, w := range q.Colocations[i].Workloads() {
			out.Estimates[i][w] = nil
			if e := row[j]; e.Known && !math.IsNaN(e.Value) && !math.IsInf(e.Value, 0) {
				out.Estimates[i][w] = &estimate{e.Value, e.Std, e.Measured}
			}
		}
	}
	return out, nil
}

// decision checks a line that should be one.
func (a *answer) decision(id uint64) (place.Decision, error) {
	switch {
	case a.ID == nil:
		return place.Decision{}, fmt.Errorf("the line has no id; repeat the request's, %d", id)
	case *a.ID != id:
		return place.Decision{}, fmt.Errorf("the line has id %d, but the request has %d", *a.ID, id)
	case a.Error != "":
		return place.Decision{}, &refusal{a.Error}
	}
	return place.Decision{Bind: a.Bind, Move: a.Move, Resize: a.Resize, Hold: a.Hold, Why: a.Why}, nil
}

// parse reads a line strictly: a misspelt field would lose a decision.
func parse(line []byte) (*answer, error) {
	var a answer
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		return nil, fmt.Errorf("the line is not an answer in JSON: %w; it is %s", err, shown(line))
	}
	if d.More() {
		return nil, fmt.Errorf("the line holds more than one JSON value: %s", shown(line))
	}
	return &a, nil
}
