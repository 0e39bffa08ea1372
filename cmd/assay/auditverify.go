package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/coordinator/client"
	"github.com/assay-gpu/assay/coordinator/wire"
)

func (a *app) auditVerifyCmd() *cobra.Command {
	var seen string
	return a.command(spec{
		use: "verify", short: "Prove that history is what was written", args: cobra.NoArgs,
		long: `Every entry of history carries a hash over itself and the entry before it. verify has the control plane read what is
stored, follows the chain, and names the first record that does not fit: exit status 1.

Who can write to the store and knows the program could hash the whole chain anew. Keep what verify prints last elsewhere, and
give it to the next one with --seen: then history up to there cannot have been changed.`,
		example: `  assay audit verify
  assay audit verify --seen 00000000000001c7:3q2-7wAAb2Jm…`,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&seen, "seen", "", "RECORD:HASH that an earlier verify printed")
		},
		run: func(ctx context.Context, c *client.Client, _ []string) error {
			record, hash, ok := strings.Cut(seen, ":")
			if seen != "" && (!ok || record == "" || hash == "") {
				return &usageError{fmt.Sprintf("--seen %q: want RECORD:HASH", seen), "as an earlier assay audit verify printed it"}
			}
			got, err := c.Audit(ctx)
			if err != nil {
				return err
			}
			if seen != "" && got.Broken == nil {
				if got.Broken, err = stillThere(ctx, c, record, hash); err != nil {
					return err
				}
			}
			if err := a.emit(got, func() error { return a.showAudit(got) }); err != nil {
				return err
			}
			if got.Broken != nil {
				return errFault
			}
			return nil
		},
	})
}

// stillThere looks whether the record that was seen has the hash it had then. One that is no longer kept is Unknown, not broken.
func stillThere(ctx context.Context, c *client.Client, record, hash string) (*wire.AuditBreak, error) {
	n, err := strconv.ParseUint(record, 16, 64)
	if err != nil || n == 0 {
		return nil, &usageError{fmt.Sprintf("--seen %.40q: no record's number", record), "as an earlier assay audit verify printed it"}
	}
	after := ""
	if n > 1 {
		after = fmt.Sprintf("%016x", n-1)
	}
	for e, err := range c.Events(ctx, client.EventsAsk{After: after}) {
		if err != nil {
			return nil, fmt.Errorf("record %s: %w", record, err)
		}
		if e.Cursor == record && e.Hash == hash {
			return nil, nil
		}
		return &wire.AuditBreak{Record: e, Why: "it is not what was seen as " + record}, nil
	}
	return &wire.AuditBreak{Record: wire.HistoryEntry{Cursor: record}, Why: "it was seen, and is missing"}, nil
}

func (a *app) showAudit(got wire.Audit) error {
	verdict := "whole"
	if got.Broken != nil {
		verdict = "broken"
	}
	var first, last, broken, why string
	if got.First != nil {
		first = got.First.Cursor + ", " + a.when(got.First.At)
	}
	if got.Last != nil && got.Broken == nil {
		last = got.Last.Cursor + ":" + got.Last.Hash + ", " + a.when(got.Last.At)
	}
	if b := got.Broken; b != nil {
		broken, why = b.Record.Cursor+"  "+a.historyLine(b.Record, true), b.Why
	}
	before := ""
	if got.Before > 0 {
		before = fmt.Sprintf("%d, from before history was chained: they prove nothing", got.Before)
	}
	return a.facts(
		[2]string{"History", fmt.Sprintf("%s, %d records", verdict, got.Records)},
		[2]string{"Unchained", before},
		[2]string{"First", clean(first)},
		[2]string{"Last", clean(last)},
		[2]string{"Broken at", clean(broken)},
		[2]string{"Why", clean(why)},
	)
}
