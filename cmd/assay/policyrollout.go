package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/checks/hostlist"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/client"
	"github.com/assay-gpu/assay/coordinator/wire"
)

func (a *app) policyRolloutCmd() *cobra.Command {
	return a.command(spec{
		use: "rollout", short: "Show the policy that holds on a share of the nodes, and who has taken it", args: cobra.NoArgs,
		example: "  assay policy rollout",
		run: func(ctx context.Context, c *client.Client, _ []string) error {
			r, err := c.Rollout(ctx)
			if err != nil {
				return err
			}
			return a.emit(r, func() error { return a.showRollout(r) })
		},
	})
}

func (a *app) showRollout(r wire.Rollout) error {
	if r.Policy == nil {
		fmt.Fprintln(a.err, "no policy is being rolled out")
		return nil
	}
	then := "when promoted: assay policy promote"
	if !r.Promote.IsZero() {
		then = "at " + a.when(r.Promote) + ", or when promoted"
	}
	var open []string
	for _, n := range r.Nodes {
		if !slices.Contains(r.Taken, n) {
			open = append(open, n)
		}
	}
	return a.facts(
		[2]string{"Policy", fmt.Sprintf("version %d, mode %s", r.Policy.Version, r.Policy.Mode)},
		[2]string{"Holds on", fmt.Sprintf("%s (%v of all): %s", count(len(r.Nodes), "node"), float64(r.Share), clean(hostlist.Compress(r.Nodes)))},
		[2]string{"Not yet taken", clean(hostlist.Compress(open))},
		[2]string{"By", strings.TrimSuffix(fmt.Sprintf("%s at %s: %s", clean(r.By), a.when(r.Since), clean(r.Reason)), ": ")},
		[2]string{"Everywhere", then},
	)
}

func (a *app) policyPromoteCmd() *cobra.Command {
	return a.rolloutVerbCmd("promote", "Put the policy that is being rolled out in force everywhere", (*client.Client).Promote)
}

func (a *app) policyWithdrawCmd() *cobra.Command {
	return a.rolloutVerbCmd("withdraw", "End a rollout: the policy in force holds everywhere again", (*client.Client).Withdraw)
}

func (a *app) rolloutVerbCmd(verb, short string, do func(*client.Client, context.Context, wire.RolloutVerb) (policy.Policy, error)) *cobra.Command {
	var v wire.RolloutVerb
	return a.command(spec{
		use: verb, short: short, args: cobra.NoArgs, example: "  assay policy " + verb,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().IntVar(&v.Version, "version", 0, "the version that is meant; another one on its way is refused")
			cmd.Flags().StringVar(&v.Reason, "reason", "", "why, for history")
		},
		run: func(ctx context.Context, c *client.Client, _ []string) error {
			if v.Version == 0 {
				r, err := c.Rollout(ctx)
				if err != nil {
					return err
				}
				if r.Policy == nil {
					return &usageError{"no policy is being rolled out", "assay policy apply FILE --share 5% begins one"}
				}
				v.Version = r.Policy.Version
			}
			p, err := do(c, ctx, v)
			if err != nil {
				return err
			}
			return a.emit(p, func() error { return a.policyDone(p) })
		},
	})
}
