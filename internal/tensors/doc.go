// Package tensors reads and writes the files of models and policies: the
// layout of safetensors (https://github.com/huggingface/safetensors), with a
// checksum and version numbers among its metadata, so that a file that is
// damaged, foreign or newer than the program is an error that says so.
//
//	format := tensors.Format{Name: "my-policy", Versions: map[string]int{"format_version": 1}, ...}
//	var w tensors.Writer
//	w.Floats("layer.w", weights, rows, cols)
//	err := w.Save(file, format, map[string]string{"seed": "1"})
//	...
//	r, err := tensors.Read(file, format)
//	weights, err := r.Floats("layer.w", false, rows, cols)
//	err = r.Finish() // nothing may be left over
//
// The same tensors and metadata give the same bytes.
package tensors
