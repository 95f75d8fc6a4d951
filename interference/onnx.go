package interference

import (
	"encoding/json"
	"fmt"
)

// onnxNotes stands beside an ONNX file and says what goes in and comes out.
type onnxNotes struct {
	Kind      string   `json:"kind"`
	Workloads []string `json:"workloads"` // columns of counts
	Classes   []string `json:"classes"`   // what the numbers of class mean
	// Outputs are the columns of ratio and std.
	Outputs []onnxOutput `json:"outputs"`
	Inputs  any          `json:"inputs"`
	// Normalisation holds the constants that are inside the graph already.
	Normalisation map[string][]float32 `json:"normalisation,omitempty"`
	Fingerprint   string               `json:"samples_sha256"`
	Seed          uint64               `json:"seed"`
	Note          string               `json:"note"`
}

type onnxOutput struct {
	Metric   string `json:"metric"`
	Workload string `json:"workload"`
	// Known by class: false where nothing was measured and the output means
	// nothing.
	Known []bool `json:"known"`
}

var onnxInputs = []map[string]string{
	{"name": "counts", "type": "float32", "shape": "batch x workloads", "is": "tasks of each workload in the co-location"},
	{"name": "class", "type": "int64", "shape": "batch", "is": "index into classes"},
}

// ExportONNX returns a linear or neural model as an ONNX file, with notes in
// JSON on its inputs (counts, class), its outputs (ratio to alone, and the
// standard deviation of its error, a column per metric and workload) and its
// constants. An output is meant only for workloads whose count is at least 1.
// What was measured does not override it.
func ExportONNX(m Model) (model, notes []byte, err error) {
	f, ok := m.(*fitted)
	if !ok {
		return nil, nil, fmt.Errorf("a %s model made by Override has no ONNX form: fit again on all samples", m.Kind())
	}
	n := onnxNotes{
		Kind: f.Kind(), Workloads: f.workloads, Classes: f.classes, Inputs: onnxInputs, Fingerprint: f.fingerprint, Seed: f.seed,
		Note: "predictions only: measured values do not override them; outputs are for workloads whose count is at least 1",
	}
	var g onnxGraph
	g.input("counts", onnxFloat, len(f.workloads))
	g.input("class", onnxInt64, 0)
	var of []int
	switch c := f.core.(type) {
	case *neural:
		of = c.metrics
		n.Normalisation = map[string][]float32{
			"feature_mean": c.encoder.mean, "feature_scale": c.encoder.scale, "output_mean": c.mean, "output_scale": c.scale,
		}
		c.onnx(&g)
	case *linear:
		of = c.measured()
		c.onnx(&g, of)
	default:
		return nil, nil, fmt.Errorf("a %s model has no ONNX form: export neural or linear", f.Kind())
	}
	for _, k := range of {
		for w, name := range f.workloads {
			out := onnxOutput{Metric: string(metrics[k]), Workload: name}
			for c := range f.classes {
				out.Known = append(out.Known, f.known[c][k][w])
			}
			n.Outputs = append(n.Outputs, out)
		}
	}
	g.output("ratio", len(n.Outputs))
	g.output("std", len(n.Outputs))
	notes, err = json.MarshalIndent(n, "", "  ")
	return g.model("cotenant " + f.Kind()), append(notes, '\n'), err
}

// byClass is the row of a table (class, width) that belongs to each input.
func (g *onnxGraph) byClass(name string, values []float32, classes int) string {
	return g.node("Gather", []string{g.floats(name, values, classes, len(values)/classes), "class"})
}

func (n *neural) onnx(g *onnxGraph) {
	classes := len(n.classes)
	axis := g.ints("axis", []int64{1}, 1)
	tasks := g.node("ReduceSum", []string{"counts", axis}, attribute{name: "keepdims", value: 1})
	one := g.floats("one", []float32{1}, 1)
	log := g.node("Log", []string{g.node("Add", []string{tasks, one})})
	parts := []string{g.node("Sqrt", []string{"counts"}), g.node("Min", []string{"counts", one}), log}
	if classes > 1 {
		identity := make([]float32, classes*classes)
		for c := range classes {
			identity[c*classes+c] = 1
		}
		parts = append(parts, g.byClass("classes", identity, classes))
	}
	x := g.node("Concat", parts, attribute{name: "axis", value: 1})
	x = g.node("Sub", []string{x, g.floats("feature_mean", n.encoder.mean, len(n.encoder.mean))})
	x = g.node("Div", []string{x, g.floats("feature_scale", n.encoder.scale, len(n.encoder.scale))})
	var ys []string
	for i, member := range n.members {
		ys = append(ys, member.onnx(g, x, fmt.Sprintf("member_%d_", i)))
	}
	mean := g.node("Mean", ys)
	var squares []string
	for _, y := range ys {
		d := g.node("Sub", []string{y, mean})
		squares = append(squares, g.node("Mul", []string{d, d}))
	}
	freedom := g.floats("freedom", []float32{float32(max(len(ys)-1, 1))}, 1)
	spread := g.node("Sqrt", []string{g.node("Div", []string{g.node("Sum", squares), freedom})})
	scale := g.byClass("output_scale", n.scale, classes)
	p := g.node("Add", []string{g.node("Mul", []string{mean, scale}), g.byClass("output_mean", n.mean, classes)})
	spread = g.node("Mul", []string{spread, scale})
	if n.kin != nil {
		p, spread = n.kin.onnx(g, p, spread, classes)
	}
	g.estimate(p, spread, n.noise, classes, len(n.workloads))
}

// onnx blends kin into the prediction p of the networks and its spread: for
// every workload asked about, a table of neighbours (batch, asked, beside).
func (k *kin) onnx(g *onnxGraph, p, spread string, classes int) (blended, both string) {
	w, ms := k.width, len(k.networks)/classes
	identity := make([]float32, w*w)
	for i := range w {
		identity[i*w+i] = 1
	}
	zero := g.floats("kin_zero", []float32{0}, 1)
	first, last := g.ints("kin_first", []int64{1}, 1), g.ints("kin_last", []int64{2}, 1)
	rows := g.node("Unsqueeze", []string{"counts", first})
	beside := g.node("Max", []string{g.node("Sub", []string{rows, g.floats("kin_itself", identity, 1, w, w)}), zero})
	roots, there := g.node("Sqrt", []string{beside}), g.node("Min", []string{beside, g.floats("kin_one", []float32{1}, 1)})
	across, flat := attribute{name: "axes", value: 2, list: true}, attribute{name: "keepdims"}
	met := g.node("ReduceMax", []string{there}, across, flat)
	var means, stds []string
	for m := range ms {
		effect, always, std := make([]float32, 0, classes*w*w), make([]float32, 0, classes*w), make([]float32, 0, classes*w*w)
		for c := range classes {
			table := k.table(c*ms + m)
			for a := range w {
				effect = append(effect, table[a*(w+1):][:w]...)
				always = append(always, table[a*(w+1)+w])
			}
			std = append(std, k.stds(c*ms+m)...)
		}
		name := func(of string) string { return fmt.Sprintf("kin_%s_%d", of, m) }
		gather := func(of string, values []float32, shape ...int) string {
			return g.node("Gather", []string{g.floats(name(of), values, shape...), "class"})
		}
		sum := g.node("ReduceSum", []string{g.node("Mul", []string{roots, gather("effect", effect, classes, w, w)}), last}, flat)
		means = append(means, g.node("Add", []string{sum, g.node("Mul", []string{met, gather("always", always, classes, w)})}))
		stds = append(stds, g.node("ReduceMax", []string{g.node("Mul", []string{there, gather("std", std, classes, w, w)})}, across, flat))
	}
	var share, rest, least, most []float32 // by class, metric and workload
	for i, s := range k.networks {
		for range w {
			share, rest = append(share, s), append(rest, 1-s)
			least, most = append(least, k.least[i]), append(most, k.most[i])
		}
	}
	of, others := g.byClass("kin_networks", share, classes), g.byClass("kin_rest", rest, classes)
	all := func(of []string) string { return g.node("Concat", of, attribute{name: "axis", value: 1}) }
	mean := g.node("Max", []string{all(means), g.byClass("kin_least", least, classes)})
	mean = g.node("Min", []string{mean, g.byClass("kin_most", most, classes)})
	a, b := g.node("Mul", []string{p, of}), g.node("Mul", []string{mean, others})
	c, d := g.node("Mul", []string{spread, of}), g.node("Mul", []string{all(stds), others})
	squares := g.node("Add", []string{g.node("Mul", []string{c, c}), g.node("Mul", []string{d, d})})
	return g.node("Add", []string{a, b}), g.node("Sqrt", []string{squares})
}

func (n *network) onnx(g *onnxGraph, x, prefix string) string {
	weight := func(l namedLayer) string {
		w := l.layer.W.Value
		return g.floats(prefix+l.name+"_weight", w.Data, w.Rows, w.Cols)
	}
	layers := n.layers()
	y := x
	for i, l := range layers[:3] {
		b := g.floats(prefix+l.name+"_bias", l.layer.B.Value.Data, l.layer.W.Value.Cols)
		y = g.node("Gemm", []string{y, weight(l), b})
		if i < 2 {
			y = g.node("Mul", []string{y, g.node("Sigmoid", []string{y})})
		}
	}
	return g.node("Add", []string{y, g.node("MatMul", []string{x, weight(layers[3])})})
}

// estimate turns predicted logarithms and their spread into the outputs, as
// noise.estimate does.
func (g *onnxGraph) estimate(p, spread string, ns []noise, classes, workloads int) {
	outputs := len(ns) * workloads
	alpha, slope := make([]float32, classes*outputs), make([]float32, outputs)
	for k, n := range ns {
		for w := range workloads {
			slope[k*workloads+w] = n.slope
			for c := range classes {
				alpha[c*outputs+k*workloads+w] = n.alpha[c*workloads+w]
			}
		}
	}
	g.named("Exp", "ratio", []string{p})
	grown := g.node("Exp", []string{g.node("Mul", []string{p, g.floats("noise_slope", slope, outputs)})})
	a := g.node("Mul", []string{g.byClass("noise_alpha", alpha, classes), grown})
	sum := g.node("Add", []string{g.node("Mul", []string{a, a}), g.node("Mul", []string{spread, spread})})
	g.named("Mul", "std", []string{"ratio", g.node("Sqrt", []string{sum})})
}

func (l *linear) onnx(g *onnxGraph, of []int) {
	classes, n := len(l.classes), len(l.workloads)
	outputs := len(of) * n
	weights, constants := make([]float32, classes*n*outputs), make([]float32, classes*outputs)
	var ns []noise
	for k, m := range of {
		ns = append(ns, l.noise[m])
		for c := range classes {
			for w := range n {
				if !l.known[c][m][w] {
					continue
				}
				b := l.coef[c][m][w]
				constants[c*outputs+k*n+w] = b[n] - b[w]
				for other := range n {
					weights[(c*n+other)*outputs+k*n+w] = b[other]
				}
			}
		}
	}
	table := g.node("Gather", []string{g.floats("weights", weights, classes, n, outputs), "class"})
	axis := g.ints("axis", []int64{1}, 1)
	v := g.node("MatMul", []string{g.node("Unsqueeze", []string{"counts", axis}), table})
	v = g.node("Add", []string{g.node("Squeeze", []string{v, axis}), g.byClass("constants", constants, classes)})
	p := g.node("Log", []string{g.node("Max", []string{v, g.floats("floor", []float32{logFloor}, 1)})})
	zero := g.node("Mul", []string{p, g.floats("zero", []float32{0}, 1)})
	g.estimate(p, zero, ns, classes, n)
}
