package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/coordinator/client"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// recent is how many history entries fit on the screen beside the rest.
const recent = 6

func (a *app) nodeExplainCmd() *cobra.Command {
	return a.command(spec{
		use: "explain NODE", short: "Say why a node is where it is, who owns it, and what happens next", args: cobra.ExactArgs(1),
		example: "  assay node explain gpu003",
		run: func(ctx context.Context, c *client.Client, args []string) error {
			node, err := oneNode(args[0])
			if err != nil {
				return err
			}
			x, err := c.Explain(ctx, node)
			if err != nil {
				return err
			}
			return a.emit(x, func() error { return a.showExplanation(x) })
		},
	})
}

func (a *app) showExplanation(x wire.Explanation) error {
	n := x.Node
	owner := clean(n.Owner)
	if k := x.Case; k != nil {
		owner = fmt.Sprintf("%s; case %s, %s on %s, opened %s", dash(clean(k.Owner)), clean(k.ID), clean(k.Cause), clean(k.Part), a.when(k.Opened))
	}
	next := clean(x.Next)
	if !n.Deadline.IsZero() {
		next = fmt.Sprintf("%s\nby %s", dash(next), a.when(n.Deadline))
	}
	entries := x.History
	if len(entries) > recent {
		entries = entries[len(entries)-recent:]
	}
	return a.facts(
		[2]string{"Node", fmt.Sprintf("%s is %s since %s", clean(n.Name), a.state(n.State, n.Lost), a.when(n.Since))},
		[2]string{"Why", cleanLines(strings.Join(x.Why, "\n"))},
		[2]string{"Owner", owner},
		[2]string{"Next", next},
		[2]string{"Marks", clean(strings.Join(n.Marks, ", "))},
		[2]string{"Holds", a.holdLines(n.Holds)},
		[2]string{"Certificate", a.certText(n)},
		[2]string{"Prolog", clean(x.HookSays)},
		[2]string{"Slurm", a.slurmLine(n.Slurm)},
		[2]string{"Pending", a.effectLines(n.Effects)},
		[2]string{"Recent", a.historyLines(entries)},
	)
}

func (a *app) historyLines(es []wire.HistoryEntry) string {
	var lines []string
	for _, e := range es {
		lines = append(lines, a.historyLine(e, false))
	}
	return strings.Join(lines, "\n")
}

// historyLine writes an entry on one line, with or without its node.
func (a *app) historyLine(e wire.HistoryEntry, node bool) string {
	f := []string{e.At.Local().Format(time.RFC3339)}
	if node {
		f = append(f, dash(clean(e.Node)))
	}
	if e.From != e.To {
		f = append(f, dash(clean(e.From))+" -> "+dash(clean(e.To)))
	} else if e.To != "" {
		f = append(f, clean(e.To))
	}
	if e.Case != "" {
		f = append(f, clean(e.Case))
	}
	event := clean(e.Event)
	if !a.wide() {
		event = cut(event, 80)
	}
	return strings.Join(append(f, event, "by "+dash(clean(e.By))), "  ")
}
