package planetest

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/kubernetes/controlplane"
)

// Dynamic is a client of the plane for objects of any kind.
func Dynamic(t *testing.T, plane *controlplane.Plane) dynamic.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", plane.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// ServeGangs has the API server take the objects that say how many pods of a
// gang go together, whatever their fields: of the conventions' own definitions
// the names alone.
func ServeGangs(t *testing.T, plane *controlplane.Plane) {
	t.Helper()
	client := Dynamic(t, plane)
	definitions := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for _, r := range formats.GangResources {
		o := Object(t, fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[3]s.%[1]s, annotations: {api-approved.kubernetes.io: "unapproved, for a test"}}
spec:
  group: %[1]s
  scope: Namespaced
  names: {plural: %[3]s, kind: %[4]s}
  versions: [{name: %[2]s, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`, r.Group, r.Version, r.Resource, r.Kind))
		if _, err := definitions.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range formats.GangResources {
		all := client.Resource(schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Resource})
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			_, err := all.List(t.Context(), metav1.ListOptions{})
			if err == nil {
				break
			}
			if time.Now().After(end) {
				t.Fatal(err)
			}
		}
	}
}

// Object is what a YAML text describes.
func Object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}
