package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/assay-gpu/assay/agent"
	"github.com/assay-gpu/assay/agent/sim"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/cmd/internal/tab"
	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/kernels"
)

// completeFlags has the shell complete the values of flags, in c and all commands under it, by the flags' names and types.
// Nothing asks the driver or the network: what is offered is built in, or in files of the node.
func completeFlags(c *cobra.Command) {
	c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if offer := offerFor(c, f); offer != nil {
			c.RegisterFlagCompletionFunc(f.Name, func(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
				return tab.Rest(offer(), nil, word), cobra.ShellCompDirectiveNoFileComp
			})
		}
	})
	for _, sub := range c.Commands() {
		completeFlags(sub)
	}
}

// offerFor is what a flag's value may be, nil where a person makes it up or the shell knows best.
func offerFor(c *cobra.Command, f *pflag.Flag) func() []string {
	switch f.Name {
	case "gpu":
		return func() []string { return offerGPUs(c, f.Value.Type() == "int") }
	case "kernel", "first", "without":
		return offerKernels
	case "only":
		return catalog.IDs
	case "suite":
		if c.Name() == "check" {
			return func() []string { return []string{"quick", "standard"} }
		}
		return offerSuites
	case "class":
		return func() []string { return []string{"machine", "gate", "trigger"} }
	case "size":
		return func() []string { return []string{"full", "reduced"} }
	case "log-level":
		return func() []string { return []string{"debug", "info", "warn", "error"} }
	case "node":
		if c.Name() == "status" {
			return func() []string { return offerSockets(c) }
		}
		return none
	}
	if kind := f.Value.Type(); kind != "string" {
		return none
	}
	return nil
}

func none() []string { return nil }

// offerGPUs are the GPUs of a simulated node, or those that this node's agent last saw: by index, and by UUID where that
// will do.
func offerGPUs(c *cobra.Command, indexOnly bool) (words []string) {
	add := func(index int, uuid, name string) {
		words = append(words, fmt.Sprintf("%d\t%s %s", index, name, uuid))
		if !indexOnly {
			words = append(words, fmt.Sprintf("%s\t%s, index %d", uuid, name, index))
		}
	}
	if dir := flagValue(c, "sim") + flagValue(c, "dir"); dir != "" {
		s, err := sim.Read(dir)
		if err != nil {
			return nil
		}
		for _, g := range s.GPUs {
			add(g.Index, g.UUID, g.Name)
		}
		return words
	}
	for _, g := range agent.KnownGPUs(defaults().StateDir) {
		add(g.Index, g.UUID, g.Name)
	}
	return words
}

// flagValue is the value of a flag of a command, empty if it has no such flag.
func flagValue(c *cobra.Command, name string) string {
	if f := c.Flag(name); f != nil {
		return f.Value.String()
	}
	return ""
}

func offerKernels() (words []string) {
	for _, k := range kernels.All() {
		words = append(words, k.ID)
	}
	return words
}

func offerSuites() (words []string) {
	for _, s := range append(golden.Suites(), golden.CorpusSuite()) {
		words = append(words, s.Name+"\t"+s.Does)
	}
	return words
}

// offerSockets are the nodes whose agents have a socket on this host.
func offerSockets(c *cobra.Command) (words []string) {
	found, _ := filepath.Glob(filepath.Join(flagValue(c, "run-dir"), "*.sock")) // its only error is a bad pattern
	for _, f := range found {
		if name := strings.TrimSuffix(filepath.Base(f), ".sock"); name != "agent" && name != "assayd" {
			words = append(words, name)
		}
	}
	return words
}

// offerUserChecks are the site's own checks of the policy that a check by hand would take them from.
func offerUserChecks(f *configFlags, file string) []string {
	cfg, err := f.load()
	if err != nil {
		return nil
	}
	p, _, err := lastPolicy(cfg, file)
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(p.UserChecks))
}
