package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/agent/probe/nvml"
	"github.com/assay-gpu/assay/agent/sim"
)

// A callLog is what the simulated library counted.
type callLog struct {
	GPUs  map[int]map[string]int `json:"gpus"` // calls on each GPU, by function
	Node  map[string]int         `json:"node"` // calls on none
	Noisy map[string]int         `json:"noisy"`
	Most  int                    `json:"most_per_gpu"`
}

func simCalls(dir *string) *cobra.Command {
	var asJSON, reset bool
	most := 0
	c := simDo(dir, "calls", "Print how often each NVML function was called, and on which GPU", cobra.NoArgs, func(c *cobra.Command, _ []string) error {
		s, err := sim.Read(*dir)
		if err != nil {
			return err
		}
		l := readCalls(*dir, len(s.GPUs))
		if reset {
			if err := sim.ResetCalls(*dir); err != nil {
				return err
			}
		}
		if asJSON {
			err = json.NewEncoder(c.OutOrStdout()).Encode(l)
		} else {
			err = l.print(c.OutOrStdout())
		}
		switch {
		case err != nil:
			return err
		case len(l.Noisy) > 0:
			return &exitError{exitFault, fmt.Errorf("%d functions were called that make the driver log", len(l.Noisy))}
		case most > 0 && l.Most > most:
			return &exitError{exitFault, fmt.Errorf("%d calls on one GPU, more than %d", l.Most, most)}
		}
		return nil
	})
	c.Long = "Calls prints what the simulated library counted since the node was made, or since --reset: how often each function was\n" +
		"called on each GPU, and whether any was among those that make the driver write to the kernel log.\n" +
		"Exit status: 1 when one was, or when a GPU was asked more often than --most allows."
	c.Example = "  assay-agent sim init --dir /tmp/gpu001\n  assay-agent check --sim /tmp/gpu001\n  assay-agent sim calls --dir /tmp/gpu001 --most 40"
	c.Flags().BoolVar(&asJSON, "json", false, "print one object, as JSON")
	c.Flags().BoolVar(&reset, "reset", false, "count anew from here on")
	c.Flags().IntVar(&most, "most", 0, "how many calls `N` on one GPU are allowed; 0: any number")
	return c
}

func readCalls(dir string, gpus int) callLog {
	l := callLog{GPUs: map[int]map[string]int{}, Node: sim.CallsOn(dir, -1), Noisy: map[string]int{}}
	for i := range gpus {
		l.GPUs[i] = sim.CallsOn(dir, i)
		n := 0
		for _, calls := range l.GPUs[i] {
			n += calls
		}
		l.Most = max(l.Most, n)
	}
	all := sim.Calls(dir)
	for _, f := range nvml.AllNoisy {
		if n := all[f.Function]; n > 0 {
			l.Noisy[f.Function] = n
		}
	}
	return l
}

// print writes a function a line: how often it was called on the GPU where it was called most, and in all.
func (l callLog) print(w io.Writer) error {
	mostOn, total := map[string]int{}, maps.Clone(l.Node)
	if total == nil {
		total = map[string]int{}
	}
	for _, calls := range l.GPUs {
		for name, n := range calls {
			mostOn[name] = max(mostOn[name], n)
			total[name] += n
		}
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "function\tmost on one GPU\tin all")
	for _, name := range slices.Sorted(maps.Keys(total)) {
		fmt.Fprintf(tw, "%s\t%d\t%d\n", name, mostOn[name], total[name])
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, f := range nvml.AllNoisy {
		if n := l.Noisy[f.Function]; n > 0 {
			if _, err := fmt.Fprintf(w, "%s makes the driver log: %s\n", f.Function, f.Why); err != nil {
				return err
			}
		}
	}
	_, err := fmt.Fprintf(w, "%d GPUs: %d calls at most on one, %d of the %d functions that make the driver log\n", len(l.GPUs), l.Most, len(l.Noisy), len(nvml.AllNoisy))
	return err
}
