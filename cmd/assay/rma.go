package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/coordinator/client"
	"github.com/assay-gpu/assay/coordinator/wire"
)

func (a *app) rmaCmd() *cobra.Command {
	return a.groupCmd("rma", "Send hardware back to the vendor and take it in again",
		"  assay rma open Q-7F3K --reason 'no spare rows left, ticket 4711'\n  assay rma update gpu003 --outcome 'board replaced'",
		a.rmaListCmd(), a.rmaOpenCmd(), a.rmaUpdateCmd())
}

func (a *app) rmaListCmd() *cobra.Command {
	return a.command(spec{
		use: "list", short: "List nodes whose hardware is with the vendor", args: cobra.NoArgs, example: "  assay rma list",
		run: func(ctx context.Context, c *client.Client, _ []string) error {
			all, err := c.Nodes(ctx, "")
			if err != nil {
				return err
			}
			away := []wire.Node{}
			for _, n := range all {
				if n.State == "rma" {
					away = append(away, n)
				}
			}
			return a.emit(away, func() error { return a.nodeRows(away) })
		},
	})
}

func (a *app) rmaOpenCmd() *cobra.Command {
	var v wire.NodeVerb
	return a.command(spec{
		use: "open CASE|NODE --reason TEXT", short: "Say that the suspected part of a node goes back to the vendor", args: cobra.ExactArgs(1),
		long: `The node stays out of service until a new serial is seen in it, or until assay rma update says how it ended. Then the
intake screen decides.`,
		example: "  assay rma open Q-7F3K --reason 'no spare rows left, ticket 4711'",
		flags:   func(cmd *cobra.Command) { reasonFlag(cmd, &v.Reason) },
		run: func(ctx context.Context, c *client.Client, args []string) error {
			node := args[0]
			if strings.HasPrefix(node, "Q-") {
				k, err := c.Case(ctx, node)
				if err != nil {
					return err
				}
				if !k.Closed.IsZero() {
					return &refusal{fmt.Sprintf("case %s is closed: %s", k.ID, k.Outcome), "name the node, if it has an open case: " + k.Node}
				}
				node = k.Node
			}
			return a.orderAll([]string{node}, func(n string) (wire.Node, error) { return c.OpenRMA(ctx, n, v) })
		},
	})
}

func (a *app) rmaUpdateCmd() *cobra.Command {
	var v wire.NodeVerb
	return a.command(spec{
		use: "update NODE --outcome TEXT", short: "Say that a part is back, and how it ended", args: cobra.ExactArgs(1),
		long:    "The intake screen then decides. A part with a new serial is noticed without this; the same part back needs it.",
		example: "  assay rma update gpu003 --outcome 'same board back, vendor found nothing'",
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&v.Reason, "outcome", "", "what the vendor did (required)")
			cmd.MarkFlagRequired("outcome")
		},
		run: func(ctx context.Context, c *client.Client, args []string) error {
			return a.orderAll(args, func(n string) (wire.Node, error) { return c.Repaired(ctx, n, v) })
		},
	})
}
