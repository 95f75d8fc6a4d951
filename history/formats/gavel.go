package formats

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
)

// unconsolidated marks, in Gavel's names of worker types, that the workers
// are spread over servers.
const unconsolidated = "_unconsolidated"

// ReadGavel reads Gavel's throughputs (OSDI 2020): by worker type and job
// type the rate alone under "null", in steps/s of the whole job, and under
// every other job type the pair of rates when both share their devices. Keys
// are Python tuples of configuration and number of workers, or, in older
// files, plain text.
//
// Samples have scope device: a worker alone or a pair of workers on it. Jobs
// of several workers have Workers and a Span: node, or apart for the
// "_unconsolidated" types, whose class loses that ending. A single worker has
// no span, so what the unconsolidated types repeat of single workers is left
// out. A pair of single workers that does not fit on a device ([0, 0]) becomes
// samples of value 0, which history.SplitMisfits parts; between jobs of
// several workers [0, 0] means not measured, and is left out, as are rates
// alone of 0. Options.Exclude leaves out families of workloads. Records are
// counted over all rates and pairs of the file.
func ReadGavel(r io.Reader, o Options) ([]history.Sample, Report, error) {
	o = o.withDefaults()
	in, err := unpack(r, o)
	if err != nil {
		return nil, Report{}, err
	}
	rep := newReporter(o, "rate")
	if rep.Source == "" {
		rep.Source = "gavel"
	}
	g := &gavel{reporter: rep, records: map[gavelKey]*gavelRecord{}}
	if err := g.document(in); err != nil {
		return nil, rep.Report, err
	}
	for _, k := range g.order {
		if err := g.sample(k, g.records[k]); err != nil {
			return nil, rep.Report, err
		}
	}
	return g.finish()
}

// gavelKey is a rate's place in the file; other is empty for the rate alone.
type gavelKey struct {
	kind       string // the worker type
	job, other gavelJob
}

type gavelRecord struct {
	number       int
	mine, theirs float64 // theirs is 0 for a rate alone
}

// gavel holds the file until all of it is read: a pair can come before the
// rates alone that it is compared with.
type gavel struct {
	*reporter
	number  int // of rates and pairs met
	records map[gavelKey]*gavelRecord
	order   []gavelKey
	// What gave no sample, by reason.
	excluded, stopped, unmeasured, repeated, unlike, unknown, misfits, clashes int
}

// document reads the file, which is one JSON object of worker types.
func (g *gavel) document(in *bufio.Reader) error {
	if _, err := firstByte(in); err == io.EOF {
		return g.fatal("no throughputs: %w", ErrEmpty)
	} else if err != nil {
		return err
	}
	dec := json.NewDecoder(in)
	if err := g.open(dec); err != nil {
		return err
	}
	for dec.More() {
		kind, err := dec.Token()
		if err != nil {
			return g.damaged(dec, err)
		}
		if err := g.open(dec); err != nil {
			return err
		}
		for dec.More() {
			key, err := dec.Token()
			if err != nil {
				return g.damaged(dec, err)
			}
			var entry json.RawMessage
			if err := dec.Decode(&entry); err != nil {
				return g.damaged(dec, err)
			}
			if err := g.entry(fmt.Sprint(kind), fmt.Sprint(key), entry); err != nil {
				return err
			}
		}
		if _, err := dec.Token(); err != nil {
			return g.damaged(dec, err)
		}
	}
	if _, err := dec.Token(); err != nil {
		return g.damaged(dec, err)
	}
	rest := lineReader{in: bufio.NewReader(io.MultiReader(dec.Buffered(), in)), max: g.MaxRecord}
	for {
		line, err := rest.next()
		switch {
		case err == io.EOF:
			return nil
		case errors.Is(err, errLineTooLong):
			return g.fatal("after the throughputs: %w", err)
		case err != nil:
			return err
		case len(bytes.TrimSpace(line)) > 0:
			return g.fatal("byte %d: something follows the throughputs: %s", dec.InputOffset(), quoteShort(string(line)))
		}
	}
}

// open reads the brace of an object.
func (g *gavel) open(dec *json.Decoder) error {
	token, err := dec.Token()
	switch {
	case err != nil:
		return g.damaged(dec, err)
	case token != json.Delim('{'):
		return g.fatal("byte %d: %v, where an object of Gavel's throughputs begins: {worker type: {job type: {\"null\": rate, ...}}}",
			dec.InputOffset(), token)
	}
	return nil
}

// damaged is a document that ends early or is not JSON.
func (g *gavel) damaged(dec *json.Decoder, err error) error {
	var bad *json.SyntaxError
	switch {
	case errors.Is(err, ErrTooLarge), !errors.As(err, &bad) && err != io.EOF && err != io.ErrUnexpectedEOF:
		return err // from the input, which names itself
	case bad != nil:
		return g.fatal("byte %d, after %d rates: %w", dec.InputOffset(), g.number, err)
	}
	return g.fatal("byte %d, after %d rates: %w", dec.InputOffset(), g.number, truncated(err))
}

// entry reads the rates of one job type on one worker type.
func (g *gavel) entry(kind, key string, entry []byte) error {
	where := kind + ": " + key
	job, err := parseGavelKey(key)
	if err == nil && int64(len(entry)) > g.MaxRecord {
		err = fmt.Errorf("is longer than %d bytes", g.MaxRecord)
	}
	if err == nil && strings.TrimSuffix(kind, unconsolidated) == "" {
		err = errors.New("has a worker type without a name")
	}
	if err != nil {
		g.number++
		return g.bad(g.number, &fieldError{where, key, err})
	}
	var ends error // the reading
	err = eachField(entry, func(name, value []byte) error {
		g.number++
		if len(g.order) == g.MaxSamples {
			ends = g.fatal("%w: more than %d rates; raise the limit if the file is sound", ErrTooLarge, g.MaxSamples)
		} else if err := g.rate(gavelKey{kind: kind, job: job}, string(name), value); err != nil {
			ends = g.bad(g.number, &fieldError{where + ": " + string(name), string(value), err})
		}
		return ends
	})
	if err == nil || ends != nil {
		return ends
	}
	g.number++
	return g.bad(g.number, &fieldError{where, string(entry), err})
}

// rate reads one rate alone or pair of rates.
func (g *gavel) rate(k gavelKey, name string, value []byte) error {
	rec := &gavelRecord{number: g.number}
	var err error
	if name == "null" {
		rec.mine, err = gavelRate(value)
	} else {
		if k.other, err = parseGavelKey(name); err != nil {
			return fmt.Errorf("is under a key that %w", err)
		}
		rec.mine, rec.theirs, err = gavelPair(value)
	}
	if err != nil {
		return err
	}
	if g.records[k] != nil {
		return errors.New("comes a second time")
	}
	g.Read++
	g.records[k] = rec
	g.order = append(g.order, k)
	return nil
}

func gavelRate(value []byte) (float64, error) {
	text, err := jsonText(value)
	if err != nil {
		return 0, err
	}
	v, missing, err := parseNumber(string(text))
	switch {
	case err != nil:
		return 0, err
	case missing:
		return 0, errors.New("is no rate")
	case v < 0:
		return 0, errors.New("is negative")
	}
	return v, nil
}

func gavelPair(value []byte) (mine, theirs float64, err error) {
	var pair []json.RawMessage
	if err := json.Unmarshal(value, &pair); err != nil || len(pair) != 2 {
		return 0, 0, errors.New("is no pair of rates")
	}
	if mine, err = gavelRate(pair[0]); err != nil {
		return 0, 0, err
	}
	if theirs, err = gavelRate(pair[1]); err != nil {
		return 0, 0, err
	}
	if (mine == 0) != (theirs == 0) {
		return 0, 0, errors.New("has one rate of 0: a pair that does not fit has two")
	}
	return mine, theirs, nil
}

// sample turns one record into the samples that it holds.
func (g *gavel) sample(k gavelKey, rec *gavelRecord) error {
	class, apart := strings.CutSuffix(k.kind, unconsolidated)
	pair := k.other != gavelJob{}
	switch {
	case g.excludes(k.job.workload) || pair && g.excludes(k.other.workload):
		g.excluded++
		return nil
	case !pair && rec.mine == 0:
		g.stopped++
		return nil
	case pair && rec.mine == 0 && k.job.workers+k.other.workers > 2:
		g.unmeasured++
		return nil
	case pair && k.job.workers != k.other.workers:
		g.unlike++
		return nil
	}
	if apart && k.job.workers == 1 {
		together := k
		together.kind = class
		if same := g.records[together]; same != nil && same.mine == rec.mine && same.theirs == rec.theirs {
			g.repeated++
			return nil
		}
	}
	s := history.Sample{
		Class: class, Scope: history.ScopeDevice, Colocation: cluster.Colocation{k.job.workload: 1}, Workload: k.job.workload,
		Role: cluster.Worker, Workers: k.job.workers, BatchSize: k.job.batch, Metric: history.Rate, Value: rec.mine,
		Alone: g.alone(k.kind, k.job),
	}
	if k.job.workers > 1 {
		s.Span = cluster.SpanNode
		if apart {
			s.Span = cluster.SpanApart
		}
	}
	if !pair {
		return g.add(rec.number, s)
	}
	s.Colocation[k.other.workload]++
	back := g.records[gavelKey{k.kind, k.other, k.job}]
	switch {
	case k.job == k.other:
		if rec.mine != rec.theirs {
			g.clashes++
		}
		s.Value = (rec.mine + rec.theirs) / 2
	case back == nil:
		// Only this side of the pair is in the file: it holds both rates.
		t := s
		t.Workload, t.BatchSize, t.Value, t.Alone = k.other.workload, k.other.batch, rec.theirs, g.alone(k.kind, k.other)
		if err := g.addPair(rec.number, t); err != nil {
			return err
		}
	case back.mine != rec.theirs || back.theirs != rec.mine:
		g.clashes++
	}
	return g.addPair(rec.number, s)
}

// addPair takes in a sample of a pair. One of 0 says something only beside a
// rate alone.
func (g *gavel) addPair(n int, s history.Sample) error {
	switch {
	case s.Value == 0 && s.Alone == 0:
		g.unknown++
		return nil
	case s.Value == 0:
		g.misfits++
	}
	return g.add(n, s)
}

func (g *gavel) alone(kind string, job gavelJob) float64 {
	if rec := g.records[gavelKey{kind: kind, job: job}]; rec != nil {
		return rec.mine
	}
	return 0
}

func (g *gavel) finish() ([]history.Sample, Report, error) {
	for _, w := range []struct {
		count      int
		what, then string
	}{
		{g.excluded, "rates and pairs of the excluded " + strings.Join(slices.Sorted(slices.Values(g.Exclude)), ", "), "left out"},
		{g.stopped, "rates alone of 0", "no measurements, left out"},
		{g.misfits, "rates of pairs that do not fit on a device together", "kept as 0"},
		{g.unmeasured, "pairs of [0, 0] between jobs of several workers", "not measured, left out"},
		{g.unlike, "pairs of jobs with unlike numbers of workers", "a sample cannot hold them, left out"},
		{g.unknown, "rates of 0 of jobs whose rate alone is unknown", "they say nothing, left out"},
		{g.repeated, "rates of single workers that the unconsolidated types repeat", "taken once"},
		{g.clashes, "pairs whose two entries differ", "each kept as it stands"},
	} {
		if w.count > 0 {
			g.warn("%s: %d; %s", w.what, w.count, w.then)
		}
	}
	return g.doneSamples()
}
