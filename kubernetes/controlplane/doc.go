// Package controlplane runs a real Kubernetes control plane on this machine,
// for tests and laptops: etcd, kube-apiserver, kube-controller-manager where
// asked for, kwok for nodes without machines behind them, and any scheduler.
//
//	plane, err := controlplane.Start(ctx, controlplane.Config{Log: os.Stderr})
//	if err != nil { ... }
//	defer plane.Stop()
//	err = plane.AddNodes(ctx, controlplane.Nodes(10, controlplane.NodeShape{CPU: "8", Memory: "32Gi", Pods: "8"})...)
//	scheduler, err := plane.StartScheduler(ctx, controlplane.Scheduler{Program: "kube-scheduler"})
//
// The programs are those that `make kubernetes-build` makes. Each listens on
// 127.0.0.1 only, on ports that were free, with certificates of the plane's
// own; what it writes is in a folder of its own, which Stop removes. Stop ends
// only processes that the plane started, by their process ids; on Linux the
// kernel ends them too when the process that started the plane dies.
//
// Nothing runs in the pods: kwok says Running as soon as a pod is bound, and
// removes a pod of its nodes once it is deleted.
package controlplane
