package main

import (
	"bytes"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/sim/compare"
)

// worldFlags say where simulated jobs run, and how fast.
type worldFlags struct {
	throughputs string
	contention  string
	nodes       string
	share       int
}

// shippedWorld is what --contention means without a file.
const shippedWorld = "the one that ships"

func (f *worldFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.throughputs, "throughputs", "", "`FILE` of speeds alone and in pairs: Gavel's throughputs, or samples of ours; gzip too")
	fl.StringVar(&f.contention, "contention", "", "instead: servers by a model of contention, with the constants of `FILE` or those that ship")
	fl.Lookup("contention").NoOptDefVal = shippedWorld
	fl.StringVar(&f.nodes, "nodes", "", "`[class:]N[xDEVICES][,...]`, such as v100:16, v100:8,k80:8 or v100:4x4")
	fl.IntVar(&f.share, "share", 2, "most jobs on a device: 1 or 2 (--throughputs only)")
}

// load makes the world, and counts what its files had too much.
func (f *worldFlags) load(in *inputs, log io.Writer, strict bool, exclude []string) (*compare.World, error) {
	switch {
	case f.throughputs == "" && f.contention == "":
		return nil, wrongUse("how fast do jobs run? give --throughputs FILE or --contention")
	case f.throughputs != "" && f.contention != "":
		return nil, wrongUse("--throughputs and --contention are both given; keep one")
	case f.contention != "":
		return nil, wrongUse("--contention: not yet")
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
	return joined(samples), nil
}
