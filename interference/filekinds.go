package interference

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/internal/num"
	"github.com/cotenant/cotenant/internal/tensors"
)

func (n noise) put(t *tensors.Writer, name string) {
	t.Floats(name+".alpha", n.alpha, len(n.alpha))
	t.Floats(name+".slope", []float32{n.slope}, 1)
}

func loadNoise(t *tensors.Reader, name string, groups int) (noise, error) {
	alpha, err := t.Floats(name+".alpha", false, groups)
	if err != nil {
		return noise{}, err
	}
	slope, err := t.Floats(name+".slope", false, 1)
	if err != nil {
		return noise{}, err
	}
	return noise{alpha, slope[0]}, nil
}

// put writes, by metric, the coefficients (class, workload asked about,
// workload beside it, the constant last); zeros where nothing is known.
func (l *linear) put(t *tensors.Writer) {
	n := len(l.workloads)
	for m, name := range metrics {
		var all []float32
		any := false
		for c := range l.classes {
			for w := range l.workloads {
				b := make([]float32, n+1)
				if l.known[c][m][w] {
					b, any = l.coef[c][m][w], true
				}
				all = append(all, b...)
			}
		}
		if any {
			t.Floats("linear."+string(name), all, len(l.classes), n, n+1)
			l.noise[m].put(t, "noise."+string(name))
		}
	}
}

func loadLinear(t *tensors.Reader, s space) (*linear, error) {
	l := &linear{space: s, coef: make([][][][]float32, len(s.classes)), noise: make([]noise, len(metrics))}
	for c := range l.coef {
		l.coef[c] = make([][][]float32, len(metrics))
	}
	n := len(s.workloads)
	for m, name := range metrics {
		if !s.knows(m) {
			continue
		}
		all, err := t.Floats("linear."+string(name), false, len(s.classes), n, n+1)
		if err != nil {
			return nil, err
		}
		if l.noise[m], err = loadNoise(t, "noise."+string(name), len(s.classes)*n); err != nil {
			return nil, err
		}
		for c := range s.classes {
			l.coef[c][m] = make([][]float32, n)
			for w := range n {
				l.coef[c][m][w], all = all[:n+1], all[n+1:]
			}
		}
	}
	return l, nil
}

func (n *neural) metricNames() []string {
	var names []string
	for _, m := range n.metrics {
		names = append(names, string(metrics[m]))
	}
	return names
}

// layers of a member by the names that a file gives them; skip has no bias.
func (n *network) layers() []namedLayer {
	return []namedLayer{{"in", n.in}, {"mid", n.mid}, {"out", n.out}, {"skip", n.skip}}
}

type namedLayer struct {
	name  string
	layer *num.Linear
}

func (n *neural) put(t *tensors.Writer) {
	t.Floats("encoder.mean", n.encoder.mean, len(n.encoder.mean))
	t.Floats("encoder.scale", n.encoder.scale, len(n.encoder.scale))
	t.Floats("output.mean", n.mean, len(n.classes), n.outputs())
	t.Floats("output.scale", n.scale, len(n.classes), n.outputs())
	for k, m := range n.metrics {
		n.noise[k].put(t, "noise."+string(metrics[m]))
	}
	for i, member := range n.members {
		for _, l := range member.layers() {
			name := fmt.Sprintf("member.%d.%s", i, l.name)
			w := l.layer.W.Value
			t.Floats(name+".weight", w.Data, w.Rows, w.Cols)
			if l.name != "skip" {
				t.Floats(name+".bias", l.layer.B.Value.Data, w.Cols)
			}
		}
	}
	if k := n.kin; k != nil {
		c, m := len(n.classes), len(n.metrics)
		t.Floats("kin.weight", k.weight, c, m, k.width, k.width+1)
		t.Floats("kin.std", k.std, c, m, k.width, k.width)
		t.Floats("kin.least", k.least, c, m)
		t.Floats("kin.most", k.most, c, m)
		t.Floats("kin.networks", k.networks, c, m)
	}
}

// loadKin returns nil where the networks answer alone.
func loadKin(t *tensors.Reader, classes, metrics, workloads int) (*kin, error) {
	if !t.Has("kin.networks") {
		return nil, nil
	}
	k := &kin{width: workloads}
	var err error
	if k.weight, err = t.Floats("kin.weight", false, classes, metrics, workloads, workloads+1); err != nil {
		return nil, err
	}
	if k.std, err = t.Floats("kin.std", false, classes, metrics, workloads, workloads); err != nil {
		return nil, err
	}
	if k.least, err = t.Floats("kin.least", false, classes, metrics); err != nil {
		return nil, err
	}
	if k.most, err = t.Floats("kin.most", false, classes, metrics); err != nil {
		return nil, err
	}
	if k.networks, err = t.Floats("kin.networks", false, classes, metrics); err != nil {
		return nil, err
	}
	for _, share := range k.networks {
		if !(share >= 0 && share <= 1) {
			return nil, fmt.Errorf("kin.networks: %g is no share between 0 and 1; fit again", share)
		}
	}
	return k, nil
}

func loadNeural(t *tensors.Reader, s space) (*neural, error) {
	n := &neural{space: s, encoder: encoder{workloads: len(s.workloads), classes: len(s.classes)}}
	var names []string
	if err := json.Unmarshal([]byte(t.Metadata["metrics"]), &names); err != nil {
		return nil, fmt.Errorf("metrics %q: %w", t.Metadata["metrics"], err)
	}
	for _, name := range names {
		m := slices.Index(metrics, history.Metric(name))
		if m < 0 || slices.Contains(n.metrics, m) {
			return nil, fmt.Errorf("metrics: %q is none of %v, or there twice", name, metrics)
		}
		n.metrics = append(n.metrics, m)
	}
	var err error
	if n.encoder.mean, err = t.Floats("encoder.mean", false, n.encoder.width()); err != nil {
		return nil, err
	}
	if n.encoder.scale, err = t.Floats("encoder.scale", false, n.encoder.width()); err != nil {
		return nil, err
	}
	if n.mean, err = t.Floats("output.mean", false, len(s.classes), n.outputs()); err != nil {
		return nil, err
	}
	if n.scale, err = t.Floats("output.scale", false, len(s.classes), n.outputs()); err != nil {
		return nil, err
	}
	for _, m := range n.metrics {
		of, err := loadNoise(t, "noise."+string(metrics[m]), len(s.classes)*len(s.workloads))
		if err != nil {
			return nil, err
		}
		n.noise = append(n.noise, of)
	}
	members, err := strconv.Atoi(t.Metadata["members"])
	if err != nil || members < 1 || members > t.Len() {
		return nil, fmt.Errorf("members %q is no number of networks that the file can hold", t.Metadata["members"])
	}
	for i := range members {
		member, err := loadNetwork(t, fmt.Sprintf("member.%d.", i), n.encoder.width(), n.outputs())
		if err != nil {
			return nil, err
		}
		n.members = append(n.members, member)
	}
	if n.kin, err = loadKin(t, len(s.classes), len(n.metrics), len(s.workloads)); err != nil {
		return nil, err
	}
	return n, nil
}

func loadNetwork(t *tensors.Reader, prefix string, features, outputs int) (*network, error) {
	n := &network{in: &num.Linear{}, mid: &num.Linear{}, out: &num.Linear{}, skip: &num.Linear{}}
	shapes := [][2]int{{features, hidden}, {hidden, hidden}, {hidden, outputs}, {features, outputs}}
	for i, l := range n.layers() {
		in, out := shapes[i][0], shapes[i][1]
		data, err := t.Floats(prefix+l.name+".weight", false, in, out)
		if err != nil {
			return nil, err
		}
		l.layer.W.Value = num.Matrix{Rows: in, Cols: out, Data: data}
		if l.name == "skip" {
			continue
		}
		if data, err = t.Floats(prefix+l.name+".bias", false, out); err != nil {
			return nil, err
		}
		l.layer.B.Value = num.Matrix{Rows: 1, Cols: out, Data: data}
	}
	return n, nil
}
