package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cotenant/cotenant/kubernetes/bench"
	"github.com/cotenant/cotenant/kubernetes/controlplane"
)

type upFlags struct {
	nodes         int
	shape         controlplane.NodeShape
	scheduler     string
	configuration string
	ours          string
	oursConfig    string
	gangs         bool
	controllers   []string
}

func upCommand() *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run a control plane until Ctrl-C, and print its kubeconfig",
		Long: `Run etcd, kube-apiserver, kube-controller-manager, a scheduler and kwok on
127.0.0.1, with nodes that kwok plays, and print the path of a kubeconfig; with
--ours, cotenant-scheduler beside the stock one. A pod is Running as soon as it
has a node, and nothing runs in it. Ctrl-C ends all of it and removes its folder.`,
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
	fl.StringVar(&f.ours, "ours", "none", "`program` to run beside it, --ours alone is --ours=cotenant-scheduler: pods that name it are placed by a model of the measurements that ship, those in the namespace staging in the mode shadow")
	fl.Lookup("ours").NoOptDefVal = "cotenant-scheduler"
	fl.StringVar(&f.oursConfig, "ours-config", "", "`FILE` with its KubeSchedulerConfiguration, in place of that; ${MODEL} in it becomes the path of that model. Implies --ours")
	fl.BoolVar(&f.gangs, "gangs", true, "switch on the native API for gangs: PodGroup and Workload")
	fl.StringSliceVar(&f.controllers, "controllers", []string{"*"}, "`controllers` of kube-controller-manager to run; none at all with \"\"")
	return cmd
}

//go:embed ours.yaml
var beside string

// schedulers are those to start. Two that serve the same pods are refused: each
// would bind what the other has bound.
func (f upFlags) schedulers(ctx context.Context, plane controlplane.Config, truth *bench.Truth) ([]bench.Candidate, error) {
	stock, err := optional(f.configuration)
	if err != nil {
		return nil, fmt.Errorf("--scheduler-config: %w", err)
	}
	ours, err := optional(f.oursConfig)
	if err != nil {
		return nil, fmt.Errorf("--ours-config: %w", err)
	}
	if ours == "" {
		ours = beside
	} else if f.ours == "none" {
		f.ours = "cotenant-scheduler"
	}
	if filepath.Base(f.scheduler) == "cotenant-scheduler" && stock == "" {
		return nil, fmt.Errorf("--scheduler %s: without a --scheduler-config that enables its plugin it is the stock scheduler; give one, or take --ours, which has one", f.scheduler)
	}
	name := filepath.Base(f.ours)
	if name == filepath.Base(f.scheduler) {
		name += "-beside" // logs and credentials go by it
	}
	var all []bench.Candidate
	serves := map[string]bool{}
	for _, c := range []struct{ flag, name, program, text string }{
		{"scheduler", filepath.Base(f.scheduler), f.scheduler, stock}, {"ours", name, f.ours, ours},
	} {
		if c.program == "none" {
			continue
		}
		candidate := bench.Candidate{Name: c.name, Program: c.program, Configuration: c.text}
		if err := check(ctx, plane, c.flag, candidate, truth); err != nil {
			return nil, err
		}
		names, err := controlplane.Scheduler{Configuration: c.text}.Serves()
		if err != nil {
			return nil, fmt.Errorf("--%s-config: %w", c.flag, err)
		}
		for _, name := range names {
			if serves[name] {
				return nil, fmt.Errorf("--ours-config: schedulerName %s is the other scheduler's, too; give it another, or --scheduler none", name)
			}
			serves[name] = true
		}
		all = append(all, candidate)
	}
	return all, nil
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
	truth, err := bench.ReadTruth("")
	if err != nil {
		return err
	}
	schedulers, err := f.schedulers(ctx, config, truth)
	if err != nil {
		return interrupted(ctx, err)
	}
	plane, err := controlplane.Start(ctx, config)
	if err != nil {
		return interrupted(ctx, err)
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	if err := allowGangs(ctx, plane); err != nil {
		return interrupted(ctx, err)
	}
	if err := plane.AddNodes(ctx, controlplane.Nodes(f.nodes, f.shape)...); err != nil {
		return interrupted(ctx, err)
	}
	for _, c := range schedulers {
		if err := startAndTell(cmd, plane, c, truth); err != nil {
			return interrupted(ctx, err)
		}
	}
	if f.nodes == 0 {
		fmt.Fprintln(log, "no nodes, as asked: pods wait until you create some")
	}
	fmt.Fprintf(log, "%d nodes are ready; kwok plays them: pods become Running, and nothing runs in them\n", f.nodes)
	fmt.Fprintf(log, "logs are in %s; Ctrl-C ends it\n", plane.Dir())
	fmt.Fprintf(cmd.OutOrStdout(), "export KUBECONFIG=%s\n", filepath.Clean(plane.Kubeconfig()))
	return plane.Wait(ctx)
}

// startAndTell starts a scheduler, and tells how pods ask for it and where it
// tells of itself.
func startAndTell(cmd *cobra.Command, plane *controlplane.Plane, c bench.Candidate, truth *bench.Truth) error {
	text, err := c.For(truth, plane.Dir())
	if err != nil {
		return err
	}
	s := controlplane.Scheduler{Name: c.Name, Program: c.Program, Configuration: text, Sole: true}
	names, err := s.Serves()
	if err != nil {
		return err
	}
	running, err := plane.StartScheduler(cmd.Context(), s)
	if err != nil {
		return err
	}
	log := cmd.ErrOrStderr()
	or := ""
	if slices.Contains(names, "default-scheduler") {
		or = ", or without one"
	}
	fmt.Fprintf(log, "  schedules pods with schedulerName: %s%s\n", strings.Join(names, ", "), or)
	fmt.Fprintf(log, "  its metrics: curl --cacert %s %s\n", plane.CA(), running.MetricsURL())
	if text != c.Configuration {
		fmt.Fprintf(log, "  its model knows the images %s\n", strings.Join(truth.Workloads, ", "))
	}
	return nil
}

// interrupted is nil where the error comes of the user's Ctrl-C.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
