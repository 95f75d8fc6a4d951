// Package conformance holds the list of what a scheduler of Kubernetes must
// respect whatever else it wants: taints, affinity, spread, gates, volumes,
// devices, priorities and preemption. Its tests run the list against the stock
// scheduler and against ours, on a real control plane, and ask the same outcome
// of both:
//
//	make kubernetes-build
//	cd kubernetes && go test ./conformance
package conformance
