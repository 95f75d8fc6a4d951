package serve

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"connectrpc.com/connect"
	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	balancev1 "github.com/cotenant/cotenant/serve/proto/cotenant/balance/v1"
)

// jsonCodec is Connect's codec for JSON, which reads the one message that is
// large, the reports of a thousand workers, several times as fast as protojson
// does: workers wait for it. What it does not know for sure it leaves to
// protojson, so that both always read the same.
type jsonCodec struct{ name string }

// withJSON takes the place of Connect's two codecs for JSON.
func withJSON() connect.HandlerOption {
	return connect.WithHandlerOptions(connect.WithCodec(jsonCodec{"json"}), connect.WithCodec(jsonCodec{"json; charset=utf-8"}))
}

func (c jsonCodec) Name() string { return c.name }

func (c jsonCodec) Marshal(message any) ([]byte, error) {
	m, ok := message.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is no message", message)
	}
	return protojson.Marshal(m)
}

func (c jsonCodec) Unmarshal(data []byte, message any) error {
	m, ok := message.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is no message", message)
	}
	if r, ok := m.(*balancev1.ReportRequest); ok && parseReportRequest(data, r) == nil {
		return nil
	}
	// A newer client's fields are passed over.
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, m); err != nil {
		return fmt.Errorf("unmarshal into %T: %w", message, err)
	}
	return nil
}

// errUnsure: protojson knows what to do with it.
var errUnsure = errors.New("not the usual way to write it")

// parseReportRequest reads a request as clients usually write it. After an
// error r is undefined.
func parseReportRequest(data []byte, r *balancev1.ReportRequest) error {
	proto.Reset(r)
	d := jsontext.NewDecoder(bytes.NewBuffer(data))
	err := fields(d, func(name string) error {
		var err error
		switch name {
		case `"job"`:
			r.Job, err = text(d)
		case `"generation"`:
			r.Generation, err = integer(d, 64)
		case `"iteration"`:
			r.Iteration, err = integer(d, 64)
		case `"heldIteration"`:
			r.HeldIteration, err = integer(d, 64)
		case `"reports"`:
			r.Reports, err = reports(d)
		default:
			err = errUnsure
		}
		return err
	})
	if err != nil {
		return err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return errUnsure
	}
	return nil
}

func reports(d *jsontext.Decoder) ([]*balancev1.WorkerReport, error) {
	if d.PeekKind() != '[' {
		return nil, errUnsure
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	var all []*balancev1.WorkerReport
	for d.PeekKind() == '{' {
		w := new(balancev1.WorkerReport)
		if err := fields(d, func(name string) error { return workerField(d, name, w) }); err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	if end, err := d.ReadToken(); err != nil || end.Kind() != ']' {
		return nil, errUnsure
	}
	return all, nil
}

func workerField(d *jsontext.Decoder, name string, w *balancev1.WorkerReport) (err error) {
	var n int64
	switch name {
	case `"worker"`:
		w.Worker, err = text(d)
	case `"batchSize"`:
		n, err = integer(d, 32)
		w.BatchSize = int32(n)
	case `"computeSeconds"`:
		w.ComputeSeconds, err = number(d)
	case `"communicateSeconds"`:
		w.CommunicateSeconds, err = number(d)
	case `"cpu"`:
		w.Cpu, err = number(d)
	case `"memory"`:
		w.Memory, err = number(d)
	case `"outOfMemory"`:
		w.OutOfMemory, err = truth(d)
	case `"iterationsAgo"`:
		n, err = integer(d, 32)
		w.IterationsAgo = int32(n)
	default:
		err = errUnsure
	}
	return err
}

// fields reads an object, each name in its quotes before its value is read.
func fields(d *jsontext.Decoder, read func(name string) error) error {
	if begin, err := d.ReadToken(); err != nil || begin.Kind() != '{' {
		return errUnsure
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadValue()
		if err != nil {
			return err
		}
		if err := read(string(name)); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

func text(d *jsontext.Decoder) (string, error) {
	t, err := d.ReadToken()
	if err != nil || t.Kind() != '"' {
		return "", errUnsure
	}
	return t.String(), nil
}

func truth(d *jsontext.Decoder) (bool, error) {
	t, err := d.ReadToken()
	if err != nil || t.Kind() != 't' && t.Kind() != 'f' {
		return false, errUnsure
	}
	return t.Bool(), nil
}

// integer reads one that is written as a number or, as protojson does, as text.
func integer(d *jsontext.Decoder, bits int) (int64, error) {
	v, err := d.ReadValue()
	if err != nil || v.Kind() != '0' && v.Kind() != '"' {
		return 0, errUnsure
	}
	s := string(bytes.Trim(v, `"`))
	n, err := strconv.ParseInt(s, 10, bits)
	if err != nil || strconv.FormatInt(n, 10) != s {
		return 0, errUnsure // 1e3, 007, -0
	}
	return n, nil
}

func number(d *jsontext.Decoder) (float64, error) {
	v, err := d.ReadValue()
	if err != nil || v.Kind() != '0' {
		return 0, errUnsure // "NaN"
	}
	return strconv.ParseFloat(string(v), 64)
}
