package balance_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/cotenant/cotenant/sim/balance"
)

func ExampleOptimal() {
	// The second worker has a dip at 4: larger, and faster than 3.
	file := "worker,batch,ms\na,1,10\na,2,20\na,3,30\na,4,40\nb,1,12\nb,2,22\nb,3,34\nb,4,26\n"
	curves, err := balance.ReadCurves(strings.NewReader(file), "example")
	if err != nil {
		log.Fatal(err)
	}
	sizes, ms, err := balance.Optimal(curves, 6)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(sizes, ms, "ms")
	// Output: [2 4] 26 ms
}
