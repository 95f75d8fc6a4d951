package jobs

import (
	"fmt"

	"github.com/cotenant/cotenant/place"
)

var spreadEntry = entry{
	name: "spread",
	make: func(numbers, Settings) (placer, error) { return taskwise{Spread{}}, nil },
}

// Spread puts a task on the least loaded site that takes it, like
// kube-scheduler's NodeResourcesFit by LeastAllocated: the device with the
// fewest tasks, then the node with the smallest share of its resources
// requested. It shares when all sites have a task, and looks at interference
// only so far as that tasks must fit together. Ties go to the first site.
type Spread struct{}

// Choose implements Chooser.
func (Spread) Choose(b *Board, t int) (site int, why Refusal) {
	return b.byLoad(int32(t), false)
}

func (Spread) reason(b *Board, t, s int) place.Reason {
	load := b.state[b.sites[s].node].share
	return place.Reason{
		Words:  fmt.Sprintf("%s is the least loaded that takes it: %d tasks, %.0f %% of its node requested", b.siteName(s), len(b.sites[s].tenants), 100*load),
		Scores: map[string]float64{"tasks": -float64(len(b.sites[s].tenants)), "load": -load},
	}
}

// byLoad finds the least or the most loaded of the sites that take a task.
func (b *Board) byLoad(t int32, most bool) (site int, why Refusal) {
	lo, hi := b.Range(int(t))
	if hi == b.host && b.slotsFree == 0 {
		return -1, Full
	}
	var count [refusals]int32
	best, fullness := -1, load{}
	for s := lo; s < hi; s++ {
		l := load{}
		if b.sites[s].device >= 0 {
			l.tasks = int32(len(b.sites[s].tenants))
			if best >= 0 && l.tasks != fullness.tasks && (l.tasks > fullness.tasks) != most {
				continue
			}
		}
		if r := b.fit(t, int32(s)); r != Fits {
			count[r]++
			continue
		}
		l.share = b.state[b.sites[s].node].share
		if best < 0 || most && fullness.less(l) || !most && l.less(fullness) {
			best, fullness = s, l
		}
	}
	if best >= 0 {
		return best, Fits
	}
	return -1, mostCommon(&count)
}

func mostCommon(count *[refusals]int32) Refusal {
	why := Lacking
	for r := range refusals {
		if count[r] > count[why] {
			why = r
		}
	}
	return why
}

// load orders sites: by the tasks on the device, then by the share of the
// node's resources that is requested.
type load struct {
	tasks int32
	share float64
}

func (l load) less(o load) bool {
	if l.tasks != o.tasks {
		return l.tasks < o.tasks
	}
	return l.share < o.share
}

func (b *Board) siteName(s int) string {
	st := &b.sites[s]
	if st.device < 0 {
		return b.nodes[st.node].Name
	}
	return fmt.Sprintf("device %d of %s", st.device, b.nodes[st.node].Name)
}
