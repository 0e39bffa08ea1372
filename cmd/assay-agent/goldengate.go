package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/golden/campaign"
	"github.com/assay-gpu/assay/golden/netlist"
)

// gateFlags are those of campaign --class gate.
type gateFlags struct {
	netlists []string
	lanes    []int
	most     int
	prove    int
}

func (f *gateFlags) models() ([]netlist.Model, error) {
	if len(f.netlists) == 0 {
		return netlist.Models(), nil
	}
	var out []netlist.Model
	var errs []error
	for _, name := range f.netlists {
		m, ok := netlist.Lookup(name)
		if !ok {
			errs = append(errs, fmt.Errorf("--netlist %q: want one of mad32, lop3, shift, address64, fma16, fma32, fma64, dot16", name))
		}
		out = append(out, m)
	}
	return out, errors.Join(errs...)
}

// runGate grades the netlists on what the suite's kernels compute.
func runGate(c *cobra.Command, f gateFlags, o campaign.Options, asJSON bool) error {
	models, err := f.models()
	if err != nil {
		return usage(err)
	}
	for _, l := range f.lanes {
		if l < 0 || l > 127 {
			return usage(fmt.Errorf("--lane %d: want 0 to 127: 32 · partition + lane", l))
		}
	}
	if f.prove > 0 {
		return proveGates(c, models, f.prove)
	}
	r, err := campaign.New(o)
	if err != nil {
		return err
	}
	var lines []campaign.GateLine
	for _, at := range f.lanes {
		t, err := r.Trace(at/32, at%32, f.most, func(name string) {
			fmt.Fprintf(c.ErrOrStderr(), "partition %d lane %d: trace of %s\n", at/32, at%32, name)
		})
		if err != nil {
			return err
		}
		some := make([]campaign.GateLine, len(models))
		each(len(models), func(i int) {
			some[i] = t.Grade(models[i])
			fmt.Fprintf(c.ErrOrStderr(), "partition %d lane %d: %s graded\n", at/32, at%32, models[i].Name)
		})
		lines = append(lines, some...)
	}
	if asJSON {
		enc := json.NewEncoder(c.OutOrStdout())
		for _, l := range lines {
			if err := enc.Encode(l); err != nil {
				return err
			}
		}
		return nil
	}
	return printGate(c.OutOrStdout(), campaign.Worst(lines))
}

func printGate(w io.Writer, lines []campaign.GateLine) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "NETLIST\tGATES\tLANE\tOPERATIONS\tKIND\tCOUNTED\tSHOWN\tSHARE\t95 % FROM\tTO\tGOAL\t\tOF ALL\tREDUNDANT\tUNSEEN\t")
	for _, l := range lines {
		for _, k := range []struct {
			name string
			s    campaign.GateShare
			goal float64
		}{{"stuck-at", l.Stuck, campaign.StuckGoal}, {"transition", l.Late, campaign.LateGoal}} {
			met := "met"
			switch p := k.s.Counted; {
			case p.Of == 0:
				met = "no workload uses it"
			case p.Rate < k.goal:
				met = "NOT met"
			}
			fmt.Fprintf(tw, "%s\t%d\t%d.%d\t%d\t%s\t%d\t%d\t%.4f\t%.4f\t%.4f\t%.3f\t%s\t%.4f\t%d\t%d\t\n", l.Netlist, l.Gates, l.Partition, l.Lane, l.Operations, k.name,
				k.s.Counted.Of, k.s.Counted.Found, k.s.Counted.Rate, k.s.Counted.Low, k.s.Counted.High, k.goal, met, k.s.All.Rate, k.s.Redundant, len(k.s.Unseen))
		}
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "\nCounted: faults that change a result of at least one of ten workloads. Of all: among all faults but those proven redundant.\n"+
		"Unseen: neither the suite nor a workload shows them, and no proof says that nothing can. --json lists each.")
	if err != nil {
		return err
	}
	for _, l := range lines {
		names := make([]string, 0, len(l.Only))
		for id := range l.Only {
			names = append(names, id)
		}
		slices.Sort(names)
		for _, id := range names {
			if _, err := fmt.Fprintf(w, "%s: %d faults are shown by %s alone\n", l.Netlist, l.Only[id], id); err != nil {
				return err
			}
		}
	}
	return nil
}

func proveGates(c *cobra.Command, models []netlist.Model, count int) error {
	errs := make([]error, len(models))
	each(len(models), func(i int) {
		if errs[i] = models[i].Prove(count, 1); errs[i] == nil {
			fmt.Fprintf(c.OutOrStdout(), "%s: %d operations, all as the reference gives them\n", models[i].Name, count)
		}
	})
	return errors.Join(errs...)
}

// each runs f for 0 to n-1, on all cores.
func each(n int, f func(i int)) {
	next := make(chan int)
	var wg sync.WaitGroup
	for range runtime.NumCPU() {
		wg.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}
