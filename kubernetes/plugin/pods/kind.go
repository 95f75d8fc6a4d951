package pods

import (
	"encoding/json"
	"hash/fnv"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/cotenant/cotenant/cluster"
)

// Kind numbers what makes the scheduler's filters answer alike: pods of a kind
// may go to the same nodes, as long as no rule between pods says otherwise.
// The names of volumes that every pod has of its own (its token) don't count.
// Namespace and labels count only where rules between pods may look at them:
// with labelled.
func Kind(pod *v1.Pod, labelled bool) uint64 {
	spec := &pod.Spec
	var volumes []v1.VolumeSource
	for i := range spec.Volumes {
		if s := &spec.Volumes[i].VolumeSource; !anywhere(s) {
			volumes = append(volumes, *s)
		}
	}
	hash := fnv.New64a()
	// Encoding writes maps in the order of their keys; it cannot fail on these.
	encoder := json.NewEncoder(hash)
	if labelled {
		_ = encoder.Encode([]any{pod.Namespace, pod.Labels})
	}
	_ = encoder.Encode([]any{
		spec.NodeSelector, spec.NodeName, spec.Affinity, spec.Tolerations,
		spec.TopologySpreadConstraints, spec.SchedulerName, spec.Priority, spec.HostNetwork, spec.RuntimeClassName, spec.OS,
		spec.ResourceClaims, Requests(pod), Ports(pod), volumes,
	})
	return hash.Sum64()
}

// anywhere reports whether a volume is made on whichever node the pod goes to.
func anywhere(s *v1.VolumeSource) bool {
	return s.Projected != nil || s.ConfigMap != nil || s.Secret != nil || s.EmptyDir != nil || s.DownwardAPI != nil
}

// Ports are the host's ports that the pod takes.
func Ports(pod *v1.Pod) []v1.ContainerPort {
	var ports []v1.ContainerPort
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, p := range c.Ports {
			if p.HostPort > 0 {
				ports = append(ports, v1.ContainerPort{HostPort: p.HostPort, HostIP: p.HostIP, Protocol: p.Protocol})
			}
		}
	}
	return ports
}

// Plain reports whether a pod's fit on a node depends on nothing but the node
// and what is free on it: no rules between pods, no volumes that are claimed,
// no devices that are claimed, no ports of the host.
func Plain(pod *v1.Pod) bool {
	spec := &pod.Spec
	if a := spec.Affinity; a != nil && (a.PodAffinity != nil || a.PodAntiAffinity != nil) {
		return false
	}
	if len(spec.TopologySpreadConstraints) > 0 || len(spec.ResourceClaims) > 0 || len(Ports(pod)) > 0 {
		return false
	}
	for i := range spec.Volumes {
		if s := &spec.Volumes[i].VolumeSource; !anywhere(s) && s.HostPath == nil {
			return false
		}
	}
	return true
}

// OnePerNode reports whether no two pods of the kind go to one node: they keep
// each other off, or want the same port of the host.
func OnePerNode(pod *v1.Pod) bool {
	if len(Ports(pod)) > 0 {
		return true
	}
	a := pod.Spec.Affinity
	if a == nil || a.PodAntiAffinity == nil {
		return false
	}
	for _, t := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		if t.TopologyKey == cluster.HostKey && matches(t, pod) {
			return true
		}
	}
	return false
}
