package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/policy/policyfile"
	"github.com/assay-gpu/assay/coordinator/client"
	"github.com/assay-gpu/assay/coordinator/wire"
)

func (a *app) policyCmd() *cobra.Command {
	return a.groupCmd("policy", "Show and set thresholds, modes and budgets", `  assay policy show > policy.yaml
  assay policy diff --replay 7d policy.yaml
  assay policy apply policy.yaml --share 5%
  assay policy promote`,
		a.policyShowCmd(), a.policyDiffCmd(), a.policyApplyCmd(), a.policyRolloutCmd(), a.policyPromoteCmd(), a.policyWithdrawCmd())
}

func (a *app) policyShowCmd() *cobra.Command {
	var sku, node string
	return a.command(spec{
		use: "show", short: "Print the policy in force, in the form that apply reads", args: cobra.NoArgs,
		long: `With --node: as it holds for that node, overrides applied and shares settled. With --sku: what is built in of a product,
what most of its nodes show, and the overrides that fit it.`,
		example: `  assay policy show > policy.yaml
  assay policy show --node gpu003
  assay policy show --sku H100`,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&node, "node", "", "as it holds for this node")
			cmd.Flags().StringVar(&sku, "sku", "", "what is known of this product, as H100 or \"NVIDIA H100 80GB HBM3\"")
			cmd.MarkFlagsMutuallyExclusive("node", "sku")
			a.completeFlag(cmd, "node", offerNodes)
			a.completeFlag(cmd, "sku", offerOfNodes(func(n wire.Node) []string { return []string{n.Product} }))
		},
		run: func(ctx context.Context, c *client.Client, _ []string) error {
			switch {
			case node != "":
				return a.policyOfNode(ctx, c, node)
			case sku != "":
				return a.policyOfSKU(ctx, c, sku)
			}
			p, err := c.Policy(ctx)
			if err != nil {
				return err
			}
			if a.output == "json" {
				return a.emit(p, nil)
			}
			fmt.Fprintf(a.err, "policy version %d\n", p.Version)
			a.noteRollout(ctx, c)
			_, err = a.out.Write(policyfile.Print(p))
			return err
		},
	})
}

// policyOfNode prints the policy that a node's agent judges by, but for what it fills in of its product.
func (a *app) policyOfNode(ctx context.Context, c *client.Client, name string) error {
	n, err := c.Node(ctx, name)
	if err != nil {
		return err
	}
	p, err := c.Policy(ctx)
	if err != nil {
		return err
	}
	r, err := c.Rollout(ctx)
	if err != nil {
		return err
	}
	for _, canary := range r.Nodes {
		if canary == name {
			p = *r.Policy
		}
	}
	learned, err := c.Learned(ctx)
	if err != nil {
		return err
	}
	var set policy.Set
	for _, l := range learned {
		if l.SKU == n.Product {
			set = l.Set()
		}
	}
	var fits []string
	for _, o := range p.Overrides {
		alone := p
		alone.Overrides = []policy.Override{o}
		if t := policy.NewTable(alone); strings.HasPrefix(string(t.Match(name, n.Product)), "y") {
			fits = append(fits, o.Name)
		}
	}
	p = p.ForNode(name, policy.Hardware{SKU: n.Product, GPUs: n.GPUs, Accepted: n.GPUs > 0}, set)
	if a.output == "json" {
		return a.emit(p, nil)
	}
	fmt.Fprintf(a.err, "policy version %d as it holds for %s", p.Version, clean(name))
	if n.Product != "" {
		fmt.Fprintf(a.err, ", %d × %s", n.GPUs, clean(n.Product))
	}
	if len(fits) > 0 {
		fmt.Fprintf(a.err, "; overrides: %s", clean(strings.Join(fits, ", ")))
	}
	fmt.Fprintln(a.err)
	_, err = a.out.Write(policyfile.Print(p))
	return err
}

func (a *app) policyApplyCmd() *cobra.Command {
	var dry bool
	var share, reason string
	after := policy.Duration(0)
	return a.command(spec{
		use: "apply FILE", short: "Put a policy file in force", args: cobra.ExactArgs(1),
		long: `The file is checked whole first: every fault in it is listed with its line, and nothing is changed. What the file
does not set has its default. The lines that change are printed before they do.

With --share it holds on a share of the nodes first, drawn by their names; assay policy promote then puts it in force
everywhere, assay policy withdraw ends it. With --after it is promoted by itself.`,
		example: `  assay policy apply policy.yaml --dry-run
  assay policy apply policy.yaml --share 5% --reason 'fewer rows'
  assay policy apply policy.yaml`,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().BoolVar(&dry, "dry-run", false, "check the file and print what would change")
			cmd.Flags().StringVar(&share, "share", "", "put it in force on this `SHARE` of the nodes first, as 5%")
			cmd.Flags().StringVar(&reason, "reason", "", "with --share: why, for history")
			durationFlag(cmd, &after, "after", "with --share: promote it after this time, as 24h")
		},
		run: func(ctx context.Context, c *client.Client, args []string) error {
			var part policy.Share
			want, ferr := loadPolicy(args[0])
			var err error
			if share != "" {
				if err = part.UnmarshalText([]byte(share)); err != nil {
					err = &usageError{"--" + err.Error(), ""}
				}
			} else if after != 0 || reason != "" {
				err = &usageError{"--after and --reason go with --share", "without --share the policy is in force everywhere at once"}
			}
			if after < 0 {
				err = errors.Join(err, &usageError{fmt.Sprintf("--after %s: want a time to come", after), ""})
			}
			if err := errors.Join(err, ferr); err != nil {
				return err
			}
			have, err := c.Policy(ctx)
			if err != nil {
				return err
			}
			changes := policyfile.Diff(have, want)
			a.printChanges(a.err, changes)
			if len(changes) == 0 {
				fmt.Fprintf(a.err, "nothing changes; policy version %d stays in force\n", have.Version)
				a.noteRollout(ctx, c)
				return a.emit(have, func() error { return nil })
			}
			if dry {
				fmt.Fprintln(a.err, "dry run: nothing was changed")
				return nil
			}
			if part > 0 && part < 1 {
				r, err := c.RollOut(ctx, wire.RolloutAsk{Policy: want, Share: part, After: after, Reason: reason})
				if err != nil {
					return err
				}
				return a.emit(r, func() error { return a.showRollout(r) })
			}
			now, err := c.SetPolicy(ctx, want)
			if err != nil {
				return err
			}
			return a.emit(now, func() error { return a.policyDone(now) })
		},
	})
}

// noteRollout says on stderr that another policy is on its way, if one is.
func (a *app) noteRollout(ctx context.Context, c *client.Client) {
	if r, err := c.Rollout(ctx); err == nil && r.Policy != nil {
		fmt.Fprintf(a.err, "policy version %d is being rolled out: assay policy rollout\n", r.Policy.Version)
	}
}

// loadPolicy reads a policy file; every fault in it is in the error.
func loadPolicy(name string) (policy.Policy, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return policy.Policy{}, &usageError{err.Error(), ""}
	}
	if len(bytes.TrimSpace(data)) == 0 {
		// Cut short on its way, most likely; as a policy of defaults it would stop a fleet that acts.
		return policy.Policy{}, &usageError{name + ": the file is empty", "a policy that is all defaults says so: mode: observe"}
	}
	p, err := policyfile.Load(name, data)
	if err != nil {
		return policy.Policy{}, &usageError{err.Error(), "nothing was changed"}
	}
	return p, nil
}

func (a *app) policyDone(p policy.Policy) error {
	_, err := fmt.Fprintf(a.out, "policy version %d is in force, mode %s\n", p.Version, p.Mode)
	return err
}
