package main

import (
	"time"

	"github.com/spf13/cobra"
)

func planCommand() *cobra.Command {
	return group("plan", "Plan where tasks go", planServicesCommand(), planJobsCommand())
}

// planFlags are the flags of `plan services`, as given.
type planFlags struct {
	sourceFlags
	clusterFlags
	batch     string
	policies  []string
	specs     []policySpec // policies, parsed
	objective string
	order     string
	seed      uint64
	seeds     int
	limit     time.Duration
	explain   bool
	output    string
	out       string
}

func planServicesCommand() *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "services",
		Short: "Place a batch of service tasks, and prove how good the plan is",
		Long: `Place a batch of service tasks by every policy named, and hold each plan
against a proven bound on what any placement can reach: any in co-locations
that were measured, or by what the model predicts of them. Where samples hold a
part of what nodes could hold, the table says so.

With --samples alone the policies see what was measured. With --model they see
only the model; --samples given too is then the truth that judges their plans.
With neither, the measurements that ship with cotenant are the samples.

Without --batch, the pods that wait in --cluster are placed, by the policy of
cotenant-scheduler unless others are named, and it is said where each would go.

Exit 1 when a policy failed or could not place every task.`,
		Example: `  cotenant plan services --samples colocations.csv --batch batch.csv:0 --nodes 81 --slots 8
  cotenant plan services --model model.safetensors --samples colocations.csv --batch batch.csv --nodes 81 --slots 8 \
      --policy greedy,bound --seeds 20 --order random
  cotenant plan services --samples s.jsonl --batch batch.csv --cluster snapshot.json --constraints rules.yaml --explain
  cotenant plan services --samples s.jsonl --cluster kubeconfig -n shop --slots 4`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return planServices(cmd, &f) },
	}
	f.sourceFlags.register(cmd)
	f.clusterFlags.register(cmd)
	f.clusterFlags.registerNamespace(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.batch, "batch", "", "tasks to place: `FILE[:row]`, a CSV with a column a workload and a row a batch; rows count from 0 after the header")
	fl.StringArrayVar(&f.policies, "policy", nil, "policies, a comma `list` of NAME[@FILE][:key=value...] and exec:PROGRAM (default: all that are built in; for pods that wait in --cluster, metis); metis is the one that was trained")
	fl.StringVar(&f.objective, "objective", "mean", "`what` to optimise: mean, worst, p99, nodes, traffic (needs edges in --workloads), or a weighted sum such as mean=1,traffic=0.2")
	fl.StringVar(&f.order, "order", "random", "`order` in which the tasks come: random (by --seed), workload, roundrobin")
	fl.Uint64Var(&f.seed, "seed", 1, "`S`, the seed of all that is drawn")
	fl.IntVar(&f.seeds, "seeds", 1, "plan with `N` seeds: S, S+1, ...")
	fl.DurationVar(&f.limit, "time-limit", 0, "most time for a policy's plan; a search then decides with what it has (default none; 1m for exec:)")
	fl.BoolVar(&f.explain, "explain", false, "say in words why each task went where it did")
	fl.StringVar(&f.out, "out", "", "also write manifest.json, plans.csv and decisions.csv into `DIR`")
	outputFlag(cmd, &f.output)
	return cmd
}
