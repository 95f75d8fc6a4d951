package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/kubernetes/plugin/pods"
)

// gangObjects are what the objects of coscheduling, Volcano, JobSet and others
// say of gangs. None of them need be installed: the API server is asked now and
// then which it has.
type gangObjects struct {
	served  discovery.ServerGroupsInterface
	kinds   discovery.ServerResourcesInterface
	objects dynamic.Interface
	logger  klog.Logger
	// watched are those that the API server has, with what ends the watch.
	watched map[formats.GangResource]context.CancelFunc

	mu   sync.Mutex
	said map[formats.GangResource]map[cache.ObjectName]formats.GangObject
	// unread says why a kind that the API server has is not read; "" where it is.
	unread map[formats.GangResource]string
}

func newGangObjects(served discovery.DiscoveryInterface, objects dynamic.Interface, logger klog.Logger) *gangObjects {
	return &gangObjects{
		served: served, kinds: served, objects: objects, logger: logger,
		watched: map[formats.GangResource]context.CancelFunc{}, said: map[formats.GangResource]map[cache.ObjectName]formats.GangObject{},
		unread: map[formats.GangResource]string{},
	}
}

// of is what is said of a gang; nothing where its object is not there.
func (o *gangObjects) of(namespace string, gang *pods.Gang) (g formats.GangObject) {
	if o == nil {
		return g
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for r, said := range o.said {
		if r.Convention != gang.Convention {
			continue
		}
		// Jobs of several kinds may have the name: the largest number never splits.
		if one := said[cache.NewObjectName(namespace, gang.Name)]; one.Minimum > g.Minimum {
			g = one
		}
	}
	return g
}

// hidden says why an object that may say a gang's number is not read; "" where it is
// read, or there is none of the kind.
func (o *gangObjects) hidden(convention string) string {
	if o == nil {
		return ""
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range formats.GangResources {
		if why := o.unread[r]; why != "" && r.Convention == convention {
			return why
		}
	}
	return ""
}

// lookForKinds is how often the API server is asked which kinds it has: one may
// be installed, or go, while the scheduler runs.
const lookForKinds = 10 * time.Second

// run watches until the context ends.
func (o *gangObjects) run(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		o.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// look begins to watch what has come to be served, and ends what no longer is.
func (o *gangObjects) look(ctx context.Context) {
	groups, err := o.served.ServerGroups()
	if err != nil {
		o.logger.V(2).Info("Which kinds of gangs there are is not known; asked again later", "err", err)
		return
	}
	versions := map[string]bool{}
	for _, g := range groups.Groups {
		for _, v := range g.Versions {
			versions[v.GroupVersion] = true
		}
	}
	lists := map[string]map[string]bool{} // resources by version
	for _, r := range formats.GangResources {
		version := schema.GroupVersion{Group: r.Group, Version: r.Version}.String()
		if versions[version] && lists[version] == nil {
			list, err := o.kinds.ServerResourcesForGroupVersion(version)
			if err != nil {
				o.logger.V(2).Info("Which kinds of gangs there are is not known; asked again later", "version", version, "err", err)
				return
			}
			lists[version] = map[string]bool{}
			for i := range list.APIResources {
				lists[version][list.APIResources[i].Name] = true
			}
		}
		end, watched := o.watched[r]
		switch there := lists[version][r.Resource]; {
		case there && !watched:
			o.watch(ctx, r)
		case !there && watched:
			end()
			delete(o.watched, r)
			o.logger.Info("Gangs of a kind are no longer read: the API server has it no more", "kind", r.Kind, "version", version)
		}
	}
}

// watch reads the objects of a kind, from now on.
func (o *gangObjects) watch(ctx context.Context, r formats.GangResource) {
	ctx, cancel := context.WithCancel(ctx)
	said := map[cache.ObjectName]formats.GangObject{}
	o.mu.Lock()
	o.said[r] = said
	o.mu.Unlock()
	o.watched[r] = func() {
		cancel()
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.said, r)
		delete(o.unread, r)
	}
	resource := schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Resource}
	informer := dynamicinformer.NewFilteredDynamicInformer(o.objects, resource, "", 0, cache.Indexers{}, nil).Informer()
	// It fails only on an informer that has ended.
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { o.take(said, obj) },
		UpdateFunc: func(_, obj any) { o.take(said, obj) },
		DeleteFunc: func(obj any) {
			if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
				o.mu.Lock()
				defer o.mu.Unlock()
				delete(said, name)
			}
		},
	})
	// It fails only on an informer that runs.
	_ = informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, reflector *cache.Reflector, err error) {
		cache.DefaultWatchErrorHandler(ctx, reflector, err)
		o.mu.Lock()
		defer o.mu.Unlock()
		if ctx.Err() == nil && !informer.HasSynced() {
			o.unread[r] = fmt.Sprintf("the %s of %s is not read: %v", r.Kind, resource.GroupVersion(), err)
		}
	})
	go informer.RunWithContext(ctx)
	go func() {
		if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			return
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.unread, r)
		o.logger.Info("Gangs of a kind are read", "kind", r.Kind, "version", resource.GroupVersion())
	}()
}

// take takes in an object.
func (o *gangObjects) take(said map[cache.ObjectName]formats.GangObject, obj any) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return
	}
	text, err := json.Marshal(u.Object)
	if err != nil {
		return // it came as JSON
	}
	g, err := formats.ReadGangObject(text)
	if err != nil {
		o.logger.Error(err, "The object of a gang can't be read: its number is not known", "kind", u.GetKind(), "object", klog.KObj(u))
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	said[cache.NewObjectName(u.GetNamespace(), u.GetName())] = g
}
