package explain

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/internal/misfit"
)

// Objects are what accounts are made of.
type Objects struct {
	Pods   []*Pod
	groups map[string]int // "namespace/name" of a PodGroup, JobSet, ...: its minimum
	nodes  int
	// events of a pod, the oldest first, by "namespace/name".
	events map[string][]Event
	// Report says what was left out.
	Report formats.Report
}

// Pod is what is read of a pod.
type Pod struct {
	Namespace, Name, UID string
	// Node is where it is bound; "" while it waits. Nominated is where preemption
	// makes room for it.
	Node, Nominated string
	Scheduler       string
	Workload        string
	Phase           string
	Gates           []string
	Deleting        bool
	Created         time.Time
	// Owner is its controller, "Kind/name"; Gang its gang, where it has one.
	Owner string
	Gang  *formats.Gang
	// Decision is what the annotation holds; nil where there is none.
	Decision *Decision
	// Scheduled is the condition PodScheduled.
	Scheduled Condition
}

// Condition is a condition of a pod.
type Condition struct {
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Event is what somebody told of a pod.
type Event struct {
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Time    time.Time `json:"time,omitzero"`
	Count   int       `json:"count,omitempty"`
	uid     string
}

// Ended reports whether the pod has run to its end.
func (p *Pod) Ended() bool { return p.Phase == "Succeeded" || p.Phase == "Failed" }

// ID is namespace/name.
func (p *Pod) ID() string { return p.Namespace + "/" + p.Name }

// Read reads pods, events, nodes and what says how many pods of a gang go
// together, as kubectl get -o json or yaml prints them. Other kinds are left out.
func Read(r io.Reader, o formats.Options) (*Objects, error) {
	out := &Objects{groups: map[string]int{}, events: map[string][]Event{}}
	var err error
	out.Report, err = formats.ReadObjects(r, o, func(kind string, object []byte) error {
		switch kind {
		case "Pod":
			return out.pod(object)
		case "Event":
			return out.event(object)
		case "Node":
			out.nodes++
		}
		if slices.ContainsFunc(formats.GangResources, func(r formats.GangResource) bool { return r.Kind == kind }) {
			return out.gangObject(object)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, events := range out.events {
		slices.SortStableFunc(events, func(a, b Event) int { return a.Time.Compare(b.Time) })
	}
	slices.SortStableFunc(out.Pods, func(a, b *Pod) int { return cmp.Compare(a.ID(), b.ID()) })
	return out, nil
}

type metadata struct {
	Name            string            `json:"name"`
	Namespace       string            `json:"namespace"`
	UID             string            `json:"uid"`
	Labels          map[string]string `json:"labels"`
	Annotations     map[string]string `json:"annotations"`
	Created         time.Time         `json:"creationTimestamp"`
	Deleted         *time.Time        `json:"deletionTimestamp"`
	OwnerReferences []struct {
		Kind       string `json:"kind"`
		Name       string `json:"name"`
		Controller bool   `json:"controller"`
	} `json:"ownerReferences"`
}

func (out *Objects) pod(object []byte) error {
	var o struct {
		Metadata metadata `json:"metadata"`
		Spec     struct {
			NodeName        string `json:"nodeName"`
			SchedulerName   string `json:"schedulerName"`
			SchedulingGates []struct {
				Name string `json:"name"`
			} `json:"schedulingGates"`
			SchedulingGroup struct {
				PodGroupName string `json:"podGroupName"`
			} `json:"schedulingGroup"`
			Containers []struct {
				Image string `json:"image"`
			} `json:"containers"`
		} `json:"spec"`
		Status struct {
			Phase         string `json:"phase"`
			NominatedNode string `json:"nominatedNodeName"`
			Conditions    []struct {
				Type string `json:"type"`
				Condition
			} `json:"conditions"`
		} `json:"status"`
	}
	if err := unmarshal(object, &o); err != nil {
		return err
	}
	m := o.Metadata
	p := &Pod{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, Node: o.Spec.NodeName, Nominated: o.Status.NominatedNode,
		Scheduler: o.Spec.SchedulerName, Phase: o.Status.Phase, Deleting: m.Deleted != nil, Created: m.Created,
	}
	images := make([]string, len(o.Spec.Containers))
	for i, c := range o.Spec.Containers {
		images[i] = c.Image
	}
	p.Workload = formats.PodWorkload(m.Labels, m.Annotations, images)
	for _, g := range o.Spec.SchedulingGates {
		p.Gates = append(p.Gates, g.Name)
	}
	if g, ok := formats.PodGang(m.Labels, m.Annotations, o.Spec.SchedulingGroup.PodGroupName); ok {
		p.Gang = &g
	}
	for _, owner := range m.OwnerReferences {
		if owner.Controller {
			p.Owner = owner.Kind + "/" + owner.Name
		}
	}
	for _, c := range o.Status.Conditions {
		if c.Type == "PodScheduled" {
			p.Scheduled = c.Condition
		}
	}
	if text := m.Annotations[DecisionAnnotation]; text != "" {
		d, err := ParseDecision(text)
		if err != nil {
			return fmt.Errorf("metadata.annotations[%s]: %w", DecisionAnnotation, err)
		}
		p.Decision = &d
	}
	out.Pods = append(out.Pods, p)
	return nil
}

func (out *Objects) event(object []byte) error {
	var o struct {
		About struct {
			Kind      string `json:"kind"`
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
			UID       string `json:"uid"`
		} `json:"involvedObject"`
		Reason  string    `json:"reason"`
		Message string    `json:"message"`
		Count   int       `json:"count"`
		First   time.Time `json:"firstTimestamp"`
		Last    time.Time `json:"lastTimestamp"`
		Once    time.Time `json:"eventTime"`
		Series  struct {
			Count int       `json:"count"`
			Last  time.Time `json:"lastObservedTime"`
		} `json:"series"`
	}
	if err := unmarshal(object, &o); err != nil {
		return err
	}
	if o.About.Kind != "Pod" {
		return nil
	}
	e := Event{Reason: o.Reason, Message: o.Message, Count: max(o.Count, o.Series.Count), uid: o.About.UID}
	for _, t := range []time.Time{o.First, o.Once, o.Last, o.Series.Last} {
		if t.After(e.Time) {
			e.Time = t
		}
	}
	id := o.About.Namespace + "/" + o.About.Name
	out.events[id] = append(out.events[id], e)
	return nil
}

// gangObject takes in what an object says of its gang.
func (out *Objects) gangObject(object []byte) error {
	g, err := formats.ReadGangObject(object)
	if err != nil {
		return err
	}
	id := g.Namespace + "/" + g.Name
	out.groups[id] = max(out.groups[id], g.Minimum)
	return nil
}

func unmarshal(object []byte, into any) error {
	if err := json.Unmarshal(object, into); err != nil {
		return misfit.JSON(err)
	}
	return nil
}

// Events are those of the pod, the oldest first; those of an earlier pod of the
// same name are left out.
func (out *Objects) Events(p *Pod) []Event {
	var of []Event
	for _, e := range out.events[p.ID()] {
		if e.uid == "" || p.UID == "" || e.uid == p.UID {
			of = append(of, e)
		}
	}
	return of
}

// last is the pod's last event of a reason.
func (out *Objects) last(p *Pod, reason string) (Event, bool) {
	events := out.Events(p)
	for i := len(events) - 1; i >= 0; i-- {
		if events[i].Reason == reason {
			return events[i], true
		}
	}
	return Event{}, false
}
