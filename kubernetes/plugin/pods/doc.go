// Package pods reads of pods and nodes what a plan needs: the workload and
// role of a pod, what it requests, the group that it is placed in, the gang
// that it belongs to, and what kind it is of; and of a scheduler's nodes the
// cluster.Spec on which policies decide.
//
//	p := pods.Read(pod)
//	p.Task.Workload // "redis", by the label cotenant.dev/workload or the image
//	p.Gang          // not nil where all of p.Group go together or not at all
//
// It is pure: no clock, no I/O.
package pods
