package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cotenant/cotenant/explain"
	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/live"
)

// podsFlags say which pods to read, and what is known of interference.
type podsFlags struct {
	source     sourceFlags
	cluster    string
	kubeconfig string
	context    string
	slots      int
	output     string
}

func (f *podsFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.cluster, "cluster", kubectlsOwn, "kubeconfig, or a `FILE` by kubectl get nodes,pods,events -A -o json|yaml; the word kubeconfig is the one that kubectl uses")
	kubectlFlags(fl, &f.kubeconfig, &f.context)
	fl.StringVar(&f.source.samples, "samples", "", "`FILE` of measurements, by which nodes are judged: .jsonl, .csv, SQLite; gzip too")
	fl.StringVar(&f.source.model, "model", "", "model `FILE` by cotenant fit; what --samples has is not predicted")
	fl.StringSliceVar(&f.source.columns, "columns", nil, "`workloads` of the columns of an .npz, which does not name them")
	fl.BoolVar(&f.source.strict, "strict", false, "fail on the first bad record instead of leaving it out")
	fl.IntVar(&f.slots, "slots", 0, "most tasks of known workloads on a node, `N`, as cotenant-scheduler's slotsPerNode (default: as the node says)")
	outputFlag(cmd, &f.output)
}

// read reads the objects, and the world where a model is given; else nil.
func (f *podsFlags) read(cmd *cobra.Command) (*explain.Objects, *explain.World, error) {
	in, log := &inputs{stdin: cmd.InOrStdin(), ctx: cmd.Context()}, cmd.ErrOrStderr()
	if err := checkOutput(f.output); err != nil {
		return nil, nil, err
	}
	if f.slots < 0 || f.slots > maxSlots {
		return nil, nil, wrongUse("--slots %d: give the most tasks on a node, 1 to %d", f.slots, maxSlots)
	}
	from, err := kubectlCluster(f.cluster, f.kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	model, err := f.model(in, log)
	if err != nil {
		return nil, nil, err
	}
	kinds := append([]live.Kind{live.Nodes, live.Pods, live.PodEvents}, live.Gangs()...)
	data, name, err := in.cluster(from, f.context, kinds...)
	if err != nil {
		return nil, nil, err
	}
	o := formats.Options{Name: name, Strict: f.source.strict}
	objects, err := explain.Read(bytes.NewReader(data), o)
	if err != nil {
		return nil, nil, fmt.Errorf("--cluster: %w", err)
	}
	warn(log, "cluster", objects.Report)
	if model == nil {
		return objects, nil, nil
	}
	c, _, err := formats.ReadCluster(bytes.NewReader(data), o)
	if err != nil {
		return nil, nil, fmt.Errorf("--cluster: %w", err)
	}
	if len(c.Nodes) == 0 {
		return nil, nil, fmt.Errorf("--cluster: %s: no nodes, which --model and --samples judge; get nodes, pods and events together", name)
	}
	return objects, explain.NewWorld(c, model, f.slots), nil
}

// model is what is believed: --model, overridden by --samples; nil with neither.
func (f *podsFlags) model(in *inputs, log io.Writer) (interference.Model, error) {
	if f.source.model == "" && f.source.samples == "" {
		return nil, nil
	}
	s, err := f.source.load(in, log)
	if err != nil {
		return nil, err
	}
	if f.source.model == "" || f.source.samples == "" {
		return s.belief, nil
	}
	samples, err := f.source.readSamples(in, log)
	if err != nil {
		return nil, err
	}
	m, err := interference.Override(s.belief, samples)
	if err != nil {
		return nil, fmt.Errorf("--samples %s over --model %s: %w", f.source.samples, f.source.model, f.source.located(err))
	}
	return m, nil
}

// explainFlags are the flags of `explain pod` and `explain group`, as given.
type explainFlags struct {
	podsFlags
	namespace string
	node      string
	most      int
}

func explainCommand() *cobra.Command {
	c := group("explain", "Say why a pod or a group of pods is where it is, or still waits", explainNoun("pod"), explainNoun("group"))
	c.Use = "explain [KIND/NAME]"
	// kubectl names things by KIND/NAME and KIND NAME: the kind is the noun then.
	var f explainFlags
	nouns := c.RunE
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 2 && explain.IsKind(args[0]) {
			args = []string{args[0] + "/" + args[1]}
		}
		if len(args) != 1 || !strings.Contains(args[0], "/") {
			return nouns(cmd, args)
		}
		if kind, _, _ := strings.Cut(args[0], "/"); explain.Kind(kind) == "pod" {
			return f.run(cmd, "pod", args[0])
		}
		return f.run(cmd, "group", args[0])
	}
	f.register(c)
	f.registerName(c, "pod")
	c.FParseErrWhitelist.UnknownFlags = false
	c.Example = `  cotenant explain pod/web-7d9f-abc12 -n shop
  cotenant explain deployment/web -n shop
  kubectl get pods -n shop -o name | xargs -n 1 cotenant explain -n shop`
	return c
}

func (f *explainFlags) registerName(cmd *cobra.Command, noun string) {
	fl := cmd.Flags()
	fl.StringVarP(&f.namespace, "namespace", "n", "default", "`namespace` of it; NAME may be namespace/name, too, or kind/name as kubectl has it")
	if noun == "pod" {
		fl.StringVar(&f.node, "node", "", "of a pod: say of this `node` alone why it is not there; needs --model or --samples")
		fl.IntVar(&f.most, "alternatives", 5, "of a pod: `N` other nodes in the table, the best of them; all are in the other forms")
	}
}

func explainNoun(noun string) *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{Use: noun + " NAME", Aliases: []string{noun + "s"}, Args: cobra.ExactArgs(1)}
	if noun == "pod" {
		cmd.Aliases = append(cmd.Aliases, "po")
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return f.run(cmd, noun, args[0]) }
	f.register(cmd)
	f.registerName(cmd, noun)
	if noun == "pod" {
		cmd.Short = "Why a pod is here, why not there, why it still waits"
		cmd.Long = `Say why a pod is on its node, or why it has none: one dominant reason, then what
else is known. It reads what cotenant-scheduler recorded with the binding, what the
scheduler said of the pod, its events, and the other pods of its gang.

With --model or --samples it also says what other nodes would be worth, as they
are now: to the pod, and to all tasks together.`
		cmd.Example = `  cotenant explain pod web-7d9f-abc12 -n shop
  cotenant explain pod worker-3 --cluster admin.kubeconfig --samples samples.jsonl --node node-12
  kubectl get nodes,pods,events -A -o json | cotenant explain pod web-1 --cluster - -o json`
		return cmd
	}
	cmd.Short = "Why the pods of a gang, a Deployment or another owner are where they are, or wait"
	cmd.Long = `Say why the pods of a group are where they are, or why some of them wait: the
reason that holds the others up first. NAME is that of a gang (by the labels of
PodGroup, coscheduling, Volcano, Koordinator, Kueue, Kubeflow, JobSet, or
cotenant.dev/gang), of a Deployment, a ReplicaSet, a Job or another owner of pods,
or kind/name, as kubectl has it: deployment/web, sts/db, job/train.`
	cmd.Example = `  cotenant explain group bert-pretrain -n research
  cotenant explain group StatefulSet/db --cluster snapshot.json -o json`
	return cmd
}

func (f *explainFlags) run(cmd *cobra.Command, noun, name string) error {
	if f.node != "" && f.source.model == "" && f.source.samples == "" {
		return wrongUse("--node %s: give --model or --samples, which say what a node is worth", f.node)
	}
	if f.most < 0 {
		return wrongUse("--alternatives %d: negative", f.most)
	}
	if noun == "group" && f.node != "" {
		return wrongUse("--node %s: is said of pods alone", f.node)
	}
	objects, world, err := f.read(cmd)
	if err != nil {
		return err
	}
	if name, err = f.named(cmd, objects, noun, name); err != nil {
		return err
	}
	var a explain.Account
	if noun == "pod" {
		a, err = objects.Pod(f.namespace, name)
	} else {
		a, err = objects.Group(f.namespace, name)
	}
	if err != nil {
		return fmt.Errorf("--cluster: %w", err)
	}
	if d := a.Decision; world == nil && noun == "pod" && d != nil && d.Mode == "assist" && d.Fallback == "" {
		a.Details = append(a.Details, "what it gains there and costs its neighbours, and would elsewhere: --model or --samples tells")
	}
	if world != nil && noun == "pod" {
		if err := world.Alternatives(&a); err != nil {
			return fmt.Errorf("--cluster: %w", err)
		}
		if err := f.only(&a); err != nil {
			return err
		}
	}
	return f.write(cmd.OutOrStdout(), a)
}

// named takes the namespace out of a name, and the word of a pod, as kubectl get
// -o name prints it. What is in a namespace that is called as a kind takes -n.
func (f *explainFlags) named(cmd *cobra.Command, objects *explain.Objects, noun, name string) (string, error) {
	first, rest, ok := strings.Cut(name, "/")
	if kind := explain.Kind(first); ok && (kind == noun || noun == "group" && kind == "podgroup") {
		name = rest
		first, rest, ok = strings.Cut(name, "/")
	}
	if !ok || noun == "group" && objects.HasKind(first) {
		return name, nil
	}
	if cmd.Flags().Changed("namespace") && first != f.namespace {
		return "", wrongUse("%s %s and --namespace %s disagree; keep one", noun, name, f.namespace)
	}
	f.namespace = first
	return rest, nil
}

// only keeps the node of --node.
func (f *explainFlags) only(a *explain.Account) error {
	if f.node == "" {
		return nil
	}
	i := slices.IndexFunc(a.Alternatives, func(alt explain.Alternative) bool { return alt.Node == f.node })
	if i < 0 {
		return errors.New("--node " + f.node + ": there is no such node")
	}
	a.Alternatives = a.Alternatives[i : i+1]
	return nil
}

func (f *explainFlags) write(w io.Writer, a explain.Account) error {
	switch f.output {
	case "json":
		return writeJSON(w, []explain.Account{a})
	case "yaml":
		return writeYAML(w, []explain.Account{a})
	case "csv":
		return writeCSV(w, []string{"kind", "name", "state", "node", "reason", "words"}, [][]string{{a.Kind, a.Name, string(a.State), a.Node, a.Reason, a.Words}})
	}
	where := ""
	if a.Node != "" && a.State != explain.Ended {
		where = " on " + a.Node
	}
	of := ""
	if a.Workload != "" {
		of = " (" + a.Workload + ")"
	}
	fmt.Fprintf(w, "%s %s%s: %s%s\n%s\n", a.Kind, a.Name, of, a.State, where, a.Words)
	for _, text := range a.Details {
		fmt.Fprintf(w, "- %s\n", text)
	}
	return f.alternatives(w, a)
}

func (f *explainFlags) alternatives(w io.Writer, a explain.Account) error {
	if len(a.Alternatives) == 0 {
		return nil
	}
	var cells [][]string
	others, refused := 0, map[string]int{}
	for i := range a.Alternatives {
		alt := &a.Alternatives[i]
		if !alt.Here {
			others++
		}
		if !alt.Here && others > f.most && f.node == "" {
			if !alt.Fits {
				refused[alt.Node]++
			}
			continue
		}
		verdict := alt.Why
		switch {
		case alt.Here:
			verdict = "here"
		case verdict == "":
			verdict = "has room"
		}
		cells = append(cells, []string{alt.Node, orDash(alt.Performance, "%.3f"), orDash(alt.Gain, "%+.3f"), orNone(alt.Neighbours.Key()), verdict})
	}
	fmt.Fprintln(w)
	if err := writeTable(w, []string{"node", " performance", " all gain", "neighbours", "why"}, cells); err != nil {
		return err
	}
	if left := len(a.Alternatives) - len(cells); left > 0 {
		fmt.Fprintf(w, "%d more nodes, %d of them without room (-o json lists all)\n", left, len(refused))
	}
	return nil
}

func orDash(x *float64, form string) string {
	if x == nil {
		return "-"
	}
	return fmt.Sprintf(form, *x)
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
