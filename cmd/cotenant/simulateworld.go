package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/sim/compare"
	"github.com/cotenant/cotenant/sim/contention"
)

// worldFlags say where simulated jobs run, and how fast.
type worldFlags struct {
	throughputs string
	contention  string
	nodes       string
	share       int
	perRack     int
	strength    float64
	profile     int
	noise       float64
	profileSeed uint64
}

// shippedWorld is what --contention means without a file.
const shippedWorld = "the one that ships"

func (f *worldFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.throughputs, "throughputs", "", "`FILE` of speeds alone and in pairs: Gavel's throughputs, or samples of ours; gzip too")
	fl.StringVar(&f.contention, "contention", "", "instead: servers by a model of contention, with the constants of `FILE` or those that ship")
	fl.Lookup("contention").NoOptDefVal = shippedWorld
	fl.StringVar(&f.nodes, "nodes", "", "`[class:]N[xDEVICES][,...]`, such as v100:16, v100:8,k80:8 or v100:4x4")
	fl.IntVar(&f.share, "share", 2, "most jobs on a device: 1 or 2 (--throughputs)")
	fl.IntVar(&f.perRack, "rack-size", 0, "`N` servers a rack (--contention; default: one rack)")
	fl.Float64Var(&f.strength, "strength", 1, "`factor` on what neighbours demand: 0.7 is weaker contention, 1.3 stronger (--contention)")
	fl.IntVar(&f.profile, "profile", 500, "`N` co-locations that a profiler measured beforehand (--contention)")
	fl.Float64Var(&f.noise, "noise", 0.03, "relative standard `deviation` of what it measured (--contention)")
	fl.Uint64Var(&f.profileSeed, "profile-seed", 1, "`seed` of what it measured (--contention)")
}

// load makes the world, and counts what its files had too much.
func (f *worldFlags) load(in *inputs, log io.Writer, strict bool, exclude []string) (*compare.World, error) {
	switch {
	case f.throughputs == "" && f.contention == "":
		return nil, wrongUse("how fast do jobs run? give --throughputs FILE or --contention")
	case f.throughputs != "" && f.contention != "":
		return nil, wrongUse("--throughputs and --contention are both given; keep one")
	case f.contention != "":
		return f.loadContention(in)
	case f.nodes == "":
		return nil, wrongUse("where do jobs run? give --nodes CLASS:N, such as v100:16")
	}
	samples, err := readThroughputs(in, log, f.throughputs, strict, exclude)
	if err != nil {
		return nil, err
	}
	nodes, err := parseNodes(f.nodes, 0)
	if err != nil {
		return nil, err
	}
	w, err := compare.Measured(samples, nodes, f.share)
	if err != nil {
		return nil, fmt.Errorf("--throughputs %s: %w", f.throughputs, err)
	}
	if w.Unmeasured > 0 {
		fmt.Fprintf(log, "--throughputs: %s: pairs that nobody measured: %d; taken not to fit on a device together\n", f.throughputs, w.Unmeasured)
	}
	return w, nil
}

func readThroughputs(in *inputs, log io.Writer, path string, strict bool, exclude []string) ([]history.Sample, error) {
	data, err := in.read("throughputs", path)
	if err != nil {
		return nil, err
	}
	samples, report, err := formats.ReadSamples(bytes.NewReader(data), formats.Options{Name: path, Strict: strict, Exclude: exclude})
	warn(log, "throughputs", report)
	if err != nil {
		return nil, fmt.Errorf("--throughputs: %w", err)
	}
	return history.Joined(samples), nil
}

// testbed is the number of servers of the paper's.
const testbed = "6"

func (f *worldFlags) loadContention(in *inputs) (*compare.World, error) {
	c := compare.ContentionConfig{
		Strength: f.strength, PerRack: f.perRack,
		Profile: contention.SamplesConfig{Colocations: f.profile, Seed: f.profileSeed, Noise: f.noise},
	}
	switch {
	case !(f.strength > 0 && f.strength <= 100):
		return nil, wrongUse("--strength %g: give a factor above 0; 1 is the world as it is", f.strength)
	case f.profile < 1 || f.profile > 1_000_000:
		return nil, wrongUse("--profile %d: give 1 to 1000000 co-locations", f.profile)
	case !(f.noise >= 0 && f.noise <= 1):
		return nil, wrongUse("--noise %g: give a relative standard deviation, 0 to 1", f.noise)
	case f.perRack < 0:
		return nil, wrongUse("--rack-size %d: negative", f.perRack)
	}
	nodes, err := parseNodes(cmp.Or(f.nodes, testbed), 0)
	if err != nil {
		return nil, err
	}
	if nodes[0].Class != "" || nodes[len(nodes)-1].Class != "" || len(nodes[0].Devices) != 1 {
		return nil, wrongUse("--nodes %s: the servers of --contention are of one kind; give their number", f.nodes)
	}
	c.Servers = len(nodes)
	if f.contention != shippedWorld {
		data, err := in.text("contention", f.contention)
		if err != nil {
			return nil, err
		}
		constants, err := readConstants(data)
		if err != nil {
			return nil, fmt.Errorf("--contention %s: %w", f.contention, err)
		}
		c.Constants = &constants
	}
	w, err := compare.Contention(c)
	if err != nil {
		return nil, fmt.Errorf("--contention: %w", err)
	}
	return w, nil
}

// readConstants reads them in JSON or YAML.
func readConstants(data []byte) (contention.Constants, error) {
	text, err := yaml.YAMLToJSON(untab(data))
	if err != nil {
		return contention.Constants{}, err
	}
	return contention.Parse(text)
}
