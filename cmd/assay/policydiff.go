package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/checks/hostlist"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/policy/policyfile"
	"github.com/assay-gpu/assay/coordinator/client"
	"github.com/assay-gpu/assay/coordinator/replay"
	"github.com/assay-gpu/assay/coordinator/wire"
)

func (a *app) policyDiffCmd() *cobra.Command {
	back := policy.Duration(0)
	return a.command(spec{
		use: "diff [OLD] NEW", short: "Print what two policies do not have in common", args: cobra.RangeArgs(1, 2),
		long: `With one file: what it would change of the policy in force.

With --replay the faults that history keeps of that time are judged again, by both: which nodes the new policy would
have taken, for which reason, and which the policy in force would. What history cannot tell is said.`,
		example: `  assay policy diff policy.yaml
  assay policy diff old.yaml new.yaml
  assay policy diff --replay 7d policy.yaml`,
		flags: func(cmd *cobra.Command) {
			durationFlag(cmd, &back, "replay", "judge the faults of so long ago until now again, as 7d")
		},
		run: func(ctx context.Context, c *client.Client, args []string) error {
			want, err := loadPolicy(args[len(args)-1])
			if err != nil {
				return err
			}
			var have policy.Policy
			if len(args) == 2 {
				have, err = loadPolicy(args[0])
			} else {
				have, err = c.Policy(ctx)
			}
			if err != nil {
				return err
			}
			changes := policyfile.Diff(have, want)
			if back == 0 {
				return a.emit(changes, func() error { a.printChanges(a.out, changes); return nil })
			}
			if back < 0 {
				return &usageError{fmt.Sprintf("--replay %s: want a time that has passed", back), ""}
			}
			a.printChanges(a.err, changes)
			r, err := a.replay(ctx, c, have, want, back)
			if err != nil {
				return err
			}
			return a.emit(r, func() error { return a.showReplay(r, want) })
		},
	})
}

// printChanges prints - and + lines, as diff does.
func (a *app) printChanges(w io.Writer, changes []policyfile.Change) {
	for _, c := range changes {
		if c.Old != "" {
			fmt.Fprintln(w, "- "+c.Path+": "+c.Old)
		}
		if c.New != "" {
			fmt.Fprintln(w, "+ "+c.Path+": "+c.New)
		}
	}
}

// replay reads history and the nodes' products, and judges by both policies.
func (a *app) replay(ctx context.Context, c *client.Client, have, want policy.Policy, back policy.Duration) (replay.Report, error) {
	in := replay.Input{From: a.now().Add(-back.D()), To: a.now(), SKU: map[string]string{}, Now: have, New: want}
	nodes, err := c.Nodes(ctx, "")
	if err != nil {
		return replay.Report{}, err
	}
	for _, n := range nodes {
		in.SKU[n.Name] = n.Product
	}
	var entries []wire.HistoryEntry
	for e, err := range c.Events(ctx, client.EventsAsk{}) {
		if err != nil {
			return replay.Report{}, err
		}
		entries = append(entries, e)
	}
	in.Entries = entries
	return replay.Run(in), nil
}

func (a *app) showReplay(r replay.Report, want policy.Policy) error {
	var rows [][]string
	for _, c := range r.Cases {
		action := c.Action.String()
		if c.Hard {
			action += " (hard)"
		}
		if c.Would == replay.NoFault || c.Would == replay.Off {
			action = "-"
		}
		said := clean(c.Said)
		if c.AsThen {
			said += " (as judged then)"
		}
		rows = append(rows, []string{clean(c.Node), clean(c.Reason), a.when(c.First), fmt.Sprint(c.Faults), string(c.Now), string(c.Would), action, said})
	}
	if len(rows) > 0 {
		if err := a.rows([]string{"node", "reason", "first", "faults", "in force", "would", "action", "said"}, rows); err != nil {
			return err
		}
		fmt.Fprintln(a.out)
	}
	if err := a.facts(
		[2]string{"Would take", taken(r.Would)},
		[2]string{"In force takes", taken(r.Now)},
		[2]string{"Most in an hour", fmt.Sprintf("%s; the fleet's budget is at most %d, and %v of its nodes", count(r.Hour, "node"), want.Guard.FleetHourMax, want.Guard.FleetHourShare)},
		[2]string{"Judged again", count(r.Faults, "fault") + " since " + a.when(r.From)},
	); err != nil {
		return err
	}
	fmt.Fprintln(a.err, "What history cannot tell:")
	for _, b := range r.Blind {
		fmt.Fprintln(a.err, "  "+clean(b))
	}
	return nil
}

func taken(nodes []string) string {
	if len(nodes) == 0 {
		return "no node"
	}
	return strings.TrimSpace(count(len(nodes), "node") + ": " + clean(hostlist.Compress(nodes)))
}
