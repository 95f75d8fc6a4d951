package harmony

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/internal/num"
	"github.com/cotenant/cotenant/place/jobs"
	"github.com/cotenant/cotenant/sim"
)

// Episode is a situation to learn from.
type Episode struct {
	Nodes     []cluster.Node
	Workloads []cluster.Workload
	Jobs      []sim.Job
}

// World draws situations. Draw must depend on the seed alone.
type World struct {
	Name string
	// Speeds are what a model believes: each worker forks its own.
	Speeds *jobs.Speeds
	Draw   func(seed uint64) (Episode, error)
}

// Streams draws clusters of single devices and streams of jobs for them: sizes
// of clusters, mixes of classes, loads, mixes of workloads, spans of durations
// and bursts all differ from seed to seed, so that what is learned holds for
// more than one of them.
type Streams struct {
	Classes   []string // of devices
	Workloads []string
	Jobs      int // in an episode
	// Load bounds the load, Devices the number of devices.
	Load    [2]float64
	Devices [2]int
	// Share is how many jobs may share a device.
	Share int
	// Alone is the progress of a single worker alone on a class, where 1 is the
	// fastest of the classes given.
	Alone func(class, workload string, classes []string) (float64, bool)
}

// Draw implements World.Draw.
func (s Streams) Draw(seed uint64) (Episode, error) {
	rng := num.Rand(seed, 17)
	classes := s.Classes
	if len(classes) > 1 {
		switch rng.IntN(3) {
		case 0:
			classes = classes[:1+rng.IntN(len(classes))]
		case 1:
			k := rng.IntN(len(classes))
			classes = classes[k : k+1]
		}
	}
	var e Episode
	devices := s.Devices[0] + rng.IntN(s.Devices[1]-s.Devices[0]+1)
	for i, c := range classes {
		n := (devices*(i+1))/len(classes) - devices*i/len(classes)
		e.Nodes = append(e.Nodes, cluster.Nodes(c, n, 1, 0)...)
	}
	for i := range e.Nodes {
		e.Nodes[i].Devices[0].Slots = s.Share
	}
	capacity := 0.0
	mean := map[string]float64{}
	for _, c := range classes {
		for _, w := range s.Workloads {
			p, _ := s.Alone(c, w, classes)
			mean[c] += p / float64(len(s.Workloads))
		}
	}
	for i := range e.Nodes {
		capacity += mean[e.Nodes[i].Class]
	}
	load := s.Load[0] + (s.Load[1]-s.Load[0])*rng.Float64()
	var err error
	e.Jobs, err = s.stream(rng, load*capacity)
	return e, err
}

// stream draws jobs with an arrival of so many seconds of work a second.
func (s Streams) stream(rng *rand.Rand, offered float64) ([]sim.Job, error) {
	if len(s.Workloads) == 0 || !(offered > 0) {
		return nil, fmt.Errorf("a stream of %d workloads at %g seconds of work a second: both must be more than 0", len(s.Workloads), offered)
	}
	lo := (0.2 + 0.8*rng.Float64()) * 3600
	hi := lo * math.Exp(2+3.5*rng.Float64())
	mean := (hi - lo) / math.Log(hi/lo)
	shares := make([]float64, len(s.Workloads))
	total, skew := 0.0, rng.Float64()
	for i := range shares {
		shares[i] = math.Pow(rng.ExpFloat64(), skew)
		total += shares[i]
	}
	burst, period := 0.6*rng.Float64(), mean*(5+20*rng.Float64())
	out := make([]sim.Job, s.Jobs)
	now := 0.0
	for i := range out {
		now += rng.ExpFloat64() * mean / (offered * (1 + burst*math.Sin(2*math.Pi*now/period)))
		u, w := rng.Float64()*total, 0
		for u > shares[w] && w < len(shares)-1 {
			u -= shares[w]
			w++
		}
		work := lo * math.Exp(rng.Float64()*math.Log(hi/lo))
		if rng.Float64() < 0.005 {
			work *= 1 + 9*rng.Float64() // now and then one that never seems to end
		}
		name := fmt.Sprintf("job-%d", i)
		out[i] = sim.Job{
			Job: cluster.Job{
				Name: name, Tasks: sim.Workers(name, s.Workloads[w], 1),
				Arrival: time.Duration(now * float64(time.Second)),
			},
			Work: work,
		}
	}
	return out, nil
}
