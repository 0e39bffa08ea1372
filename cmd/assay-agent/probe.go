package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/agent/probe/nvml"
)

// probeCommand is how the daemon starts the child that makes its driver calls: this program again.
func probeCommand(library string) []string {
	exe, err := os.Executable()
	if err != nil {
		exe = os.Args[0]
	}
	return []string{exe, "probe", "nvml", "--library", library}
}

// newProbe is the children's side. It is not for people.
func newProbe() *cobra.Command {
	c := &cobra.Command{Use: "probe", Short: "The daemon's own children", Hidden: true, Args: usageArgs(cobra.NoArgs)}
	var library string
	n := &cobra.Command{
		Use: "nvml", Short: "Read the driver on request", Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return nvml.Child(c.Context(), c.InOrStdin(), c.OutOrStdout(), library)
		},
	}
	n.Flags().StringVar(&library, "library", "libnvidia-ml.so.1", "NVML `LIBRARY` to load")
	c.AddCommand(n)
	return c
}
