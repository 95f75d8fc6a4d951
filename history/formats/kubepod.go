package formats

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/internal/misfit"
)

// WorkloadLabel names the workload that a pod belongs to; it may be an annotation,
// for names that no label can hold.
const WorkloadLabel = "cotenant.dev/workload"

type podObject struct {
	Spec struct {
		NodeName        string                 `json:"nodeName"`
		Priority        int                    `json:"priority"`
		Containers      []container            `json:"containers"`
		InitContainers  []container            `json:"initContainers"`
		Overhead        map[string]rawQuantity `json:"overhead"`
		Resources       demands                `json:"resources"`
		NodeSelector    map[string]string      `json:"nodeSelector"`
		Tolerations     []toleration           `json:"tolerations"`
		SchedulingGroup struct {
			PodGroupName string `json:"podGroupName"`
		} `json:"schedulingGroup"`
		Affinity json.RawMessage `json:"affinity"`
		Spread   []struct {
			When string `json:"whenUnsatisfiable"`
		} `json:"topologySpreadConstraints"`
	} `json:"spec"`
	Status struct {
		Phase string `json:"phase"`
	} `json:"status"`
}

type container struct {
	Name          string  `json:"name"`
	Image         string  `json:"image"`
	RestartPolicy string  `json:"restartPolicy"`
	Resources     demands `json:"resources"`
}

type demands struct {
	Requests map[string]rawQuantity `json:"requests"`
	Limits   map[string]rawQuantity `json:"limits"`
}

type toleration struct {
	Key      string `json:"key"`
	Operator string `json:"operator"`
	Value    string `json:"value"`
	Effect   string `json:"effect"`
}

// pod is a pod that takes or wants resources.
type pod struct {
	item     int // its number in the file
	task     cluster.Task
	node     string // "" while it waits
	group    string
	gang     bool
	priority int
	created  time.Time
	selector map[string]string
	admitted []cluster.Toleration
	// rules says that it has affinity or spread rules, which are not read.
	rules bool
}

func (k *kubernetes) pod(m meta, object []byte) error {
	var o podObject
	if err := json.Unmarshal(object, &o); err != nil {
		return misfit.JSON(err)
	}
	switch o.Status.Phase {
	case "Succeeded", "Failed":
		k.ended++
		return nil
	case "Running", "Pending", "Unknown", "":
	default:
		return badField("status.phase", o.Status.Phase, "is no phase of a pod")
	}
	if o.Status.Phase == "Running" && o.Spec.NodeName == "" {
		return errors.New("spec.nodeName: missing, where status.phase is Running")
	}
	requests, err := podRequests(o)
	if err != nil {
		return err
	}
	p := pod{
		item: k.items - 1, node: o.Spec.NodeName, priority: o.Spec.Priority,
		task: cluster.Task{
			ID: cluster.TaskID(m.Metadata.Namespace + "/" + m.Metadata.Name), Role: podRole(m), Requests: requests,
		},
		selector: o.Spec.NodeSelector,
		rules:    len(o.Spec.Affinity) > 0 && string(o.Spec.Affinity) != "null" && string(o.Spec.Affinity) != "{}",
	}
	for _, s := range o.Spec.Spread {
		p.rules = p.rules || s.When != "ScheduleAnyway"
	}
	if p.task.Workload = podWorkload(m, o); p.task.Workload == "" {
		return errors.New("spec.containers: no image; the workload is not known (label it " + WorkloadLabel + ")")
	}
	if err := checkColumns([]string{p.task.Workload}); err != nil {
		return fmt.Errorf("workload: %w", err)
	}
	for name, n := range requests {
		if isDevice(name) {
			if n > maxDevices {
				return badField("requests["+name+"]", fmt.Sprint(n), "is more than %d devices", maxDevices)
			}
			p.task.Devices += int(n)
		}
	}
	for i, t := range o.Spec.Tolerations {
		if t.Operator != "" && t.Operator != "Equal" && t.Operator != "Exists" {
			return badField(fmt.Sprintf("spec.tolerations[%d].operator", i), t.Operator, "is neither Equal nor Exists")
		}
		if t.Key == "" && t.Operator != "Exists" {
			return badField(fmt.Sprintf("spec.tolerations[%d].operator", i), t.Operator, "must be Exists where there is no key")
		}
		if t.Operator == "Exists" && t.Value != "" {
			return badField(fmt.Sprintf("spec.tolerations[%d].value", i), t.Value, "must be empty where the operator is Exists")
		}
		if t.Effect != "" {
			if err := checkEffect(fmt.Sprintf("spec.tolerations[%d].effect", i), t.Effect); err != nil {
				return err
			}
		}
		p.admitted = append(p.admitted, cluster.Toleration{
			Key: t.Key, Exists: t.Operator == "Exists", Value: t.Value, Effect: t.Effect,
		})
	}
	if text := m.Metadata.CreationTimestamp; text != "" {
		if p.created, err = time.Parse(time.RFC3339, text); err != nil {
			return badField("metadata.creationTimestamp", text, "is not a time like 2026-01-02T15:04:05Z")
		}
	}
	p.group, p.gang = podGroup(m, o)
	k.pods = append(k.pods, p)
	return nil
}

// podRequests is what the scheduler counts for a pod: the larger of what its
// containers ask for together and what any moment of its start asks for,
// plus the overhead of its runtime. Init containers run one after the other;
// those that restart always (sidecars) stay and add up. Requests of the pod
// as a whole take the place of its containers' (Kubernetes' documentation,
// "Sidecar Containers" and "Pod-level resources").
func podRequests(o podObject) (cluster.Resources, error) {
	if len(o.Spec.Containers) == 0 {
		return nil, errors.New("spec.containers: missing")
	}
	var running, sidecars, starting cluster.Resources
	for i, c := range o.Spec.InitContainers {
		r, err := c.Resources.requests(fmt.Sprintf("spec.initContainers[%d].resources", i))
		if err != nil {
			return nil, err
		}
		moment, err := sum(sidecars, r)
		if err != nil {
			return nil, err
		}
		if c.RestartPolicy == "Always" {
			sidecars = moment
		}
		starting = larger(starting, moment)
	}
	running = sidecars
	for i, c := range o.Spec.Containers {
		r, err := c.Resources.requests(fmt.Sprintf("spec.containers[%d].resources", i))
		if err != nil {
			return nil, err
		}
		if running, err = sum(running, r); err != nil {
			return nil, err
		}
	}
	total := larger(running, starting)
	whole, err := o.Spec.Resources.requests("spec.resources")
	if err != nil {
		return nil, err
	}
	maps.Copy(total, whole)
	overhead, err := resources("spec.overhead", o.Spec.Overhead)
	if err != nil {
		return nil, err
	}
	return sum(total, overhead)
}

// requests are what is requested, and the limit where nothing is.
func (d demands) requests(field string) (cluster.Resources, error) {
	requests, err := resources(field+".requests", d.Requests)
	if err != nil {
		return nil, err
	}
	limits, err := resources(field+".limits", d.Limits)
	if err != nil {
		return nil, err
	}
	for name, n := range limits {
		if _, given := d.Requests[name]; !given {
			requests[name] = n
		}
	}
	return requests, nil
}

func podWorkload(m meta, o podObject) string {
	images := make([]string, len(o.Spec.Containers))
	for i, c := range o.Spec.Containers {
		images[i] = c.Image
	}
	return PodWorkload(m.Metadata.Labels, m.Metadata.Annotations, images)
}

// podRole is the role that Kubeflow's operators label, else a replica.
func podRole(m meta) cluster.Role {
	for _, key := range []string{"training.kubeflow.org/replica-type", "replica-type"} {
		switch strings.ToLower(m.Metadata.Labels[key]) {
		case "worker", "master", "chief":
			return cluster.Worker
		case "ps":
			return cluster.ParameterServer
		}
	}
	return cluster.Replica
}

// podGroup is the group that a pod is placed in, by the conventions that name
// gangs, else by its owner, else itself.
func podGroup(m meta, o podObject) (name string, gang bool) {
	in := m.Metadata.Namespace + "/"
	if g, ok := PodGang(m.Metadata.Labels, m.Metadata.Annotations, o.Spec.SchedulingGroup.PodGroupName); ok {
		return in + g.Name, true
	}
	for _, o := range m.Metadata.OwnerReferences {
		if o.Controller {
			return in + o.Kind + "/" + o.Name, false
		}
	}
	return in + m.Metadata.Name, false
}

// pendingGroups are the groups of the pods that wait, by the creation of
// their first pod; Arrival counts from the earliest of them.
func pendingGroups(pods []pod) []cluster.Group {
	waiting := slices.DeleteFunc(slices.Clone(pods), func(p pod) bool { return p.node != "" })
	slices.SortStableFunc(waiting, func(a, b pod) int { return a.created.Compare(b.created) })
	var groups []cluster.Group
	at := map[string]int{}
	var first time.Time
	for _, p := range waiting {
		if first.IsZero() {
			first = p.created
		}
		i, ok := at[p.group]
		if !ok {
			i = len(groups)
			at[p.group] = i
			groups = append(groups, cluster.Group{Name: p.group, Gang: p.gang, Priority: p.priority})
			if !p.created.IsZero() {
				groups[i].Arrival = p.created.Sub(first)
			}
		}
		groups[i].Tasks = append(groups[i].Tasks, p.task)
	}
	return groups
}

// constraints are the node selectors and tolerations by workload. Pods of a
// workload that disagree keep those of the first, with a warning.
func (k *kubernetes) constraints() cluster.Constraints {
	c := cluster.Constraints{NodeSelector: map[string]map[string]string{}, Tolerations: map[string][]cluster.Toleration{}}
	first := map[string]pod{}
	mixed := map[string]bool{}
	rules := 0
	for _, p := range k.pods {
		w := p.task.Workload
		if p.rules {
			rules++
		}
		if f, ok := first[w]; ok {
			if !maps.Equal(f.selector, p.selector) || !reflect.DeepEqual(f.admitted, p.admitted) {
				mixed[w] = true
			}
			continue
		}
		first[w] = p
		if len(p.selector) > 0 {
			c.NodeSelector[w] = p.selector
		}
		if len(p.admitted) > 0 {
			c.Tolerations[w] = p.admitted
		}
	}
	if len(mixed) > 0 {
		k.warn("pods of one workload with different node selectors or tolerations: %s; the first pod's hold for all (tell them apart by the label %s)",
			strings.Join(sortedKeys(mixed), ", "), WorkloadLabel)
	}
	if rules > 0 {
		k.warn("pods with affinity or topology spread rules: %d; these rules are not read, give them with --constraints", rules)
	}
	if len(c.NodeSelector) == 0 {
		c.NodeSelector = nil
	}
	if len(c.Tolerations) == 0 {
		c.Tolerations = nil
	}
	return c
}
