package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/coordinator/client"
	"github.com/assay-gpu/assay/coordinator/wire"
)

func (a *app) caseCmd() *cobra.Command {
	return a.groupCmd("case", "List and show quarantines, and say who deals with them", "  assay case list\n  assay case show Q-7F3K\n  assay case take Q-7F3K --reason 'I look at the riser'",
		a.caseListCmd(), a.caseShowCmd(), a.caseTakeCmd(), a.caseNoteCmd(), a.caseExtendCmd(), a.caseCloseCmd())
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
	var dir string
	return a.command(spec{
		use: "show CASE", short: "Show a case: cause, owner, attempts, evidence, what happens next", args: cobra.ExactArgs(1), offers: map[string]offer{"CASE": offerCases},
		long: `With --fetch its evidence is written to a new directory: kernel log, snapshot, policy, the driver's report. assay-agent check
--from DIR judges it again.`,
		example: "  assay case show Q-7F3K\n  assay case show Q-7F3K --fetch /tmp/Q-7F3K\n  assay case show Q-7F3K -o json",
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&dir, "fetch", "", "write the evidence to this directory, which must not be there yet")
		},
		run: func(ctx context.Context, c *client.Client, args []string) error {
			k, err := c.Case(ctx, args[0])
			if err != nil {
				return err
			}
			if dir != "" {
				if err := a.fetchEvidence(ctx, c, k, dir); err != nil {
					return err
				}
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
		ends = "a certificate of level " + k.Level.String() + " or deeper"
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
		line := fmt.Sprintf("%s %.12s", name, k.Evidence[name])
		if slices.Contains(k.OnNode, name) {
			line += ", on the node alone"
		}
		evidence = append(evidence, clean(line))
	}
	if k.Gathered != "" && k.Gathered != "complete" {
		evidence = append([]string{k.Gathered}, evidence...)
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
		[2]string{"Jobs before", clean(strings.Join(k.Before, ", "))},
		[2]string{"Jobs after", clean(strings.Join(k.After, ", "))},
		[2]string{"Timeline", a.historyLines(timeline)},
	)
}
