package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/coordinator/client"
	"github.com/assay-gpu/assay/scheduler/sim"
)

// simFlags is what assay sim is asked to do.
type simFlags struct {
	nodes, gpus, leaf                   int
	nodesFile                           string
	policies                            []string
	faults, fill                        bool
	gating                              string
	checkpoint, restart, plan, certLife time.Duration
	load, estimate                      float64
	seed                                uint64
	html, csv                           string
}

func (a *app) simCmd() *cobra.Command {
	var f simFlags
	cmd := a.command(spec{
		use: "sim TRACE", short: "Run the scheduler over a trace of jobs, on an accelerated clock", args: cobra.ExactArgs(1), local: true, follow: true,
		long: `The same queue, backfill and placement that schedule a fleet run over a trace, on simulated nodes. TRACE is a file,
plain or .gz, or - for standard input; its kind is told from its first line: the Alibaba 2023 task files, Acme's Seren
and Kalos, Helios, Philly's JSON, SWF with its 18 columns, or what assay sim generate writes. Jobs without GPUs are left
out, and so are those that never ran. A trace without times is placed in its order until nothing fits; --fill does
so with any.

With --faults nodes fail, are repaired and compute wrongly at the rates that large fleets have published; --gating both
shows what certificates change. Limits that a trace does not have are --estimate times what a job needs.`,
		example: `  assay sim openb_pod_list_default.csv.gz --nodes-file openb_node_list_gpu_node.csv --html report.html
  assay sim trace_kalos.csv --nodes 302 --policy backfill,easy,fifo
  assay sim gangs.csv --nodes 64 --faults --gating both --checkpoint 30m
  assay sim generate --profile kalos --jobs 1000 --nodes 64 > gangs.csv`,
		flags: func(cmd *cobra.Command) {
			fl := cmd.Flags()
			fl.IntVar(&f.nodes, "nodes", 64, "nodes of the fleet")
			fl.IntVar(&f.gpus, "gpus", 8, "GPUs of each node")
			fl.StringVar(&f.nodesFile, "nodes-file", "", "an Alibaba 2023 node file instead of --nodes and --gpus")
			fl.IntVar(&f.leaf, "leaf", 16, "nodes under one leaf switch")
			fl.StringSliceVar(&f.policies, "policy", []string{"backfill"}, "backfill (conservative), easy, fifo; several to compare them")
			a.completeFlag(cmd, "policy", fixed("backfill", "easy", "fifo"))
			a.completeFlag(cmd, "gating", fixed("with", "without", "both"))
			fl.BoolVar(&f.faults, "faults", false, "nodes fail, are repaired, and compute wrongly")
			fl.StringVar(&f.gating, "gating", "with", "with faults: with certificates, without, or both to compare")
			fl.DurationVar(&f.checkpoint, "checkpoint", time.Hour, "time between checkpoints; 0: an interrupted job begins anew")
			fl.DurationVar(&f.restart, "restart", 10*time.Minute, "what an interrupted job needs to come back")
			fl.DurationVar(&f.plan, "plan", 5*time.Minute, "time between two plans of the whole queue")
			fl.DurationVar(&f.certLife, "certificate", 7*24*time.Hour, "how long a certificate lasts")
			fl.Float64Var(&f.load, "load", 1, "jobs come so many times as fast")
			fl.Float64Var(&f.estimate, "estimate", 2, "where the trace has no limits: how many times what they need users ask")
			fl.Uint64Var(&f.seed, "seed", 1, "seed of what happens by chance")
			fl.BoolVar(&f.fill, "fill", false, "place the jobs in their order until nothing fits; none ends")
			fl.StringVar(&f.html, "html", "", "write a report with charts to this file")
			fl.StringVar(&f.csv, "csv", "", "write the figures to this file")
		},
		run: func(ctx context.Context, _ *client.Client, args []string) error {
			return a.simulate(ctx, args[0], f)
		},
	})
	cmd.AddCommand(a.simGenerateCmd())
	return cmd
}

func (a *app) simGenerateCmd() *cobra.Command {
	var profile string
	var jobs, nodes int
	var load float64
	var seed uint64
	return a.command(spec{
		use: "generate", short: "Make a trace of gangs like those of a published cluster", args: cobra.NoArgs, local: true,
		long: `Run times and sizes are drawn so that their published means, medians and maxima hold: seren, kalos, philly, helios, pai.
Nodes have eight GPUs. The same seed gives the same trace.`,
		example: `  assay sim generate --profile seren --jobs 5000 --nodes 280 --load 0.9 > seren.csv`,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&profile, "profile", "kalos", "seren, kalos, philly, helios or pai")
			a.completeFlag(cmd, "profile", fixed("seren", "kalos", "philly", "helios", "pai"))
			cmd.Flags().IntVar(&jobs, "jobs", 1000, "how many jobs")
			cmd.Flags().IntVar(&nodes, "nodes", 64, "for a fleet of so many nodes")
			cmd.Flags().Float64Var(&load, "load", 0.9, "GPU time asked, over what there is")
			cmd.Flags().Uint64Var(&seed, "seed", 1, "seed")
		},
		run: func(context.Context, *client.Client, []string) error {
			p, err := sim.FindProfile(profile)
			if err != nil {
				return &usageError{err.Error(), ""}
			}
			if jobs < 1 || nodes < 1 || load <= 0 {
				return &usageError{fmt.Sprintf("--jobs %d, --nodes %d, --load %v: want more than nothing of each", jobs, nodes, load), ""}
			}
			return sim.Generate(p, jobs, nodes*8, load, seed).Write(a.out)
		},
	})
}

// readTrace reads a trace from a file, plain or gzip, or from standard input.
func (a *app) readTrace(name string) (*sim.Trace, error) {
	var t *sim.Trace
	err := a.readFile(name, func(r io.Reader) (err error) { t, err = sim.Read(r); return err })
	return t, err
}

func (a *app) readFile(name string, read func(io.Reader) error) error {
	in := a.in
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return &usageError{err.Error(), "name a file, or - for standard input"}
		}
		defer f.Close()
		in = f
	}
	if strings.HasSuffix(name, ".gz") {
		z, err := gzip.NewReader(in)
		if err != nil {
			return &usageError{fmt.Sprintf("%s: %v", name, err), "is it a gzip file?"}
		}
		in = z
	}
	if err := read(in); err != nil {
		return &usageError{fmt.Sprintf("%s: %v", name, err), "assay sim --help names the traces that can be read"}
	}
	return nil
}

// runs are the simulations that the flags ask for.
func (f *simFlags) runs() ([]sim.Options, error) {
	nodes := sim.Uniform(max(0, f.nodes), f.gpus)
	if f.nodes < 1 || f.gpus < 1 || f.gpus > 32 || f.leaf < 1 || f.load <= 0 || f.estimate < 1 || f.plan < time.Second || f.certLife < time.Hour || f.checkpoint < 0 || f.restart < 0 {
		return nil, &usageError{"the fleet or its rules cannot be: want a node, 1 to 32 GPUs, a leaf of a node, a load above 0, an estimate of 1 or more, a plan every second at most, a certificate of an hour", ""}
	}
	var gatings []bool
	switch f.gating {
	case "with":
		gatings = []bool{true}
	case "without":
		gatings = []bool{false}
	case "both":
		gatings = []bool{false, true}
	default:
		return nil, &usageError{fmt.Sprintf("--gating %q: want with, without or both", f.gating), ""}
	}
	if !f.faults {
		gatings = []bool{false}
	}
	var all []sim.Options
	for _, p := range f.policies {
		for _, g := range gatings {
			o := sim.DefaultOptions(nodes)
			o.Policy, o.Leaf, o.Load, o.Estimate, o.Seed = p, f.leaf, f.load, f.estimate, f.seed
			o.Checkpoint, o.Restart, o.Plan, o.CertLife = int64(f.checkpoint.Seconds()), int64(f.restart.Seconds()), int64(f.plan.Seconds()), int64(f.certLife.Seconds())
			if f.faults {
				o.Faults = sim.DefaultFaults()
				o.Faults.Gating = g
			}
			all = append(all, o)
		}
	}
	return all, nil
}

func (a *app) simulate(ctx context.Context, name string, f simFlags) error {
	options, err := f.runs()
	if err != nil {
		return err
	}
	if f.nodesFile != "" {
		var nodes []sim.Node
		if err := a.readFile(f.nodesFile, func(r io.Reader) (err error) { nodes, err = sim.ReadNodes(r); return err }); err != nil {
			return err
		}
		for i := range options {
			options[i].Nodes = nodes
		}
	}
	trace, err := a.readTrace(name)
	if err != nil {
		return err
	}
	if trace.FillOrder || f.fill {
		return a.fill(trace, name, options[0], f)
	}
	var results []*sim.Result
	for _, o := range options {
		bar := a.progress(o.Policy)
		o.Progress, o.Stop = bar.show, ctx.Err
		x, err := sim.Run(trace, o)
		bar.clear()
		if err != nil {
			return fmt.Errorf("simulate %s, %s: %w", name, o.Policy, err)
		}
		results = append(results, x)
	}
	if err := writeFile(f.html, func(w io.Writer) error { return sim.WriteHTML(w, filepath.Base(name), results) }); err != nil {
		return err
	}
	if err := writeFile(f.csv, func(w io.Writer) error { return sim.WriteCSV(w, results) }); err != nil {
		return err
	}
	return a.emit(results, func() error { return sim.WriteTable(a.out, results) })
}

func (a *app) fill(trace *sim.Trace, name string, o sim.Options, f simFlags) error {
	if f.csv != "" {
		return &usageError{"--csv: filling a fleet has no figures by time; -o json has its steps", ""}
	}
	bar := a.progress("fill")
	o.Progress = bar.show
	x, err := sim.Fill(trace, o)
	bar.clear()
	if err != nil {
		return fmt.Errorf("fill with %s: %w", name, err)
	}
	if err := writeFile(f.html, func(w io.Writer) error { return sim.WriteFillingHTML(w, filepath.Base(name), x) }); err != nil {
		return err
	}
	return a.emit(x, func() error { return sim.WriteFilling(a.out, x) })
}

// writeFile writes a file whole, or leaves what was there; no name, no file.
func writeFile(name string, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
		return &usageError{err.Error(), ""}
	}
	return nil
}
