package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/cotenant/cotenant/place"
	"github.com/cotenant/cotenant/sim"
	"github.com/cotenant/cotenant/sim/compare"
)

// watched is what is written down of runs beyond their results.
type watched struct {
	page, decisions bool
	first           uint64 // the seed of which the page shows the run

	mu   sync.Mutex
	runs map[runKey]*watchedRun
}

type runKey struct {
	policy string
	seed   uint64
}

type watchedRun struct {
	queue     sim.QueueRecord
	beside    sim.BesideRecord
	decisions bytes.Buffer // CSV without a header
}

// hook is a compare.Setting's Hook.
func (w *watched) hook(spec compare.Spec, seed uint64, c *sim.Config) {
	r := &watchedRun{}
	w.mu.Lock()
	w.runs[runKey{spec.Text, seed}] = r
	w.mu.Unlock()
	if w.page && seed == w.first {
		c.Watch = sim.Watchers(r.queue.Watch, r.beside.Watch)
	}
	if w.decisions {
		lines := csv.NewWriter(&r.decisions)
		c.Decided = func(req place.Request, d place.Decision) {
			// A buffer fails at nothing.
			_ = lines.Write(decisionCells(spec.Text, seed, req, d))
			lines.Flush()
		}
	}
}

var decisionHeader = []string{"policy", "seed", "time_s", "pending", "running", "bound", "held", "moved", "resized", "bind", "move", "resize"}

func decisionCells(policy string, seed uint64, req place.Request, d place.Decision) []string {
	var bind, move, resize []string
	for _, b := range d.Bind {
		bind = append(bind, fmt.Sprintf("%s@%s%s", b.Task, b.Node, devicesText(b.Devices)))
	}
	for _, m := range d.Move {
		move = append(move, fmt.Sprintf("%s@%s%s", m.Task, m.To, devicesText(m.Devices)))
	}
	for _, r := range d.Resize {
		resize = append(resize, fmt.Sprintf("%s=%d", r.Group, r.Workers))
	}
	return []string{
		policy, strconv.FormatUint(seed, 10), strconv.FormatFloat(req.Now.Seconds(), 'g', -1, 64),
		strconv.Itoa(len(req.Pending)), strconv.Itoa(len(req.View.Running())),
		strconv.Itoa(len(d.Bind)), strconv.Itoa(len(d.Hold)), strconv.Itoa(len(d.Move)), strconv.Itoa(len(d.Resize)),
		strings.Join(bind, ";"), strings.Join(move, ";"), strings.Join(resize, ";"),
	}
}

// devicesText is ":0:3" for devices 0 and 3.
func devicesText(on []int) string {
	var b strings.Builder
	for _, d := range on {
		fmt.Fprintf(&b, ":%d", d)
	}
	return b.String()
}

// files are what --out gets.
func (w *watched) files(outcomes []compare.Outcome) ([]outFile, error) {
	header, cells := jobCells(jobRows(outcomes))
	runs, err := csvFile("runs.csv", header, cells)
	if err != nil {
		return nil, err
	}
	var jobs, decisions bytes.Buffer
	for i, o := range outcomes {
		var one bytes.Buffer
		if err := o.Result.WriteCSV(&one); err != nil {
			return nil, fmt.Errorf("jobs.csv: %w", err)
		}
		first, rest, _ := bytes.Cut(one.Bytes(), []byte("\n"))
		if i == 0 {
			fmt.Fprintf(&jobs, "policy,seed,%s\n", first)
		}
		name := csvCell(o.Spec.Text)
		for line := range bytes.Lines(rest) {
			fmt.Fprintf(&jobs, "%s,%d,%s", name, o.Seed, line)
		}
	}
	decisions.WriteString(strings.Join(decisionHeader, ",") + "\n")
	for _, o := range outcomes {
		if r := w.runs[runKey{o.Spec.Text, o.Seed}]; r != nil {
			decisions.Write(r.decisions.Bytes())
		}
	}
	return []outFile{runs, {"jobs.csv", jobs.Bytes()}, {"decisions.csv", decisions.Bytes()}}, nil
}

// csvCell is a cell as encoding/csv writes it.
func csvCell(text string) string {
	var b bytes.Buffer
	c := csv.NewWriter(&b)
	_ = c.Write([]string{text}) // a buffer fails at nothing
	c.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}
