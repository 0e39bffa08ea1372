package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/client"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// caseOrder carries out an order on one case and shows the case after it.
func (a *app) caseOrder(ctx context.Context, c *client.Client, id, verb string, v wire.CaseVerb) error {
	k, err := c.OrderCase(ctx, id, verb, v)
	if err != nil {
		return err
	}
	return a.emit(k, func() error { return a.showCase(k) })
}

func (a *app) caseTakeCmd() *cobra.Command {
	var v wire.CaseVerb
	var back bool
	return a.command(spec{
		use: "take CASE --reason TEXT", short: "Say that a case is yours: automatic steps wait until you give it back", args: cobra.ExactArgs(1),
		long: `What is under way goes on: a drain, evidence, a reset. The next reset or reboot waits for you, and pages go on at the
deadline. Give the case back with --back, or end it with assay node resume.`,
		example: "  assay case take Q-7F3K --reason 'I look at the riser'\n  assay case take Q-7F3K --back --reason 'riser swapped, go on'",
		flags: func(cmd *cobra.Command) {
			reasonFlag(cmd, &v.Reason)
			cmd.Flags().BoolVar(&back, "back", false, "give it back to assay instead")
		},
		run: func(ctx context.Context, c *client.Client, args []string) error {
			verb := lifecycle.CaseTake
			if back {
				verb = lifecycle.CaseGive
			}
			return a.caseOrder(ctx, c, args[0], verb, v)
		},
	})
}

func (a *app) caseNoteCmd() *cobra.Command {
	return a.command(spec{
		use: "note CASE TEXT...", short: "Write a line in a case's timeline, open or closed", args: cobra.MinimumNArgs(2), offers: map[string]offer{"CASE": offerCases},
		example: "  assay case note Q-7F3K 'the same slot as in March; ask for the riser'",
		run: func(ctx context.Context, c *client.Client, args []string) error {
			return a.caseOrder(ctx, c, args[0], "note", wire.CaseVerb{Reason: strings.Join(args[1:], " ")})
		},
	})
}

func (a *app) caseExtendCmd() *cobra.Command {
	var v wire.CaseVerb
	var by policy.Duration
	return a.command(spec{
		use: "extend CASE --for DURATION --reason TEXT", short: "Have a case looked at again at a later time", args: cobra.ExactArgs(1),
		long:    "The deadline is counted from now and may be 30 days ahead at the most. What is under way keeps its own.",
		example: "  assay case extend Q-7F3K --for 3d --reason 'the riser comes on Thursday'",
		flags: func(cmd *cobra.Command) {
			reasonFlag(cmd, &v.Reason)
			durationFlag(cmd, &by, "for", "how long from now, such as 12h or 3d (required)")
			cmd.MarkFlagRequired("for")
		},
		run: func(ctx context.Context, c *client.Client, args []string) error {
			v.Until = a.now().Add(by.D()).UTC()
			return a.caseOrder(ctx, c, args[0], lifecycle.CaseExtend, v)
		},
	})
}

func (a *app) caseCloseCmd() *cobra.Command {
	var v wire.CaseVerb
	return a.command(spec{
		use: "close CASE --reason TEXT", short: "Close a case whose node was not taken out of service", args: cobra.ExactArgs(1),
		long: `A node that is out comes back by a clean screen: assay node resume asks for it. A fault that is still there opens the next
case with the next report.`,
		example: "  assay case close Q-7F3K --reason 'known noise of this firmware, vendor ticket 4711'",
		flags:   func(cmd *cobra.Command) { reasonFlag(cmd, &v.Reason) },
		run: func(ctx context.Context, c *client.Client, args []string) error {
			return a.caseOrder(ctx, c, args[0], lifecycle.CaseClose, v)
		},
	})
}

// fetchEvidence writes the evidence that control hosts have to dir. It says what is missing, and fails if that is all.
func (a *app) fetchEvidence(ctx context.Context, c *client.Client, k wire.Case, dir string) error {
	if len(k.Evidence) == 0 {
		return &refusal{fmt.Sprintf("case %s has no evidence (%s)", k.ID, dash(k.Gathered)), ""}
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return &usageError{err.Error(), "name a directory that is not there yet"}
	}
	fetched := 0
	for _, name := range sortedKeys(k.Evidence) {
		if name != filepath.Base(name) || strings.HasPrefix(name, ".") {
			fmt.Fprintf(a.err, "%s: no name for a file here, left out\n", clean(name))
			continue
		}
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		err = errors.Join(c.Evidence(ctx, k.Evidence[name], f), f.Close())
		var refused *client.Error
		if errors.As(err, &refused) && refused.Status() == http.StatusNotFound {
			fmt.Fprintf(a.err, "%s: on no control host; look on %s, in evidence/%s of its agent's state directory\n", clean(name), clean(k.Node), clean(k.ID))
			err = os.Remove(f.Name())
			fetched--
		}
		if err != nil {
			return err
		}
		fetched++
	}
	fmt.Fprintf(a.err, "%s of case %s in %s\n", count(fetched, "file"), clean(k.ID), dir)
	if fetched == 0 {
		return errFault
	}
	return nil
}
