package plugin

import (
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/cotenant/cotenant/explain"
	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/kubernetes/plugin/config"
	"github.com/cotenant/cotenant/kubernetes/plugin/pods"
)

// number is how many pods of a gang go together, as the pods or its object say;
// 0 where neither does.
func (g *group) number() int {
	if g.gang == nil {
		return 0
	}
	return max(g.gang.Minimum, g.told.Minimum)
}

// minimum is how many go together: the number, else all that were there when the
// group was let go.
func (g *group) minimum() int {
	if n := g.number(); n > 0 {
		return n
	}
	return g.need
}

// unnumbered reports whether all that is known of how many pods go together is
// how many there are.
func (g *group) unnumbered() bool { return g.number() == 0 && g.placed() == 0 }

// timeout is how long the first of a gang's pods wait for the last.
func (g *group) timeout(otherwise time.Duration) time.Duration {
	if g.told.Timeout > 0 {
		return min(g.told.Timeout, config.MaxWait)
	}
	return otherwise
}

// timeoutOf is that of the pod's gang.
func (w *waiting) timeoutOf(pod *v1.Pod, otherwise time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	name, _ := groupOf(pod)
	if g := w.groups[name]; g != nil {
		return g.timeout(otherwise)
	}
	return otherwise
}

// learnLocked takes in what the object of a gang says by now.
func (w *waiting) learnLocked(g *group) {
	if g.gang == nil || w.tells == nil {
		return
	}
	namespace, _, _ := strings.Cut(g.name, "/")
	g.told = w.tells(namespace, g.gang)
}

// tells is what a gang's object says: of a native gang, the scheduler's cache
// has it.
func (p *Plugin) tells(namespace string, gang *pods.Gang) formats.GangObject {
	if !gang.Native {
		return p.objects.of(namespace, gang)
	}
	var said formats.GangObject
	if m := p.handle.PodGroupManager(); m != nil {
		if o, err := m.PodGroups().Get(namespace, gang.Name); err == nil && o.Spec.SchedulingPolicy.Gang != nil {
			said.Minimum = int(o.Spec.SchedulingPolicy.Gang.MinCount)
		}
	}
	return said
}

// guess is a gang that goes without its number: as many pods as are there.
type guess struct {
	pod  *v1.Pod // one of them
	gang string
	n    int
}

// letGo lets groups go whose time has come. No lock may be held.
func (p *Plugin) letGo(now time.Time) {
	quiet := p.args.GangWindow.Duration
	list, guesses := p.waiting.due(now, p.args.GroupWindow.Duration, quiet, p.owners.want)
	for _, g := range guesses {
		kind, why := v1.EventTypeNormal, "neither pods nor an object say"
		if _, gang := groupOf(g.pod); gang != nil {
			if hidden := p.objects.hidden(gang.Convention); hidden != "" {
				kind, why = v1.EventTypeWarning, hidden+"; it is not known"
			}
		}
		p.record.event(g.pod, kind, explain.UnnumberedEvent,
			"%s how many pods of gang %s go together: those %d that are there do, since for %s no other has come", why, g.gang, g.n, quiet)
	}
	p.activate(list)
}
