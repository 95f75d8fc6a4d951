package data_test

import (
	"fmt"

	"github.com/cotenant/cotenant/data"
)

func Example() {
	samples, err := data.Samples()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range samples[:1] {
		fmt.Println(s.Colocation.Key(), s.Metric, s.Value == s.Alone)
	}
	// Output: allreduce rate true
}
