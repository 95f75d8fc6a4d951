package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/cotenant/cotenant/kubernetes/bench"
	"github.com/cotenant/cotenant/kubernetes/controlplane"
)

type upFlags struct {
	nodes         int
	shape         controlplane.NodeShape
	scheduler     string
	configuration string
	gangs         bool
	controllers   []string
}

func upCommand() *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run a control plane until Ctrl-C, and print its kubeconfig",
		Long: `Run etcd, kube-apiserver, kube-controller-manager, a scheduler and kwok on
127.0.0.1, with nodes that kwok plays, and print the path of a kubeconfig.
Ctrl-C ends all of it and removes its folder.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return up(cmd, f) },
	}
	fl := cmd.Flags()
	fl.IntVar(&f.nodes, "nodes", 10, "`N` nodes")
	fl.StringVar(&f.shape.CPU, "cpu", "8", "cores of a node, as a Kubernetes `quantity`")
	fl.StringVar(&f.shape.Memory, "memory", "32Gi", "memory of a node, as a Kubernetes `quantity`")
	fl.StringVar(&f.shape.Pods, "pods", "110", "most pods of a node")
	fl.StringVar(&f.scheduler, "scheduler", "kube-scheduler", "`program` in the folder of programs, or a path; \"none\" for no scheduler")
	fl.StringVar(&f.configuration, "scheduler-config", "", "`FILE` with its KubeSchedulerConfiguration")
	fl.BoolVar(&f.gangs, "gangs", true, "switch on the native API for gangs: PodGroup and Workload")
	fl.StringSliceVar(&f.controllers, "controllers", []string{"*"}, "`controllers` of kube-controller-manager to run; none at all with \"\"")
	return cmd
}

func up(cmd *cobra.Command, f upFlags) (err error) {
	if f.nodes < 0 || f.nodes > maxNodes {
		return fmt.Errorf("--nodes %d: give 0 to %d", f.nodes, maxNodes)
	}
	if err := f.checkShape(); err != nil {
		return err
	}
	ctx, log := cmd.Context(), cmd.ErrOrStderr()
	config := controlplane.Config{Controllers: f.controllers, Log: log}
	if f.gangs {
		config = config.WithGangs()
	}
	text, err := optional(f.configuration)
	if err != nil {
		return fmt.Errorf("--scheduler-config: %w", err)
	}
	scheduler := bench.Candidate{Program: f.scheduler, Configuration: text}
	if f.scheduler != "none" {
		if err := check(ctx, config, "scheduler", scheduler, nil); err != nil {
			return interrupted(ctx, err)
		}
	}
	plane, err := controlplane.Start(ctx, config)
	if err != nil {
		return interrupted(ctx, err)
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	if err := plane.AddNodes(ctx, controlplane.Nodes(f.nodes, f.shape)...); err != nil {
		return interrupted(ctx, err)
	}
	if f.scheduler != "none" {
		s := controlplane.Scheduler{Program: f.scheduler, Configuration: text, Sole: true}
		if _, err := plane.StartScheduler(ctx, s); err != nil {
			return interrupted(ctx, err)
		}
	}
	if f.nodes == 0 {
		fmt.Fprintln(log, "no nodes, as asked: pods wait until you create some")
	}
	fmt.Fprintf(log, "%d nodes are ready; logs are in %s; Ctrl-C ends it\n", f.nodes, plane.Dir())
	fmt.Fprintf(cmd.OutOrStdout(), "export KUBECONFIG=%s\n", filepath.Clean(plane.Kubeconfig()))
	return plane.Wait(ctx)
}

// interrupted is nil where the error comes of the user's Ctrl-C.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
