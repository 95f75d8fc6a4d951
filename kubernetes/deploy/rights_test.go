package deploy_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// accounts are who the scheduler is to the API server.
const accounts = "system:serviceaccount:" + namespace + ":"

// right is a verb on resource[/subresource][.group].
type right struct{ verb, resource string }

func (r right) String() string { return r.verb + " " + r.resource }

func resourceOf(group, resource, sub string) string {
	if sub != "" {
		resource += "/" + sub
	}
	if group != "" {
		resource += "." + group
	}
	return resource
}

// granted are the rights that rendered roles give, each with the role's kind.
func granted(t *testing.T, all []*unstructured.Unstructured) map[right]string {
	t.Helper()
	out := map[right]string{}
	for _, o := range all {
		if k := o.GetKind(); k != "ClusterRole" && k != "Role" {
			continue
		}
		rules, _, err := unstructured.NestedSlice(o.Object, "rules")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rules {
			rule := r.(map[string]any)
			for _, group := range rule["apiGroups"].([]any) {
				for _, res := range rule["resources"].([]any) {
					for _, verb := range rule["verbs"].([]any) {
						name, sub, _ := strings.Cut(res.(string), "/")
						out[right{verb.(string), resourceOf(group.(string), name, sub)}] = o.GetKind()
					}
				}
			}
		}
	}
	return out
}

// asked are the rights that were used, with how often, and the requests that
// were refused.
func asked(log []auditv1.Event) (used map[right]int, refused []string) {
	used = map[right]int{}
	for i := range log {
		e := &log[i]
		if !strings.HasPrefix(e.User.Username, accounts) || e.ObjectRef == nil || e.ObjectRef.Resource == "" {
			continue
		}
		r := right{e.Verb, resourceOf(e.ObjectRef.APIGroup, e.ObjectRef.Resource, e.ObjectRef.Subresource)}
		if e.Annotations["authorization.k8s.io/decision"] == "forbid" {
			refused = append(refused, fmt.Sprintf("%s %s/%s: %s", r, e.ObjectRef.Namespace, e.ObjectRef.Name, e.Annotations["authorization.k8s.io/reason"]))
			continue
		}
		used[r]++
	}
	return used, refused
}

// seldom are the rights that the scenario need not use, and why they are given.
var seldom = map[right]string{
	{"get", "pods"}: "what became of a binding that failed, and of pods that the scheduler's cache has no more",
	{"get", "resourceclaims.resource.k8s.io"}:            "a claim that another has changed in the meantime",
	{"delete", "resourceclaims.resource.k8s.io"}:         "a claim made for an extended resource whose pod is not bound after all",
	{"patch", "resourceclaims/status.resource.k8s.io"}:   "a claim is given back when its pod is not bound after all",
	{"update", "resourceclaims/binding.resource.k8s.io"}: "asked by the API server itself when a claim's status is updated: no request of its own",
	{"patch", "resourceclaims/binding.resource.k8s.io"}:  "asked by the API server itself when a claim's status is patched: no request of its own",
	{"update", "persistentvolumeclaims"}:                 "a claim whose volume a driver is to make on the node that was chosen",
	{"patch", "events.events.k8s.io"}:                    "an event that comes again",
	{"patch", "events"}:                                  "an event of the election that comes again",
}

// leastPrivilege holds what is granted against what was used.
func leastPrivilege(t *testing.T, roles []*unstructured.Unstructured, log []auditv1.Event) {
	t.Helper()
	used, refused := asked(log)
	for _, r := range slices.Compact(slices.Sorted(slices.Values(refused))) {
		t.Errorf("the API server refused: %s", r)
	}
	given := granted(t, roles)
	order := func(a, b right) int { return strings.Compare(a.resource+" "+a.verb, b.resource+" "+b.verb) }
	for _, r := range slices.SortedFunc(maps.Keys(given), order) {
		n := used[r]
		if r.verb == "list" { // where the API server can't stream a list as a watch
			n += used[right{"watch", r.resource}]
		}
		if n == 0 && seldom[r] == "" {
			t.Errorf("right %q of the %s was not used; take it away, or say in seldom why it is needed", r, given[r])
		}
	}
	for _, r := range slices.SortedFunc(maps.Keys(used), order) {
		if given[r] == "" {
			t.Logf("used, and not of the chart's roles: %s, %d times", r, used[r])
		}
	}
	for r := range seldom {
		if given[r] == "" {
			t.Errorf("seldom excuses %q, which is not given", r)
		}
	}
}

// deciders are which of the pods of the scheduler bound or evicted each pod, in
// the order of the requests.
func deciders(log []auditv1.Event) (order []string) {
	for i := range log {
		e := &log[i]
		if strings.HasPrefix(e.User.Username, accounts) && e.ObjectRef != nil && (e.ObjectRef.Subresource == "binding" || e.ObjectRef.Subresource == "eviction") {
			order = append(order, strings.Join(e.User.Extra["authentication.kubernetes.io/pod-name"], ","))
		}
	}
	return order
}
