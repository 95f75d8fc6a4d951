package interference

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/cotenant/cotenant/internal/tensors"
)

// fileFormat is that of model files. Version 1 has no kin.
var fileFormat = tensors.Format{
	Name:     "cotenant-interference-model",
	Versions: map[string]int{"format_version": 2, "encoder_version": encoderVersion},
	What:     "a Cotenant model file", Make: "write one with `cotenant fit --out FILE`", Again: "fit again",
}

// MaxFileSize is what a model file should stay below, in bytes, so that a
// Kubernetes ConfigMap (1 MiB with its base64) holds it.
const MaxFileSize = 700_000

// Save writes a model that Fit or Load returned. The same model gives the
// same bytes. With what was measured inside, a file grows by about 5 bytes a
// cell and metric; Options.PredictedOnly leaves that out of linear and neural.
func Save(w io.Writer, m Model) error {
	f, ok := m.(*fitted)
	if !ok {
		return fmt.Errorf("cannot save a %s model made by Override: fit again on all samples", m.Kind())
	}
	metadata := map[string]string{
		"kind":           f.Kind(),
		"features":       "by workload sqrt(tasks), then 1 where present; log(1 + tasks); class one-hot if there are several",
		"output":         "log(value / alone) by metric and workload",
		"classes":        list(f.classes),
		"workloads":      list(f.workloads),
		"seed":           strconv.FormatUint(f.seed, 10),
		"samples_sha256": f.fingerprint,
		"override":       strconv.FormatBool(f.override),
		"most_tasks":     list(f.most),
	}
	var t tensors.Writer
	var known []int
	for _, class := range f.known {
		for _, metric := range class {
			for _, k := range metric {
				v := 0
				if k {
					v = 1
				}
				known = append(known, v)
			}
		}
	}
	t.Small("known", known, len(f.classes), len(metrics), len(f.workloads))
	if f.override || f.Kind() == KindTable || f.Kind() == KindForest {
		f.data.put(&t)
	}
	switch c := f.core.(type) {
	case *linear:
		c.put(&t)
	case *neural:
		metadata["members"] = strconv.Itoa(len(c.members))
		metadata["metrics"] = list(c.metricNames())
		c.put(&t)
	}
	return t.Save(w, fileFormat, metadata)
}

func list(of any) string {
	text, err := json.Marshal(of)
	must(err)
	return string(text)
}

// Load reads what Save wrote. Any other file, a damaged one and one by a newer
// program are errors that say so and what to do.
func Load(r io.Reader) (Model, error) {
	t, err := tensors.Read(r, fileFormat)
	if err != nil {
		return nil, err
	}
	f := &fitted{fingerprint: t.Metadata["samples_sha256"]}
	if f.seed, err = strconv.ParseUint(t.Metadata["seed"], 10, 64); err != nil {
		return nil, fmt.Errorf("seed %q: %w", t.Metadata["seed"], err)
	}
	if f.override, err = strconv.ParseBool(t.Metadata["override"]); err != nil {
		return nil, fmt.Errorf("override %q is neither true nor false", t.Metadata["override"])
	}
	if f.space, err = loadSpace(t); err != nil {
		return nil, err
	}
	kind := t.Metadata["kind"]
	if f.override || kind == KindTable || kind == KindForest {
		if f.data, err = loadDataset(t, f.space); err != nil {
			return nil, err
		}
	}
	switch kind {
	case KindTable:
		f.core = table{f.data}
	case KindForest:
		f.core = fitForest(f.data, Options{Seed: f.seed})
	case KindLinear:
		f.core, err = loadLinear(t, f.space)
	case KindNeural:
		f.core, err = loadNeural(t, f.space)
	default:
		err = fmt.Errorf("kind %q is none of %v", kind, Kinds())
	}
	if err != nil {
		return nil, err
	}
	if err := t.Finish(); err != nil {
		return nil, err
	}
	return f, nil
}

func loadSpace(t *tensors.Reader) (space, error) {
	names := func(field string) ([]string, error) {
		var out []string
		if err := json.Unmarshal([]byte(t.Metadata[field]), &out); err != nil {
			return nil, fmt.Errorf("%s %q: %w", field, t.Metadata[field], err)
		}
		for i := 1; i < len(out); i++ {
			if out[i] <= out[i-1] {
				return nil, fmt.Errorf("%s: %q after %q; they must be sorted and differ", field, out[i], out[i-1])
			}
		}
		if len(out) == 0 || len(out) >= 1<<16 {
			return nil, fmt.Errorf("%s: %d names", field, len(out))
		}
		return out, nil
	}
	classes, err := names("classes")
	if err != nil {
		return space{}, err
	}
	workloads, err := names("workloads")
	if err != nil {
		return space{}, err
	}
	known, err := t.Small("known", len(classes), len(metrics), len(workloads))
	if err != nil {
		return space{}, err
	}
	s := newSpace(classes, workloads)
	if text, ok := t.Metadata["most_tasks"]; ok {
		s.most = nil
		if err := json.Unmarshal([]byte(text), &s.most); err != nil || len(s.most) != len(classes) || slices.Min(s.most) < 0 {
			return space{}, fmt.Errorf("most_tasks %q: give a number of at least 0 for each of %d classes; fit again", text, len(classes))
		}
	}
	for c := range s.known {
		for m := range s.known[c] {
			for w := range s.known[c][m] {
				s.known[c][m][w] = known[0] != 0
				known = known[1:]
			}
		}
	}
	return s, nil
}

// put writes the measurements: per row its class and number of members; per
// member its workload and count; per metric a value (NaN: not measured) and,
// where any is not 0, a standard deviation for each member.
func (d *dataset) put(t *tensors.Writer) {
	var class, size, workload, count []int
	for _, r := range d.rows {
		class, size = append(class, r.class), append(size, len(r.members))
		for _, m := range r.members {
			workload, count = append(workload, m.workload), append(count, m.count)
		}
	}
	t.Small("measured.class", class, len(class))
	t.Small("measured.members", size, len(size))
	t.Small("measured.workload", workload, len(workload))
	t.Small("measured.count", count, len(count))
	for _, m := range d.measured() {
		values, stds := make([]float32, 0, len(count)), make([]float32, 0, len(count))
		spread := false
		for _, r := range d.rows {
			for i := range r.members {
				v, std := float32(math.NaN()), float32(0)
				if r.obs[m] != nil && r.obs[m][i].measured {
					v, std = float32(r.obs[m][i].value), float32(r.obs[m][i].std)
				}
				spread = spread || std != 0
				values, stds = append(values, v), append(stds, std)
			}
		}
		t.Floats("measured."+string(metrics[m])+".value", values, len(values))
		if spread {
			t.Floats("measured."+string(metrics[m])+".std", stds, len(stds))
		}
	}
}

// fingerprint is the SHA-256 of the measurements as a file holds them, with
// the names.
func (d *dataset) fingerprint() string {
	var t tensors.Writer
	d.put(&t)
	h := sha256.New()
	io.WriteString(h, list(d.classes)+list(d.workloads)) // a hash never fails to write
	h.Write(t.Data())
	return hex.EncodeToString(h.Sum(nil))
}

func loadDataset(t *tensors.Reader, s space) (*dataset, error) {
	d := &dataset{space: s, index: make([]map[string]int, len(s.classes))}
	for c := range d.index {
		d.index[c] = map[string]int{}
	}
	rows, n := t.Length("measured.class"), t.Length("measured.workload")
	class, err := t.Small("measured.class", rows)
	if err != nil {
		return nil, err
	}
	size, err := t.Small("measured.members", rows)
	if err != nil {
		return nil, err
	}
	workload, err := t.Small("measured.workload", n)
	if err != nil {
		return nil, err
	}
	count, err := t.Small("measured.count", n)
	if err != nil {
		return nil, err
	}
	at := 0
	for r := range rows {
		bad := func(what string) error { return fmt.Errorf("measured co-location %d: %s; fit again", r, what) }
		if class[r] >= len(s.classes) || size[r] == 0 || at+size[r] > n {
			return nil, bad(fmt.Sprintf("class %d, %d members", class[r], size[r]))
		}
		ms := make([]member, size[r])
		for i := range ms {
			ms[i] = member{workload[at+i], count[at+i]}
			if ms[i].workload >= len(s.workloads) || ms[i].count == 0 || ms[i].count > maxCount || i > 0 && ms[i].workload <= ms[i-1].workload {
				return nil, bad(fmt.Sprintf("%d tasks of workload %d", ms[i].count, ms[i].workload))
			}
		}
		at += size[r]
		if d.row(class[r], ms) != r {
			return nil, bad("is there twice")
		}
	}
	if at != n {
		return nil, fmt.Errorf("measured co-locations have %d members, the file %d; fit again", at, n)
	}
	return d, d.loadValues(t, n)
}

func (d *dataset) loadValues(t *tensors.Reader, n int) error {
	for m, name := range metrics {
		field := "measured." + string(name) + "."
		if !d.knows(m) {
			continue
		}
		values, err := t.Floats(field+"value", true, n)
		if err != nil {
			return err
		}
		stds := make([]float32, n)
		if t.Has(field + "std") {
			if stds, err = t.Floats(field+"std", false, n); err != nil {
				return err
			}
		}
		at := 0
		for r := range d.rows {
			row := &d.rows[r]
			obs := make([]observation, len(row.members))
			any := false
			for i, mem := range row.members {
				v, std := float64(values[at+i]), float64(stds[at+i])
				if math.IsNaN(v) {
					continue
				}
				if v < 0 || std < 0 || !d.known[row.class][m][mem.workload] {
					return fmt.Errorf("measured %s %d: %g +- %g of workload %q; fit again", name, at+i, v, std, d.workloads[mem.workload])
				}
				obs[i], any = observation{v, std, true}, true
			}
			at += len(row.members)
			if any {
				row.obs[m] = obs
			}
		}
	}
	return nil
}
