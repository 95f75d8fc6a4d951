package contention_test

import (
	"reflect"
	"testing"

	"github.com/cotenant/cotenant/place/jobs"
	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/contention"
)

// The paper's setting in small: six servers, all jobs of a stream finish, none
// before its work is done, and the same seed runs the same.
func TestSimulatedStream(t *testing.T) {
	c := contention.Default()
	run := func() sim.Result {
		stream, err := c.Jobs(contention.JobsConfig{Jobs: 80, Seed: 1, Load: 0.9, Devices: 6 * c.Server.Devices})
		if err != nil {
			t.Fatal(err)
		}
		policy, err := jobs.New("spread", jobs.Settings{Speeds: jobs.NewSpeeds(nil, jobs.Options{})})
		if err != nil {
			t.Fatal(err)
		}
		result, err := sim.Run(sim.Config{
			Nodes: c.Nodes(6, 0), Workloads: c.Requests(), Jobs: stream, Truth: world(t, contention.Config{}), Policy: policy, Backfill: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	first := run()
	slower := 0
	for _, j := range first.Jobs {
		ran := (j.Finish - j.Start).Seconds()
		if j.State != sim.Finished || ran < j.Work-1e-6 {
			t.Errorf("%s: %s, ran %g s of %g s of work", j.Name, j.State, ran, j.Work)
		}
		if ran > j.Work*1.05 {
			slower++
		}
	}
	if slower < 20 {
		t.Errorf("only %d of 80 jobs were slowed by 5 %%: nothing to schedule for", slower)
	}
	if again := run(); !reflect.DeepEqual(again, first) {
		t.Error("the same seed ran otherwise")
	}
}
