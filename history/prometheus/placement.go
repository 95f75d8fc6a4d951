package prometheus

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/cotenant/cotenant/history/formats"
)

// The queries to kube-state-metrics.
const (
	queryPods   = `kube_pod_info{node!=""}`
	queryPhases = `kube_pod_status_phase{phase=~"Running|Pending"} == 1`
	queryLabels = `kube_pod_labels{label_cotenant_dev_workload!=""}`
	queryNotes  = `kube_pod_annotations{annotation_cotenant_dev_workload!=""}`
	queryImages = `max by (namespace, pod, exported_namespace, exported_pod, image) (kube_pod_container_info)`
	queryNodes  = `kube_node_labels`
)

// grid are the times at which things are looked at.
type grid struct {
	from time.Time
	step time.Duration
	n    int
}

func (g grid) at(i int) time.Time { return g.from.Add(time.Duration(i) * g.step) }
func (g grid) last() time.Time    { return g.at(g.n - 1) }
func (g grid) index(t time.Time) int {
	i := int(t.Sub(g.from) / g.step)
	if i < 0 || i >= g.n || !g.at(i).Equal(t) {
		return -1
	}
	return i
}

// What is known of a pod at a step.
const (
	absent = iota
	pending
	running
)

// podLine is a pod over time.
type podLine struct {
	id       string // namespace/name
	node     string
	workload string
	daemon   bool
	state    []uint8 // by step
}

// placement is which pods were where.
type placement struct {
	grid
	known  []bool // by step: somebody looked
	pods   []*podLine
	on     map[string][]*podLine // by node
	places map[string][]*podLine // by pod
	class  map[string]string     // of nodes
}

// asker asks for ranges, and keeps what the server warns of.
type asker struct {
	client *Client
	grid   grid
	warn   func(format string, args ...any)
}

func (a *asker) ask(ctx context.Context, query string) ([]Series, error) {
	series, warnings, err := a.client.Range(ctx, query, a.grid.from, a.grid.last(), a.grid.step)
	for _, w := range warnings {
		a.warn("prometheus warns of %.80q: %s", query, w)
	}
	return series, err
}

// readPlacement asks kube-state-metrics who was where.
func readPlacement(ctx context.Context, a *asker, c *Config) (*placement, error) {
	p := &placement{
		grid: a.grid, known: make([]bool, a.grid.n), on: map[string][]*podLine{}, places: map[string][]*podLine{}, class: map[string]string{},
	}
	pods, err := a.ask(ctx, queryPods)
	if err != nil {
		return nil, err
	}
	p.present(pods)
	phases, err := a.ask(ctx, queryPhases)
	if err != nil {
		return nil, err
	}
	if len(phases) == 0 && len(pods) > 0 {
		a.warn("kube_pod_status_phase is not there: all pods are taken to run from the moment that kube_pod_info tells of them")
	}
	p.phases(phases)
	labels, err := a.ask(ctx, queryLabels)
	if err != nil {
		return nil, err
	}
	notes, err := a.ask(ctx, queryNotes)
	if err != nil {
		return nil, err
	}
	images, err := a.ask(ctx, queryImages)
	if err != nil {
		return nil, err
	}
	p.name(c, labels, notes, images)
	nodes, err := a.ask(ctx, queryNodes)
	if err != nil {
		return nil, err
	}
	p.classes(c, nodes)
	return p, nil
}

// present takes in kube_pod_info: several kube-state-metrics may tell of a pod.
func (p *placement) present(series []Series) {
	byKey := map[string]*podLine{}
	for i := range series {
		s := &series[i]
		id, ok := s.pod()
		node := s.label("node")
		if !ok || node == "" {
			continue
		}
		key := id + " " + s.label("uid") + " " + node
		l := byKey[key]
		if l == nil {
			kind := s.label("created_by_kind")
			l = &podLine{id: id, node: node, daemon: kind == "DaemonSet" || kind == "Node", state: make([]uint8, p.n)}
			byKey[key] = l
		}
		for _, t := range s.Times {
			if k := p.index(t); k >= 0 {
				l.state[k] = running
				p.known[k] = true
			}
		}
	}
	for _, k := range sorted(byKey) {
		l := byKey[k]
		p.pods = append(p.pods, l)
		p.on[l.node] = append(p.on[l.node], l)
		p.places[l.id] = append(p.places[l.id], l)
	}
}

// phases takes out the pods that have ended, and those that are only beginning.
func (p *placement) phases(series []Series) {
	if len(series) == 0 {
		return
	}
	state := map[string][]uint8{}
	for i := range series {
		s := &series[i]
		id, ok := s.pod()
		if !ok {
			continue
		}
		if state[id] == nil {
			state[id] = make([]uint8, p.n)
		}
		is := uint8(pending)
		if s.label("phase") == "Running" {
			is = running
		}
		for _, t := range s.Times {
			if k := p.index(t); k >= 0 {
				state[id][k] = max(state[id][k], is)
			}
		}
	}
	for _, l := range p.pods {
		of := state[l.id]
		for k := range l.state {
			switch {
			case l.state[k] == absent:
			case of == nil:
				l.state[k] = absent
			default:
				l.state[k] = of[k]
			}
		}
	}
}

// name says of which workload each pod is.
func (p *placement) name(c *Config, labels, notes, images []Series) {
	label, image := map[string]string{}, map[string][]string{}
	for i := range notes {
		if id, ok := notes[i].pod(); ok {
			label[id] = notes[i].Labels["annotation_cotenant_dev_workload"]
		}
	}
	for i := range labels {
		if id, ok := labels[i].pod(); ok {
			label[id] = labels[i].Labels["label_cotenant_dev_workload"]
		}
	}
	for i := range images {
		if id, ok := images[i].pod(); ok {
			image[id] = append(image[id], images[i].Labels["image"])
		}
	}
	for _, l := range p.pods {
		l.workload = c.workloadOf(l.id, label[l.id], image[l.id])
	}
}

// workloadOf is the workload of a pod: the one whose pods it is among, else that
// of its label or annotation, else of its image. kube-state-metrics do not say which container
// is the first: an image of the name of a workload that is measured comes before
// others.
func (c *Config) workloadOf(id, label string, images []string) string {
	for i := range c.Workloads {
		if e := c.Workloads[i].pods; e != nil && e.MatchString(id) {
			return c.Workloads[i].Name
		}
	}
	if label != "" {
		return label
	}
	slices.Sort(images)
	first := ""
	for _, text := range images {
		name := formats.PodWorkload(nil, nil, []string{text})
		if slices.ContainsFunc(c.Workloads, func(w Workload) bool { return w.Name == name }) {
			return name
		}
		if first == "" {
			first = name
		}
	}
	return first
}

var notInNames = regexp.MustCompile(`[^a-zA-Z0-9_]`)

// classes takes in the labels of nodes, under the names that kube-state-metrics
// give them.
func (p *placement) classes(c *Config, series []Series) {
	for i := range series {
		s := &series[i]
		for _, name := range c.ClassLabels {
			if class := s.Labels["label_"+notInNames.ReplaceAllString(name, "_")]; class != "" {
				p.class[s.label("node")] = class
				break
			}
		}
	}
}

// isBackground reports whether a pod counts for nothing in co-locations.
func (c *Config) isBackground(l *podLine) bool {
	for i := range c.background {
		if c.background[i].MatchString(l.id) {
			return true
		}
	}
	return l.daemon && !slices.ContainsFunc(c.Workloads, func(w Workload) bool { return w.Name == l.workload })
}

// settled says, for each step, since how many steps before it the pods on a
// node have been the same, all running and of known places and names; -1 where
// they are not.
func (p *placement) settled(c *Config, node string) []int {
	var lines []*podLine
	for _, l := range p.on[node] {
		if !c.isBackground(l) {
			lines = append(lines, l)
		}
	}
	since := make([]int, p.n)
	for k := range since {
		since[k] = -1
		if !p.known[k] {
			continue
		}
		ok, same := true, k > 0 && p.known[k-1]
		for _, l := range lines {
			if l.state[k] == pending || l.state[k] == running && (l.workload == "" || p.twice(l, k)) {
				ok = false
			}
			same = same && l.state[k] == l.state[k-1]
		}
		switch {
		case !ok:
		case same && since[k-1] >= 0:
			since[k] = since[k-1] + 1
		default:
			since[k] = 0
		}
	}
	return since
}

// twice reports whether the pod is told to run on another node, too.
func (p *placement) twice(l *podLine, k int) bool {
	for _, o := range p.places[l.id] {
		if o != l && o.state[k] != absent {
			return true
		}
	}
	return false
}

// nodes are the names of the nodes in order.
func (p *placement) nodes() []string { return slices.Sorted(maps.Keys(p.on)) }
