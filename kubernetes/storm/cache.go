package storm

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What kube-scheduler logs on SIGUSR2: the nodes in its cache with the pods on
// them, then its queue.
const (
	dumpBegins = `"Dump of cached NodeInfo"`
	dumpEnds   = `"Dump of scheduling queue"`
)

// ReadCache reads the last whole dump of a scheduler's cache in its log: the node
// of each pod in it, by the pod's UID. ok is false where the log has none.
func ReadCache(log string) (on map[types.UID]string, ok bool) {
	end := strings.LastIndex(log, dumpEnds)
	if end < 0 {
		return nil, false
	}
	begin := strings.LastIndex(log[:end], dumpBegins)
	if begin < 0 {
		return nil, false
	}
	on = map[types.UID]string{}
	node, nominated := "", false
	for line := range strings.Lines(log[begin:end]) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "Node name: "); ok {
			node, nominated = name, false
		}
		nominated = nominated || strings.HasPrefix(line, "Nominated Pods(")
		if _, rest, ok := strings.Cut(line, ", uid: "); ok && !nominated {
			uid, _, _ := strings.Cut(rest, ",")
			on[types.UID(uid)] = node
		}
	}
	return on, true
}

// CacheDiffers says in which pods a scheduler's cache is not what the API server
// has: pods that it lacks, has on another node, or has although they are gone, have
// ended, or have no node.
func CacheDiffers(on map[types.UID]string, pods []corev1.Pod) []string {
	var out []string
	left := maps.Clone(on)
	for i := range pods {
		p := &pods[i]
		want := p.Spec.NodeName
		if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			want = ""
		}
		if have := on[p.UID]; have != want {
			out = append(out, fmt.Sprintf("pod %s is on %q by the API server, on %q by the cache", p.Name, want, have))
		}
		delete(left, p.UID)
	}
	for uid, node := range left {
		out = append(out, fmt.Sprintf("pod of UID %s is gone by the API server, on %q by the cache", uid, node))
	}
	slices.Sort(out)
	return out
}
