package generated_test

import (
	"fmt"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/sim/generated"
)

func Example() {
	m := generated.New(30, 1)
	e := m.Predict("", history.Rate, []cluster.Colocation{{"w00": 1}})
	fmt.Println(len(m.Workloads("")), e[0][0].Value)
	// Output: 30 1
}
