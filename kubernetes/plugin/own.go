package plugin

import (
	"os"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// own is the pod that this scheduler runs in, as its manifest tells it; nil
// where it runs in none.
func own() *v1.ObjectReference {
	name, namespace := os.Getenv("POD_NAME"), os.Getenv("POD_NAMESPACE")
	if name == "" || namespace == "" {
		return nil
	}
	return &v1.ObjectReference{APIVersion: "v1", Kind: "Pod", Name: name, Namespace: namespace, UID: types.UID(os.Getenv("POD_UID"))}
}

// files tells, in an event of the scheduler's own pod, what became of changed
// model and policy files. Events that differ in their words alone are counted as
// one, so the action names the version in use, too.
func (r *recorder) files(kind, reason, version, words string) {
	e, pod := r.handle.EventRecorder(), own()
	if e == nil || pod == nil {
		return
	}
	e.Eventf(pod, nil, kind, reason, "Reloading, in use: "+version, "%s", clipped(words))
}
