package tensors_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/cotenant/cotenant/internal/tensors"
)

func Example() {
	format := tensors.Format{
		Name: "cotenant-example", Versions: map[string]int{"format_version": 1},
		What: "an example file", Make: "write one with Save", Again: "write it again",
	}
	var w tensors.Writer
	w.Floats("weights", []float32{1, 2, 3, 4, 5, 6}, 2, 3)
	var file bytes.Buffer
	if err := w.Save(&file, format, map[string]string{"seed": "7"}); err != nil {
		fmt.Println(err)
		return
	}

	r, err := tensors.Read(&file, format)
	if err != nil {
		fmt.Println(err)
		return
	}
	weights, err := r.Floats("weights", false, 2, 3)
	fmt.Println(r.Metadata["seed"], weights, err, r.Finish())

	_, err = tensors.Read(strings.NewReader("workload,value\n"), format)
	fmt.Println(err, errors.Is(err, tensors.ErrForeign))
	// Output:
	// 7 [1 2 3 4 5 6] <nil> <nil>
	// not an example file; write one with Save true
}
