// Package interference answers one question: on this class of node, with
// these tasks together, how fast is each, and how sure are we?
//
// Fit learns a Model from samples: "table" (what was measured, else silent),
// "linear", "forest" or "neural". What was measured overrides what is
// predicted, unless Options.PredictedOnly.
//
//	m, err := interference.Fit("neural", samples, interference.Options{Seed: 1})
//	if err != nil { ... }
//	c := cluster.Colocation{"redis": 1, "nginx": 2}
//	for i, e := range m.Predict("", history.Rate, []cluster.Colocation{c})[0] {
//		fmt.Println(c.Workloads()[i], e.Value, "+-", e.Std)
//	}
//
// Split and Evaluate hold a part of the samples out and say how far a model
// is from it; Save, Load and ExportONNX move models between programs.
package interference
