package deploy_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/cotenant/cotenant/kubernetes/controlplane"
)

// stock is the scheduler that a cluster has.
var stock = controlplane.Scheduler{Program: "kube-scheduler"}

// apply is `kubectl apply --server-side`.
func (c *cluster) apply(o *unstructured.Unstructured) error {
	_, err := c.applied(o)
	return err
}

func (c *cluster) applied(o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	kind := o.GroupVersionKind()
	mapping, err := c.mapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(c.plane.REST())
	if err != nil {
		return nil, err
	}
	var of dynamic.ResourceInterface = client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if o.GetNamespace() == "" {
			return nil, fmt.Errorf("%s %s has no namespace", kind.Kind, o.GetName())
		}
		of = client.Resource(mapping.Resource).Namespace(o.GetNamespace())
	}
	return of.Apply(c.ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: "kubectl"})
}

func (c *cluster) mapper() meta.RESTMapper {
	return restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.kube.Discovery()))
}
