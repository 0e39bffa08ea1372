package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/checks/hostlist"
	"github.com/assay-gpu/assay/coordinator/certificate"
	"github.com/assay-gpu/assay/coordinator/client"
	"github.com/assay-gpu/assay/coordinator/wire"
)

func (a *app) guardCmd() *cobra.Command {
	return a.groupCmd("guard", "Show and stop automatic action", "  assay guard show\n  assay guard freeze --reason 'bad driver rollout'",
		a.guardShowCmd(),
		a.guardVerbCmd("freeze", "Stop all automatic action", "Nothing is drained, reset, rebooted or refused by assay until thawed, but a job that needs a GPU that is lost, which could not run. Hard faults still revoke certificates.",
			"  assay guard freeze --reason 'bad driver rollout'", freeze),
		a.guardVerbCmd("thaw", "Let automatic action go on", "Steps held back meanwhile follow within the budgets.",
			"  assay guard thaw --reason 'rollout undone'", (*client.Client).Thaw),
		a.guardResetCmd())
}

func (a *app) guardResetCmd() *cobra.Command {
	var v wire.GuardVerb
	return a.command(spec{
		use: "reset --reason TEXT", short: "Let assay act again after a restore from a backup", args: cobra.NoArgs,
		long: `After assayd restore the policy observes: nothing is drained, reset or refused. This puts the policy that held before in force
again, once every node has reported since.`,
		example: "  assay guard reset --reason 'all nodes are back, cases looked at'",
		flags: func(cmd *cobra.Command) {
			reasonFlag(cmd, &v.Reason)
			cmd.Flags().StringVar(&v.AcceptRisk, "accept-risk", "", wire.RiskUnheard+": although nodes have not reported since")
			a.completeFlag(cmd, "accept-risk", fixed(wire.RiskUnheard))
		},
		run: func(ctx context.Context, c *client.Client, _ []string) error {
			g, err := c.Lift(ctx, v)
			if err != nil {
				return err
			}
			return a.emit(g, func() error { return a.showGuard(g) })
		},
	})
}

func (a *app) guardShowCmd() *cobra.Command {
	return a.command(spec{
		use: "show", short: "Show budgets, storms and nodes held back", args: cobra.NoArgs, example: "  assay guard show",
		run: func(ctx context.Context, c *client.Client, _ []string) error {
			g, err := c.Guard(ctx)
			if err != nil {
				return err
			}
			return a.emit(g, func() error { return a.showGuard(g) })
		},
	})
}

func (a *app) guardVerbCmd(verb, short, long, example string, do func(*client.Client, context.Context, string) (wire.Guard, error)) *cobra.Command {
	var reason string
	return a.command(spec{
		use: verb + " --reason TEXT", short: short, long: long, example: example, args: cobra.NoArgs,
		flags: func(cmd *cobra.Command) { reasonFlag(cmd, &reason) },
		run: func(ctx context.Context, c *client.Client, _ []string) error {
			g, err := do(c, ctx, reason)
			if err != nil {
				return err
			}
			if g.Frozen && g.FrozenWhy != reason {
				fmt.Fprintf(a.err, "it was frozen already, by %s: %s; that stands, and your reason is not kept\n", clean(g.FrozenBy), clean(g.FrozenWhy))
			}
			return a.emit(g, func() error { return a.showGuard(g) })
		},
	})
}

// freeze leaves a guard that is frozen as it is: who froze it first has to be asked before it is thawed.
func freeze(c *client.Client, ctx context.Context, reason string) (wire.Guard, error) {
	if g, err := c.Guard(ctx); err != nil || g.Frozen && reason != "" {
		return g, err
	}
	return c.Freeze(ctx, reason)
}

func (a *app) showGuard(g wire.Guard) error {
	frozen := "at work"
	if g.Frozen {
		frozen = fmt.Sprintf("frozen by %s at %s: %s", clean(g.FrozenBy), a.when(g.FrozenAt), clean(g.FrozenWhy))
	}
	if g.DryRun {
		would := 0
		for _, w := range g.Waits {
			if w.Would {
				would++
			}
		}
		frozen = strings.TrimPrefix(frozen+"; ", "at work; ") + fmt.Sprintf("dry run: nothing is drained; %d would be now, %d would wait", would, len(g.Waits)-would)
	}
	held := ""
	if len(g.HeldBack) > 0 {
		held = clean(hostlist.Compress(g.HeldBack))
	}
	if err := a.facts(
		[2]string{"Guard", frozen},
		[2]string{"Counts over", count(g.Schedulable, "schedulable node")},
		[2]string{"Hard faults", fmt.Sprintf("%d within the hour", g.HardHour)},
		[2]string{"Storms", cleanLines(strings.Join(g.Storms, "\n"))},
		[2]string{"Held back", held},
		[2]string{"Jobs refused", some(g.Permits, "prolog exit permitted within the day", "prolog exits permitted within the day")},
		[2]string{"Restored", restoredText(a.when(g.Restored))},
		[2]string{"History", cleanLines(strings.Join(g.Trips, "\n"))},
	); err != nil {
		return err
	}
	if len(g.Waits) > 0 {
		fmt.Fprintln(a.out)
		waits := make([][]string, 0, len(g.Waits))
		for _, w := range g.Waits {
			waits = append(waits, []string{clean(w.Node), clean(w.Step), dash(clean(w.Cause)), dash(clean(w.Case)), a.age(w.Since), clean(w.Why)})
		}
		if err := a.rows([]string{"waits", "step", "cause", "case", "since", "why"}, waits); err != nil {
			return err
		}
	}
	if len(g.Budgets) == 0 {
		return nil
	}
	fmt.Fprintln(a.out)
	rows := make([][]string, 0, len(g.Budgets))
	for _, b := range g.Budgets {
		rows = append(rows, []string{clean(b.Scope), fmt.Sprint(b.Spent), fmt.Sprint(b.Limit), dash(a.age(b.Until))})
	}
	return a.rows([]string{"budget", "spent", "limit", "next free"}, rows)
}

func (a *app) certCmd() *cobra.Command {
	return a.groupCmd("cert", "List and show certificates", "  assay cert list\n  assay cert show gpu003", a.certListCmd(), a.certShowCmd(), a.certVerifyCmd(), a.certRotateCmd())
}

func (a *app) certListCmd() *cobra.Command {
	return a.command(spec{
		use: "list [HOSTLIST...]", short: "List certificates", args: cobra.ArbitraryArgs, example: "  assay cert list\n  assay cert list 'gpu[001-008]' -o wide",
		run: func(ctx context.Context, c *client.Client, args []string) error {
			_, names, err := nodeNames(args)
			if err != nil {
				return err
			}
			all, err := c.Certificates(ctx)
			if err != nil {
				return err
			}
			cs := make([]certificate.Certificate, 0, len(all))
			for _, k := range all {
				if len(names) == 0 || slices.Contains(names, k.Node) {
					cs = append(cs, k)
				}
			}
			return a.emit(cs, func() error {
				if len(cs) == 0 {
					fmt.Fprintln(a.err, "no certificate")
					return nil
				}
				return a.certRows(cs)
			})
		},
	})
}

func (a *app) certRows(cs []certificate.Certificate) error {
	header := []string{"node", "serial", "level", "gpus", "issued", "expires"}
	if a.wide() {
		header = append(header, "grace", "driver", "suite", "not tested", "adopted", "boot")
	}
	rows := make([][]string, 0, len(cs))
	for _, k := range cs {
		row := []string{clean(k.Node), fmt.Sprint(k.Serial), k.Level.String(), fmt.Sprint(len(k.GPUs)), a.age(k.IssuedAt), a.age(k.Expires)}
		if a.wide() {
			row = append(row, a.age(k.GraceUntil), clean(k.Driver), cut(k.Suite, 16), dash(clean(strings.Join(k.NotTested, ","))), fmt.Sprint(k.Adopted), clean(k.BootID))
		}
		rows = append(rows, row)
	}
	return a.rows(header, rows)
}

func (a *app) certShowCmd() *cobra.Command {
	return a.command(spec{
		use: "show NODE", short: "Show a node's certificate", args: cobra.ExactArgs(1), example: "  assay cert show gpu003",
		long: `Exits 1 when the node holds none, or one that has expired.`,
		run: func(ctx context.Context, c *client.Client, args []string) error {
			node, err := oneNode(args[0])
			if err != nil {
				return err
			}
			k, err := c.Certificate(ctx, node)
			if err != nil {
				return err
			}
			if err := a.emit(k, func() error { return a.showCert(k) }); err != nil {
				return err
			}
			if !a.now().Before(k.Expires) {
				return errFault
			}
			return nil
		},
	})
}

func (a *app) showCert(k certificate.Certificate) error {
	adopted := ""
	if k.Adopted {
		adopted = "yes: granted to a live node that never passed intake"
	}
	return a.facts(
		[2]string{"Node", clean(k.Node)},
		[2]string{"Serial", fmt.Sprint(k.Serial)},
		[2]string{"Level", k.Level.String()},
		[2]string{"Issued", a.when(k.IssuedAt)},
		[2]string{"Expires", a.when(k.Expires)},
		[2]string{"Hooks until", a.when(k.GraceUntil)},
		[2]string{"Adopted", adopted},
		[2]string{"Tested", clean(strings.Join(k.Tested, ", "))},
		[2]string{"Not tested", clean(strings.Join(k.NotTested, ", "))},
		[2]string{"GPUs", cleanLines(strings.Join(k.GPUs, "\n"))},
		[2]string{"Driver", clean(k.Driver)},
		[2]string{"Boot", clean(k.BootID)},
		[2]string{"Host serial", clean(k.NodeSerial)},
		[2]string{"Suite", clean(k.Suite)},
		[2]string{"Signed by", clean(k.KeyID)},
	)
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

func some(n int, one, many string) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func restoredText(when string) string {
	if when == "" {
		return ""
	}
	return when + " from a backup: the policy observes until assay guard reset"
}
