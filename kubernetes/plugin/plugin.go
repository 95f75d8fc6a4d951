package plugin

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/cotenant/cotenant/kubernetes/plugin/brain"
	"github.com/cotenant/cotenant/kubernetes/plugin/config"
	"github.com/cotenant/cotenant/kubernetes/plugin/pods"
	"github.com/cotenant/cotenant/place"
)

// Name of the plugin in configurations.
const Name = config.PluginName

// core is what the plugin has in every mode.
type core struct {
	args      *config.CotenantArgs
	handle    fwk.Handle
	framework framework.Framework // the handle; nil where it is none
	modes     []config.Mode       // of the namespaces that it is for
	brain     *brain.Brain
	objective place.Objective
	waiting   *waiting
	owners    *owners
	record    *recorder
	logger    klog.Logger
	started   time.Time

	// planning is one plan at a time; late says that one given up on still runs.
	planning sync.Mutex
	late     atomic.Bool
	plans    int
	planned  time.Time // when the last one was begun
	policies *policies

	// turnMu comes before the lock of waiting.
	turnMu sync.Mutex
	turn   turn
}

// New makes the plugin. In the mode shadow it is one that has none of the
// extension points which change decisions or turn OpportunisticBatching off.
func New(ctx context.Context, obj runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
	args, ok := obj.(*config.CotenantArgs)
	if !ok {
		return nil, fmt.Errorf("plugin %s: its args are of type %T, not CotenantArgs of kubescheduler.config.k8s.io/v1", Name, obj)
	}
	if err := config.Validate(field.NewPath("pluginConfig").Key(Name), args); err != nil {
		return nil, err
	}
	b, bad := brain.New(filesOf(args))
	if b == nil {
		return nil, fmt.Errorf("plugin %s: %w", Name, bad)
	}
	registerMetrics()
	objective, err := place.ParseObjective(args.Objective)
	if err != nil {
		return nil, err
	}
	c := &core{
		args: args, handle: h, brain: b, objective: objective, waiting: newWaiting(),
		logger: klog.FromContext(ctx).WithName(Name), started: time.Now(),
	}
	c.framework, _ = h.(framework.Framework)
	c.modes = []config.Mode{config.Enforce, config.Assist}
	c.owners = newOwners(h.SharedInformerFactory())
	c.record = newRecorder(h, args, c.logger)
	noteVersion(h.ProfileName(), b.Now().Version)
	if bad != nil {
		reloads.WithLabelValues("refused").Inc()
		c.logger.Error(bad, "Files are bad: pods go by the scheduler's own scores until there are better ones")
	}
	go func() {
		c.tellBad(ctx, bad)
		c.keep(ctx)
	}()
	if most := args.Most(); most == config.Shadow || most == config.Ignore {
		c.logger.Info("Shadow mode: decides, records, changes nothing", "version", b.Now().Version)
		return newShadow(c)
	}
	p, err := newPlugin(ctx, c)
	if err != nil {
		return nil, err
	}
	go p.tick(ctx)
	c.logger.Info("Ready", "mode", args.Mode, "namespaces", args.Namespaces, "version", b.Now().Version)
	return p, nil
}

// minds reports whether the pods of a namespace are this one's to plan for.
func (c *core) minds(namespace string) bool {
	return slices.Contains(c.modes, c.args.ModeOf(namespace))
}

func filesOf(args *config.CotenantArgs) brain.Files {
	f := brain.Files{
		Model: args.Model.Path, Samples: args.Samples.Path, Columns: args.Samples.Columns,
		Services: brain.Policy{Name: args.Policy.Name, File: args.Policy.Path, Params: args.Policy.Params},
	}
	if j := args.JobsPolicy; j != nil {
		f.Jobs = brain.Policy{Name: j.Name, File: j.Path, Params: j.Params}
	}
	return f
}

// Name implements framework.Plugin.
func (c *core) Name() string { return Name }

// at is a time as policies have it: since the start of the scheduler, at the
// workloads' pace.
func (c *core) at(t time.Time) time.Duration {
	return time.Duration(float64(t.Sub(c.started)) * *c.args.ClockRate)
}

func (c *core) now() time.Duration { return c.at(time.Now()) }

// ours reports whether a pod waits for this profile.
func (c *core) ours(pod *v1.Pod) bool {
	return pod.Spec.SchedulerName == c.handle.ProfileName() && pod.Spec.NodeName == "" &&
		pod.DeletionTimestamp == nil && len(pod.Spec.SchedulingGates) == 0 && !pods.Ended(pod)
}

// watch keeps the pods that wait, and the gangs, as the API server has them.
func (c *core) watch() error {
	informer := c.handle.SharedInformerFactory().Core().V1().Pods().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { c.observe(obj) },
		UpdateFunc: func(_, obj any) { c.observe(obj) },
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			if pod, ok := obj.(*v1.Pod); ok {
				c.waiting.gone(pod)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("plugin %s: watching pods: %w", Name, err)
	}
	return nil
}

func (c *core) observe(obj any) {
	pod, ok := obj.(*v1.Pod)
	if !ok || pod.Spec.SchedulerName != c.handle.ProfileName() || !c.minds(pod.Namespace) {
		return
	}
	switch {
	case c.ours(pod):
		c.waiting.see(pod, time.Now())
	case pod.Spec.NodeName != "":
		c.waiting.ran(pod)
	default:
		c.waiting.gone(pod)
	}
}

// tellBad tells of files that were bad at the start. What is told before the
// scheduler runs is lost: it begins to send events just before its caches fill.
func (c *core) tellBad(ctx context.Context, bad error) {
	if bad == nil || !cache.WaitForCacheSync(ctx.Done(), c.handle.SharedInformerFactory().Core().V1().Pods().Informer().HasSynced) {
		return
	}
	c.record.files(v1.EventTypeWarning, "CotenantFilesRefused", c.brain.Now().Version, bad.Error()+"; until there are better files pods go by the scheduler's own scores")
}

// keep reads the files again when they change.
func (c *core) keep(ctx context.Context) {
	ticker := time.NewTicker(c.args.ReloadPeriod.Duration)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		changed, err := c.brain.Reload()
		switch {
		case err != nil:
			reloads.WithLabelValues("refused").Inc()
			c.logger.Error(err, "Files are bad: what was read before stays in use")
			c.record.files(v1.EventTypeWarning, "CotenantFilesRefused", c.brain.Now().Version, err.Error())
		case changed:
			reloads.WithLabelValues("loaded").Inc()
			noteVersion(c.handle.ProfileName(), c.brain.Now().Version)
			c.logger.Info("Files changed: a new version is in use", "version", c.brain.Now().Version)
			c.record.files(v1.EventTypeNormal, "CotenantFilesLoaded", c.brain.Now().Version, "version "+c.brain.Now().Version+" of the model and policy files is in use")
		}
	}
}
