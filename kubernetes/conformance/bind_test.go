package conformance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cotenant/cotenant/kubernetes/bench"
	"github.com/cotenant/cotenant/kubernetes/controlplane"
	"github.com/cotenant/cotenant/kubernetes/controlplane/planetest"
)

// The API server refuses to bind some pods: their room is for others at once, or,
// where they are of a gang, once they are deleted; and when it refuses no more they
// get their node. Stock and ours, on a node that holds one pod.
func TestBindingsThatFail(t *testing.T) {
	for _, c := range []bench.Candidate{bench.Stock(), bench.Ours()} {
		t.Run(c.Name, func(t *testing.T) {
			plane := planetest.Start(t, controlplane.Config{}, c.Program)
			w := &world{T: t, ctx: t.Context(), plane: plane, kube: plane.Client()}
			w.nodes(1, controlplane.NodeShape{CPU: "1"}, nil)
			allow := w.refuseToBind()
			begin(t, plane, c)
			whole := requests(corev1.ResourceCPU, "1")

			w.create(pod("refused-0", whole))
			w.pending("refused-0", "SchedulerError")
			w.create(pod("other-0", whole))
			w.on("other-0")
			w.end("other-0")
			w.end("refused-0")

			w.create(pod("refused-1", whole, gangOf("refused", 1)))
			w.unbound("refused-1")
			w.end("refused-1") // while its binding is tried again
			w.create(pod("other-1", whole))
			w.on("other-1")
			w.end("other-1")

			w.create(pod("refused-2", whole))
			w.unbound("refused-2")
			allow()
			w.on("refused-2")
		})
	}
}

func gangOf(name string, n int) option {
	return func(p *corev1.Pod) {
		p.Labels["scheduling.x-k8s.io/pod-group"] = name
		p.Annotations = map[string]string{"cotenant.dev/gang-minimum": fmt.Sprint(n)}
	}
}

// end deletes a pod and waits until it is gone.
func (w *world) end(name string) {
	w.Helper()
	none := int64(0)
	if err := w.kube.CoreV1().Pods(namespace).Delete(w.ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &none}); err != nil {
		w.Fatal(err)
	}
	w.gone(name)
}

// refuseToBind has the API server refuse to bind pods whose names begin with
// refused, until allow is called.
func (w *world) refuseToBind() (allow func()) {
	w.Helper()
	const name, refusal = "refused", "not now"
	api := w.kube.AdmissionregistrationV1()
	_, err := api.ValidatingAdmissionPolicies().Create(w.ctx, &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/binding", "bindings"}},
			}}}},
			Validations: []admissionv1.Validation{{Expression: "!request.name.startsWith('refused')", Message: refusal}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	_, err = api.ValidatingAdmissionPolicyBindings().Create(w.ctx, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	// It counts a moment later. A pod with a gate is refused anyway, in other words.
	w.until("the API server refuses bindings", func() (bool, error) {
		w.create(pod("refused-by-rule", gated("probe")))
		defer w.end("refused-by-rule")
		time.Sleep(100 * time.Millisecond)
		err := w.kube.CoreV1().Pods(namespace).Bind(w.ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "refused-by-rule"}, Target: corev1.ObjectReference{Kind: "Node", Name: "node-0000"}}, metav1.CreateOptions{})
		return err != nil && strings.Contains(err.Error(), refusal), err
	})
	return func() {
		if err := api.ValidatingAdmissionPolicyBindings().Delete(w.ctx, name, metav1.DeleteOptions{}); err != nil {
			w.Fatal(err)
		}
	}
}
