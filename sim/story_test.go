package sim_test

import (
	"testing"
	"time"

	"github.com/cotenant/cotenant/sim"
)

const s = time.Second

// Two jobs that halve each other share the only device from 10 s on: a has 90
// left and goes at 1/2. b needs 20, ends at 50; a then has 70 left.
func TestTwoJobsShareADevice(t *testing.T) {
	r, err := sim.Run(sim.Config{
		Nodes:  gpus(1, 2),
		Jobs:   []sim.Job{single("a", "w", 0, 100), single("b", "w", 10*s, 20), single("c", "w", 20*s, 5)},
		Truth:  &share{slow: map[string]float64{"w": 1}},
		Policy: &least{},
	})
	if err != nil {
		t.Fatal(err)
	}
	// c waits for b, from 20 to 50, and runs beside a until 60.
	want := []struct{ start, finish time.Duration }{{0, 125 * s}, {10 * s, 50 * s}, {50 * s, 60 * s}}
	for i, w := range want {
		if j := r.Jobs[i]; j.Start != w.start || j.Finish != w.finish || j.State != sim.Finished {
			t.Errorf("job %s: %s to %s, %s; want %s to %s", j.Name, j.Start, j.Finish, j.State, w.start, w.finish)
		}
	}
	if r.MeanJCT != (125+40+40)/3. || r.MedianJCT != 40 || r.P95JCT != 125 || r.MaxWait != 30 || r.Makespan != 125 {
		t.Errorf("%+v", r)
	}
}
