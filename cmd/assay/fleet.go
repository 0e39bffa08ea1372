package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/coordinator/client"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// outStates are the states in which a node does not take work because something is, or may be, wrong with it.
var outStates = []lifecycle.State{
	lifecycle.Suspect, lifecycle.Withheld, lifecycle.Draining, lifecycle.Quarantined, lifecycle.Remediating, lifecycle.RMA,
}

func outOfService(n wire.Node) bool {
	return n.Lost || len(n.Holds) > 0 || slices.Contains(outStates, lifecycle.State(n.State)) || slices.Contains(n.Marks, lifecycle.MarkHeldBack)
}

// shownAttention is how many nodes the fleet page lists; the rest are counted.
const shownAttention = 15

func (a *app) fleetCmd() *cobra.Command {
	cmd := a.command(spec{
		use: "fleet", short: "Show the fleet in numbers, and the nodes that need attention", args: cobra.NoArgs,
		long: `Exits 1 when a node is out of service: suspect, withheld, draining, quarantined, remediating, in RMA, lost, on
hold, or held back by the guard. Nodes that are newly enrolled or in screening are no fault.`,
		example: `  assay fleet
  assay fleet -o json | jq .by_state`,
		run: func(ctx context.Context, c *client.Client, _ []string) error {
			f, err := c.Fleet(ctx)
			if err != nil {
				return err
			}
			if err := a.emit(f, func() error { return a.showFleet(f) }); err != nil {
				return err
			}
			if fleetFault(f) {
				return errFault
			}
			return nil
		},
	})
	cmd.AddCommand(a.lemonsCmd())
	return cmd
}

func (a *app) lemonsCmd() *cobra.Command {
	return a.command(spec{
		use: "lemons", short: "List nodes that fail more than others, and by what", args: cobra.NoArgs,
		long: `Counts, over 28 days and for each node, XIDs, RMA tickets, times out of service, and failures of jobs while a check fired on
it (from 10 minutes before to 5 after). A signal counts when it is above the fleet's 99th percentile and its floor; in a fleet of
under a hundred nodes, above its floor alone. The bounds are policy's (lemons). Exits 1 when there is one.`,
		example: "  assay fleet lemons\n  assay fleet lemons -o json",
		run: func(ctx context.Context, c *client.Client, _ []string) error {
			ls, err := c.Lemons(ctx)
			if err != nil {
				return err
			}
			err = a.emit(ls, func() error {
				if len(ls) == 0 {
					fmt.Fprintln(a.err, "no node stands out")
					return nil
				}
				rows := make([][]string, 0, len(ls))
				for _, l := range ls {
					rows = append(rows, []string{clean(l.Node), fmt.Sprint(l.Score), clean(strings.Join(l.Reasons, ", "))})
				}
				return a.rows([]string{"node", "score", "why"}, rows)
			})
			if err == nil && len(ls) > 0 {
				err = errFault
			}
			return err
		},
	})
}

func fleetFault(f wire.Fleet) bool {
	for _, s := range outStates {
		if f.ByState[string(s)] > 0 {
			return true
		}
	}
	return f.Lost > 0 || f.HeldBack > 0 || slices.ContainsFunc(f.Attention, outOfService)
}

func (a *app) showFleet(f wire.Fleet) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s; %d certified now; mode %s", count(f.Nodes, "node"), count(f.GPUs, "GPU"), f.Certified, clean(f.Mode))
	if f.Leader != "" {
		fmt.Fprintf(&b, "; led by %s, term %d", clean(f.Leader), f.Term)
	}
	b.WriteString("\n\n")
	for _, s := range []lifecycle.State{lifecycle.Certified, lifecycle.Enrolled, lifecycle.Screening, lifecycle.Suspect, lifecycle.Withheld,
		lifecycle.Draining, lifecycle.Quarantined, lifecycle.Remediating, lifecycle.RMA, lifecycle.Retired} {
		if n := f.ByState[string(s)]; n > 0 {
			fmt.Fprintf(&b, "%6d  %s\n", n, a.state(string(s), false))
		}
	}
	for _, x := range []struct {
		n    int
		what string
	}{{f.Lost, "lost"}, {f.HeldBack, "held back by the guard"}, {f.OpenCases, "open " + plural(f.OpenCases, "case")}} {
		if x.n > 0 {
			fmt.Fprintf(&b, "%6d  %s\n", x.n, x.what)
		}
	}
	if f.Frozen {
		b.WriteString("\nThe guard is frozen: nothing automatic takes a node, but a job that needs a lost GPU is refused still. See assay guard show.\n")
	}
	if len(f.Attention) == 0 {
		b.WriteString("\nNothing needs attention.\n")
	} else {
		b.WriteString("\nNeeds attention:\n")
	}
	if _, err := io.WriteString(a.out, b.String()); err != nil || len(f.Attention) == 0 {
		return err
	}
	shown := f.Attention[:min(len(f.Attention), shownAttention)]
	if err := a.nodeRows(shown); err != nil {
		return err
	}
	if more := len(f.Attention) - len(shown); more > 0 {
		fmt.Fprintf(a.out, "and %d more: assay node list --out\n", more)
	}
	return nil
}

func count(n int, what string) string { return fmt.Sprintf("%d %s", n, plural(n, what)) }

func plural(n int, what string) string {
	if n == 1 {
		return what
	}
	return what + "s"
}
