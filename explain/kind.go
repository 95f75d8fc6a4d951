package explain

import "strings"

// shortKinds are kubectl's short words for kinds.
var shortKinds = map[string]string{
	"po": "pod", "deploy": "deployment", "rs": "replicaset", "sts": "statefulset", "ds": "daemonset", "cj": "cronjob", "rc": "replicationcontroller",
}

// Kind is the kind that a word of kubectl's means, in lower case: deploy,
// deployments and deployment.apps are all deployment.
func Kind(word string) string {
	word, _, _ = strings.Cut(strings.ToLower(word), ".")
	if long := shortKinds[word]; long != "" {
		return long
	}
	return strings.TrimSuffix(word, "s")
}

// IsKind reports whether a word means a kind that Kubernetes itself has for pods,
// and their groups and owners.
func IsKind(word string) bool {
	switch Kind(word) {
	case "pod", "podgroup", "deployment", "replicaset", "statefulset", "daemonset", "job", "cronjob", "replicationcontroller":
		return true
	}
	return false
}

// HasKind reports whether a word means a kind that owns one of the pods, or that
// Kubernetes itself has.
func (out *Objects) HasKind(word string) bool {
	if IsKind(word) {
		return true
	}
	for _, p := range out.Pods {
		if kind, _, ok := strings.Cut(p.Owner, "/"); ok && Kind(kind) == Kind(word) {
			return true
		}
	}
	return false
}

// isOf reports whether the pod belongs to the gang or owner of a name, or of
// kind/name.
func (p *Pod) isOf(name string) bool {
	of := func(kind, owner string) bool {
		return owner != "" && (owner == name || Kind(kind)+"/"+owner == name)
	}
	if kind, bare, ok := strings.Cut(name, "/"); ok {
		name = Kind(kind) + "/" + bare
	}
	kind, owner, _ := strings.Cut(p.Owner, "/")
	if p.Gang != nil && p.Gang.Name == name || of(kind, owner) {
		return true
	}
	// Owners of owners are told by their names alone.
	at := strings.LastIndexByte(owner, '-')
	switch {
	case at <= 0:
		return false
	case kind == "ReplicaSet":
		return of("Deployment", owner[:at])
	case kind == "Job":
		return strings.HasPrefix(name, "cronjob/") && of("CronJob", owner[:at])
	}
	return false
}
