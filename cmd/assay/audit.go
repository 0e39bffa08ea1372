package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/coordinator/client"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// auditReach is how many history entries are looked through: all that one answer gives.
const auditReach = 10_000

// byItself are those who enter history without being people.
var byItself = []string{"", "assay", "agent", "slurm"}

func (a *app) auditCmd() *cobra.Command {
	var by string
	var hosts []string
	cmd := a.command(spec{
		use: "audit", short: "List what people ordered: who, when, on what, and why", args: cobra.NoArgs,
		long: fmt.Sprintf(`Every order that changed something is in history with its author: on nodes and cases, tickets, the guard, policy, keys,
tokens and operators, and calls refused for want of a role. Looks through the newest %d entries of history.`, auditReach),
		example: "  assay audit\n  assay audit verify\n  assay audit --by alice -o json\n  assay audit --node 'gpu[001-008]'",
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&by, "by", "", "only of this person")
			cmd.Flags().StringArrayVar(&hosts, "node", nil, "only on these nodes (hostlist)")
			a.completeFlag(cmd, "node", offerNodes)
		},
		run: func(ctx context.Context, c *client.Client, _ []string) error {
			list, _, err := nodeNames(hosts)
			if err != nil {
				return err
			}
			last := auditReach
			orders := []wire.HistoryEntry{}
			for e, err := range c.Events(ctx, client.EventsAsk{Last: &last, Nodes: list}) {
				if err != nil {
					return err
				}
				if !slices.Contains(byItself, e.By) && (by == "" || e.By == by) {
					orders = append(orders, e)
				}
			}
			return a.emit(orders, func() error {
				if len(orders) == 0 {
					fmt.Fprintln(a.err, "nobody ordered anything")
					return nil
				}
				for _, e := range orders {
					fmt.Fprintln(a.out, a.historyLine(e, true))
				}
				return nil
			})
		},
	})
	cmd.AddCommand(a.auditVerifyCmd())
	return cmd
}
