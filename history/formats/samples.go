package formats

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/internal/misfit"
)

// ReadSamples reads samples in any of the formats, told apart by content: our
// JSON Lines or CSV, Metis's npz (which needs Options.Columns) or CSV, Gavel's
// throughputs (without the families in Options.Exclude), DL2's speeds.
func ReadSamples(r io.Reader, o Options) ([]history.Sample, Report, error) {
	o = o.withDefaults()
	in, err := unpack(r, o)
	if err != nil {
		return nil, Report{}, err
	}
	head, err := in.Peek(4 << 10)
	if err != nil && err != io.EOF {
		return nil, Report{}, err
	}
	line, _, _ := bytes.Cut(bytes.TrimLeft(head, " \t\r\n"), []byte{'\n'})
	switch {
	case bytes.HasPrefix(line, []byte("PK\x03\x04")):
		return ReadMetisNPZ(in, o)
	case bytes.HasPrefix(head, []byte("SQLite format 3\x00")):
		return nil, Report{}, newReporter(o, "").fatal("is an SQLite store, which is opened by path and not read as a file")
	case bytes.Contains(line, []byte("rps_")) && !bytes.HasPrefix(line, []byte{'{'}):
		return ReadMetisCSV(in, o)
	case bytes.Contains(line, []byte("colocation")) && !bytes.HasPrefix(line, []byte{'{'}):
		return ReadCSV(in, o)
	case bytes.HasPrefix(line, []byte{'('}):
		return ReadDL2Samples(in, o)
	case nestsThrice(head):
		return ReadGavel(in, o)
	}
	return ReadJSONL(in, o)
}

// nestsThrice tells Gavel's throughputs, objects in objects in an object, from
// a sample, whose co-location is an object of numbers.
func nestsThrice(head []byte) bool {
	dec := json.NewDecoder(bytes.NewReader(head))
	for i := range 5 {
		token, _ := dec.Token() // what is wrong with it, the reader says better
		if _, isName := token.(string); isName != (i%2 == 1) || !isName && token != json.Delim('{') {
			return false
		}
	}
	return true
}

// ReadCluster reads a cluster from a Kubernetes snapshot or from our own JSON,
// as WriteCluster writes it, told apart by the first field.
func ReadCluster(r io.Reader, o Options) (Cluster, Report, error) {
	o = o.withDefaults()
	in, err := unpack(r, o)
	if err != nil {
		return Cluster{}, Report{}, err
	}
	head, err := in.Peek(4 << 10)
	if err != nil && err != io.EOF {
		return Cluster{}, Report{}, err
	}
	first := json.NewDecoder(bytes.NewReader(head))
	token, _ := first.Token() // what is wrong with it, the reader says better
	if token == json.Delim('{') {
		token, _ = first.Token()
	}
	name, _ := token.(string)
	if !slices.Contains([]string{"nodes", "running", "workloads", "constraints", "pending"}, name) {
		return ReadKubernetes(in, o)
	}
	rep := newReporter(o, "")
	dec := json.NewDecoder(in)
	dec.DisallowUnknownFields()
	var c Cluster
	if err := dec.Decode(&c); err != nil {
		return Cluster{}, rep.Report, rep.fatal("byte %d: %s", dec.InputOffset(), misfit.JSON(truncated(err)))
	}
	if _, err := dec.Token(); err != io.EOF {
		return Cluster{}, rep.Report, rep.fatal("byte %d: more than one JSON object", dec.InputOffset())
	}
	if _, err := cluster.NewSnapshot(c.Spec); err != nil {
		return Cluster{}, rep.Report, rep.fatal("%w", err)
	}
	rep.Read = len(c.Nodes) + len(c.Running)
	report, err := rep.done(rep.Read, "nodes")
	return c, report, err
}

// WriteCluster writes a cluster as ReadCluster reads it.
func WriteCluster(w io.Writer, c Cluster) error { return writeJSON(w, c) }

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
