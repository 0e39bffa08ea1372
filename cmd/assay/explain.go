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

func (a *app) caseCmd() *cobra.Command {
	return a.groupCmd("case", "List and show quarantines", "  assay case list\n  assay case show Q-7F3K", a.caseListCmd(), a.caseShowCmd())
}

func (a *app) caseListCmd() *cobra.Command {
	var all bool
	return a.command(spec{
		use: "list", short: "List open cases", args: cobra.NoArgs,
		example: "  assay case list\n  assay case list --all -o json",
		flags:   func(cmd *cobra.Command) { cmd.Flags().BoolVar(&all, "all", false, "closed ones too") },
		run: func(ctx context.Context, c *client.Client, _ []string) error {
			cs, err := c.Cases(ctx, !all)
			if err != nil {
				return err
			}
			return a.emit(cs, func() error {
				if len(cs) == 0 {
					fmt.Fprintln(a.err, "no case is open")
					return nil
				}
				return a.caseRows(cs)
			})
		},
	})
}

func (a *app) caseRows(cs []wire.Case) error {
	header := []string{"case", "node", "opened", "cause", "action", "owner", "next", "deadline"}
	if a.wide() {
		header = append(header, "part", "level", "attempts", "outcome")
	}
	rows := make([][]string, 0, len(cs))
	for _, k := range cs {
		next := k.Next
		if !k.Closed.IsZero() {
			next = "closed " + a.age(k.Closed) + ": " + k.Outcome
		}
		row := []string{clean(k.ID), clean(k.Node), a.age(k.Opened), clean(k.Cause), k.Action.String(), dash(clean(k.Owner)), dash(cut(next, 60)), dash(a.age(k.Deadline))}
		if a.wide() {
			row = append(row, dash(clean(k.Part)), dash(k.Level.String()), dash(clean(strings.Join(k.Attempts, "; "))), dash(clean(k.Outcome)))
		}
		rows = append(rows, row)
	}
	return a.rows(header, rows)
}

func (a *app) caseShowCmd() *cobra.Command {
	return a.command(spec{
		use: "show CASE", short: "Show a case: cause, owner, attempts, what happens next", args: cobra.ExactArgs(1),
		example: "  assay case show Q-7F3K\n  assay case show Q-7F3K -o json",
		run: func(ctx context.Context, c *client.Client, args []string) error {
			k, err := c.Case(ctx, args[0])
			if err != nil {
				return err
			}
			return a.emit(k, func() error { return a.showCase(k) })
		},
	})
}

func (a *app) showCase(k wire.Case) error {
	status := "open since " + a.when(k.Opened)
	if !k.Closed.IsZero() {
		status = fmt.Sprintf("closed %s: %s; opened %s", a.when(k.Closed), clean(k.Outcome), a.when(k.Opened))
	}
	next := clean(k.Next)
	if !k.Deadline.IsZero() && k.Closed.IsZero() {
		next = fmt.Sprintf("%s\nby %s", dash(next), a.when(k.Deadline))
	}
	ends := "a person's word"
	if k.Level.String() != "" {
		ends = "a " + k.Level.String() + " certificate or deeper"
	}
	var findings, evidence []string
	for _, f := range k.Findings {
		line := f.Check
		if f.Code != 0 {
			line += fmt.Sprintf(" %d", f.Code)
		}
		if f.Subject.GPUIndex != nil {
			line += fmt.Sprintf(" GPU %d", *f.Subject.GPUIndex)
		}
		line = fmt.Sprintf("%s  %s: %s (%s, %s)", f.At.Local().Format(time.RFC3339), line, f.Reason, f.Verdict, f.Action)
		if f.Secondary {
			line += ", a consequence"
		}
		findings = append(findings, clean(line))
	}
	if more := len(findings) - recent; more > 0 && !a.wide() {
		findings = append(findings[:recent], fmt.Sprintf("and %d more: -o wide", more))
	}
	for _, name := range sortedKeys(k.Evidence) {
		evidence = append(evidence, clean(name+" "+k.Evidence[name]))
	}
	timeline := k.Timeline
	if len(timeline) > recent && !a.wide() {
		timeline = timeline[len(timeline)-recent:]
	}
	return a.facts(
		[2]string{"Case", clean(k.ID) + " on " + clean(k.Node) + ", " + status},
		[2]string{"Cause", fmt.Sprintf("%s on %s; action %s", clean(k.Cause), clean(k.Part), k.Action)},
		[2]string{"Owner", clean(k.Owner)},
		[2]string{"Next", next},
		[2]string{"Ends with", ends},
		[2]string{"Attempts", cleanLines(strings.Join(k.Attempts, "\n"))},
		[2]string{"Findings", strings.Join(findings, "\n")},
		[2]string{"Evidence", strings.Join(evidence, "\n")},
		[2]string{"Timeline", a.historyLines(timeline)},
	)
}
