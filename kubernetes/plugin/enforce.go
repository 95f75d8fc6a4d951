package plugin

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/dynamic"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/topologyaware"

	"github.com/cotenant/cotenant/kubernetes/plugin/config"
)

// Plugin is the plugin in the modes assist and enforce. In namespaces in the mode
// shadow it leaves everything to a Shadow, in those to ignore it does nothing.
type Plugin struct {
	*core
	// shadow is nil where no namespace is in that mode.
	shadow *Shadow
	// topology generates the placements of PodGroups; ours comes before its own.
	topology fwk.PlacementGeneratePlugin
	binder   fwk.BindPlugin
	scores   scoreMemory
	// leases tell whether this replica leads.
	leases metrics.Gatherer
	// completed is told when all pods of a group are there.
	completed chan struct{}
	// objects are those that say how many pods of a gang go together; nil where the
	// API server cannot be asked.
	objects *gangObjects
}

var (
	_ fwk.PreEnqueuePlugin        = &Plugin{}
	_ fwk.EnqueueExtensions       = &Plugin{}
	_ fwk.PreFilterPlugin         = &Plugin{}
	_ fwk.PostFilterPlugin        = &Plugin{}
	_ fwk.PreScorePlugin          = &Plugin{}
	_ fwk.ScorePlugin             = &Plugin{}
	_ fwk.SignPlugin              = &Plugin{}
	_ fwk.ReservePlugin           = &Plugin{}
	_ fwk.PermitPlugin            = &Plugin{}
	_ fwk.BindPlugin              = &Plugin{}
	_ fwk.PostBindPlugin          = &Plugin{}
	_ fwk.PlacementGeneratePlugin = &Plugin{}
	_ fwk.PlacementScorePlugin    = &Plugin{}
)

func newPlugin(ctx context.Context, c *core) (*Plugin, error) {
	p := &Plugin{core: c, completed: make(chan struct{}, 1), leases: legacyregistry.DefaultGatherer}
	if config := c.handle.KubeConfig(); config != nil {
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			return nil, fmt.Errorf("plugin %s: a client for gangs' objects: %w", Name, err)
		}
		p.objects = newGangObjects(c.handle.ClientSet().Discovery(), client, c.logger)
		go p.objects.run(ctx, lookForKinds)
	}
	c.waiting.tells = p.tells
	if err := c.watch(); err != nil {
		return nil, err
	}
	if err := c.watchNodes(); err != nil {
		return nil, fmt.Errorf("plugin %s: watching nodes: %w", Name, err)
	}
	if c.args.Has(config.Shadow) {
		var err error
		if p.shadow, err = newShadow(c.beside()); err != nil {
			return nil, err
		}
	}
	var none runtime.Object
	topology, err := topologyaware.New(ctx, none, c.handle, feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate))
	if err != nil {
		return nil, err
	}
	p.topology = topology
	binder, err := defaultbinder.New(ctx, none, c.handle)
	if err != nil {
		return nil, err
	}
	p.binder = binder.(fwk.BindPlugin)
	return p, nil
}

// beside is a core for other namespaces, with pods that wait, policies and plans
// of its own: neither waits for the other's.
func (c *core) beside() *core {
	return &core{
		args: c.args, handle: c.handle, framework: c.framework, brain: c.brain, objective: c.objective,
		waiting: newWaiting(), owners: c.owners, record: c.record, logger: c.logger, started: c.started,
	}
}
