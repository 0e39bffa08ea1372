package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/agent/launch"
	"github.com/assay-gpu/assay/agent/probe/child"
	"github.com/assay-gpu/assay/agent/probe/dcgm"
	"github.com/assay-gpu/assay/agent/probe/nvml"
)

// probeCommand is how the daemon starts the child that makes its driver calls: this program again.
func probeCommand(library string) []string {
	return selfCommand("probe", "nvml", "--library", library)
}

// selfCommand is this program with other arguments.
func selfCommand(args ...string) []string {
	exe, err := os.Executable()
	if err != nil {
		exe = os.Args[0]
	}
	return append([]string{exe}, args...)
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
	l := &cobra.Command{
		Use: "limits MEMORY FILES FILESIZE CPU -- COMMAND…", Short: "Set limits and become another program", DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error { return child.Become(args) },
	}
	r := &cobra.Command{
		Use: "rank WHAT", Short: "Start one rank of a job and hold all that it starts", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error { return launch.Keep(args[0]) },
	}
	var q dcgm.Question
	d := &cobra.Command{
		Use: "dcgm", Short: "Ask DCGM's health watches once", Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return dcgm.Child(c.OutOrStdout(), q) },
	}
	d.Flags().StringVar(&q.Library, "library", "libdcgm.so.4", "DCGM `LIBRARY` to load")
	d.Flags().StringVar(&q.Address, "address", "", "the host engine's `ADDRESS` (default: one in this process)")
	d.Flags().DurationVar(&q.Every, "every", time.Minute, "time between two looks")
	c.AddCommand(n, l, r, d, newGoldenChild())
	return c
}
