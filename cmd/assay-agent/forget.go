package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/agent/history"
)

func newForget() *cobra.Command {
	c := &cobra.Command{
		Use: "forget NAME", Short: "Have the agent forget what it remembers of a part of the node", Args: usageArgs(cobra.ExactArgs(1)),
		Long: "The agent remembers which ports have been up on this node, which file systems could be written and how much memory there was,\n" +
			"and holds the node to it; within a boot it also remembers links that did not stay up. Forget a part after it was repaired\n" +
			"without a boot, or taken out on purpose: a port (mlx5_3/1, eth0), a mount point, memory, cpus, disks. The daemon takes it up with\n" +
			"its next look.",
		Example: "  assay-agent forget mlx5_3/1\n  assay-agent forget memory",
	}
	f := hardwareFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		cfg, err := f.load()
		if err != nil {
			return err
		}
		var unknown *history.UnknownPartError
		if err := history.Forget(cfg.StateDir, args[0]); errors.As(err, &unknown) {
			return usage(err)
		} else if err != nil {
			return err
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "%s is forgotten with the next look\n", args[0])
		return err
	}
	return c
}
