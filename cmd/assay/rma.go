package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/coordinator/client"
	"github.com/assay-gpu/assay/coordinator/rma"
	"github.com/assay-gpu/assay/coordinator/wire"
)

func (a *app) rmaCmd() *cobra.Command {
	return a.groupCmd("rma", "Send hardware back to the vendor and take it in again",
		"  assay rma open Q-7F3K --reason 'no spare rows left'\n  assay rma bundle R-7F3K\n  assay rma update R-7F3K --state shipped --vendor 4711\n  assay rma update gpu003 --outcome 'no fault found, same board back'",
		a.rmaListCmd(), a.rmaShowCmd(), a.rmaOpenCmd(), a.rmaUpdateCmd(), a.rmaBundleCmd(), a.rmaPartsCmd())
}

func (a *app) rmaListCmd() *cobra.Command {
	var all, asCSV bool
	return a.command(spec{
		use: "list", short: "List the tickets of parts on their way to the vendor and back", args: cobra.NoArgs,
		example: "  assay rma list\n  assay rma list --all --csv >rma.csv",
		flags: func(cmd *cobra.Command) {
			cmd.Flags().BoolVar(&all, "all", false, "closed ones too")
			cmd.Flags().BoolVar(&asCSV, "csv", false, "as CSV, with every field")
		},
		run: func(ctx context.Context, c *client.Client, _ []string) error {
			ts, err := c.Tickets(ctx, !all)
			if err != nil {
				return err
			}
			if asCSV {
				return a.ticketCSV(ts)
			}
			return a.emit(ts, func() error {
				if len(ts) == 0 {
					fmt.Fprintln(a.err, "no ticket is open")
					return nil
				}
				return a.ticketRows(ts)
			})
		},
	})
}

func (a *app) ticketRows(ts []rma.Ticket) error {
	header := []string{"ticket", "node", "part", "cause", "state", "since", "owner", "vendor", "reminder"}
	if a.wide() {
		header = append(header, "case", "slot", "product", "warranty", "fitted", "blame", "outcome")
	}
	rows := make([][]string, 0, len(ts))
	for _, t := range ts {
		row := []string{clean(t.ID), clean(t.Node), clean(cmp.Or(t.Serial, t.UUID, t.Part)), clean(t.Cause), clean(t.State), a.age(t.Moved), dash(clean(t.Owner)), dash(clean(t.Vendor)), dash(a.age(t.Remind))}
		if a.wide() {
			row = append(row, clean(t.Case), dash(clean(t.Slot)), dash(clean(t.Product)), dash(day(t.Warranty)), dash(clean(t.Fitted)), dash(clean(t.Blame)), dash(clean(t.Outcome)))
		}
		rows = append(rows, row)
	}
	return a.rows(header, rows)
}

func day(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.DateOnly)
}

// ticketCSV writes tickets for a spreadsheet. A field that a spreadsheet would take for a formula gets an apostrophe.
func (a *app) ticketCSV(ts []rma.Ticket) error {
	w := csv.NewWriter(a.out)
	stamp := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(time.RFC3339)
	}
	if err := w.Write([]string{"ticket", "case", "node", "part", "serial", "uuid", "product", "slot", "cause", "state", "owner", "opened", "moved", "reminder", "vendor", "warranty", "fitted", "blame", "outcome"}); err != nil {
		return err
	}
	for _, t := range ts {
		row := []string{t.ID, t.Case, t.Node, t.Part, t.Serial, t.UUID, t.Product, t.Slot, t.Cause, t.State, t.Owner, stamp(t.Opened), stamp(t.Moved), stamp(t.Remind), t.Vendor, day(t.Warranty), t.Fitted, t.Blame, t.Outcome}
		for i, f := range row {
			if f != "" && strings.ContainsRune("=+-@\t\r", rune(f[0])) {
				row[i] = "'" + f
			}
		}
		if err := w.Write(row); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

func (a *app) rmaShowCmd() *cobra.Command {
	return a.command(spec{
		use: "show TICKET|NODE", short: "Show a ticket and every step of it", args: cobra.ExactArgs(1), example: "  assay rma show R-7F3K",
		run: func(ctx context.Context, c *client.Client, args []string) error {
			t, err := ticketOf(ctx, c, args[0])
			if err != nil {
				return err
			}
			return a.emit(t, func() error { return a.showTicket(t) })
		},
	})
}

// ticketOf finds a ticket by its id, or the open one of a node.
func ticketOf(ctx context.Context, c *client.Client, arg string) (rma.Ticket, error) {
	if strings.HasPrefix(arg, "R-") {
		return c.Ticket(ctx, arg)
	}
	ts, err := c.Tickets(ctx, true)
	if err != nil {
		return rma.Ticket{}, err
	}
	for _, t := range ts {
		if t.Node == arg {
			return t, nil
		}
	}
	return rma.Ticket{}, &refusal{"no ticket of " + arg + " is open", "assay rma list --all shows those that were"}
}

func (a *app) showTicket(t rma.Ticket) error {
	var steps []string
	for _, s := range t.Steps {
		steps = append(steps, clean(strings.TrimSpace(fmt.Sprintf("%s  %s by %s  %s", s.At.Local().Format(time.RFC3339), s.State, s.By, s.Note))))
	}
	return a.facts(
		[2]string{"Ticket", clean(t.ID) + " for case " + clean(t.Case) + " on " + clean(t.Node)},
		[2]string{"State", clean(t.State) + " since " + a.when(t.Moved)},
		[2]string{"Part", clean(strings.TrimSpace(cmp.Or(t.Serial, t.Part) + " " + t.Product))},
		[2]string{"Slot", clean(t.Slot)},
		[2]string{"Cause", clean(t.Cause)},
		[2]string{"At fault", clean(t.Blame)},
		[2]string{"Owner", clean(t.Owner)},
		[2]string{"Vendor", clean(t.Vendor)},
		[2]string{"Warranty", day(t.Warranty)},
		[2]string{"Reminder", a.when(t.Remind)},
		[2]string{"In its place", clean(t.Fitted)},
		[2]string{"Outcome", clean(t.Outcome)},
		[2]string{"Steps", strings.Join(steps, "\n")},
	)
}

func (a *app) rmaOpenCmd() *cobra.Command {
	var v wire.NodeVerb
	return a.command(spec{
		use: "open CASE|NODE --reason TEXT", short: "Say that the suspected part of a node goes back to the vendor", args: cobra.ExactArgs(1),
		long: `Opens a ticket for the part by its serial. The node stays out of service until a new serial is seen in its place, or until
assay rma update says that the same part is back. Then the intake screen decides.`,
		example: "  assay rma open Q-7F3K --reason 'no spare rows left'",
		flags:   func(cmd *cobra.Command) { reasonFlag(cmd, &v.Reason) },
		run: func(ctx context.Context, c *client.Client, args []string) error {
			node := args[0]
			if strings.HasPrefix(node, "Q-") {
				k, err := c.Case(ctx, node)
				if err != nil {
					return err
				}
				if !k.Closed.IsZero() {
					return &refusal{fmt.Sprintf("case %s is closed: %s", k.ID, k.Outcome), "name the node, if it has an open case: " + k.Node}
				}
				node = k.Node
			}
			return a.orderAll([]string{node}, func(n string) (wire.Node, error) { return c.OpenRMA(ctx, n, v) })
		},
	})
}

func (a *app) rmaUpdateCmd() *cobra.Command {
	var outcome, warranty string
	var v wire.TicketVerb
	return a.command(spec{
		use: "update TICKET|NODE", short: "Say where a part is, or that it is back and how that ended", args: cobra.ExactArgs(1),
		long: `A part goes opened, accepted, shipped, received; steps may be left out. A part with a new serial is noticed by itself; that
the same part is back needs --outcome. The intake screen then decides: it closes the ticket, or opens it again.`,
		example: "  assay rma update R-7F3K --state shipped --vendor 4711 --warranty 2027-06-30\n  assay rma update gpu003 --outcome 'same board back, vendor found nothing'",
		flags: func(cmd *cobra.Command) {
			f := cmd.Flags()
			f.StringVar(&outcome, "outcome", "", "the part is back in the node: what the vendor did")
			f.StringVar(&v.State, "state", "", "accepted, shipped, received; closed to give it up before it was replaced")
			f.StringVar(&v.Vendor, "vendor", "", "the vendor's own number for it")
			f.StringVar(&warranty, "warranty", "", "the part's warranty ends on this day, as 2027-06-30")
			f.StringVar(&v.Owner, "owner", "", "who deals with it from now on")
			f.StringVar(&v.Note, "note", "", "for those who come after")
			a.completeFlag(cmd, "state", fixed(rma.Accepted, rma.Shipped, rma.Received, rma.Closed))
			cmd.MarkFlagsOneRequired("outcome", "state", "vendor", "warranty", "owner", "note")
		},
		run: func(ctx context.Context, c *client.Client, args []string) (err error) {
			if warranty != "" {
				if v.Warranty, err = time.Parse(time.DateOnly, warranty); err != nil {
					return &usageError{fmt.Sprintf("--warranty %q: no day", warranty), "write it as 2027-06-30"}
				}
			}
			node := args[0]
			if v != (wire.TicketVerb{}) || strings.HasPrefix(node, "R-") {
				t, err := ticketOf(ctx, c, node)
				if err != nil {
					return err
				}
				if v != (wire.TicketVerb{}) {
					if t, err = c.MoveTicket(ctx, t.ID, v); err != nil {
						return err
					}
				}
				if node = t.Node; outcome == "" {
					return a.emit(t, func() error { return a.showTicket(t) })
				}
			}
			return a.orderAll([]string{node}, func(n string) (wire.Node, error) {
				return c.Repaired(ctx, n, wire.NodeVerb{Reason: outcome})
			})
		},
	})
}

func (a *app) rmaPartsCmd() *cobra.Command {
	var loose bool
	return a.command(spec{
		use: "parts [SERIAL...]", short: "Show the ledger: where boards have been, and what they failed with", args: cobra.ArbitraryArgs,
		long:    "With --loose only those that are in no node: with the vendor, or on the shelf as spares.",
		example: "  assay rma parts 1653921004711\n  assay rma parts --loose",
		flags:   func(cmd *cobra.Command) { cmd.Flags().BoolVar(&loose, "loose", false, "only those in no node") },
		run: func(ctx context.Context, c *client.Client, args []string) error {
			ps, err := c.Parts(ctx, args...)
			if err != nil {
				return err
			}
			kept := make([]rma.Part, 0, len(ps))
			for _, p := range ps {
				if !loose || len(p.Places) > 0 && !p.Places[len(p.Places)-1].Until.IsZero() {
					kept = append(kept, p)
				}
			}
			return a.emit(kept, func() error { return a.partRows(kept) })
		},
	})
}

func (a *app) partRows(ps []rma.Part) error {
	rows := make([][]string, 0, len(ps))
	for _, p := range ps {
		where, faults := "", []string{}
		if n := len(p.Places); n > 0 {
			last := p.Places[n-1]
			if where = last.Node + " " + last.Slot; !last.Until.IsZero() {
				where = "in no node since " + day(last.Until) + "; was in " + where
			}
		}
		for _, f := range p.Faults {
			faults = append(faults, f.Cause+" "+f.Case)
		}
		rows = append(rows, []string{clean(p.Serial), dash(clean(p.Product)), dash(clean(where)), fmt.Sprint(len(p.Places)), dash(clean(strings.Join(faults, ", ")))})
	}
	return a.rows([]string{"serial", "product", "place", "places", "faults"}, rows)
}
