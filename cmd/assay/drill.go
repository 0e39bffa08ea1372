package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/client"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// drillLook is how long to wait between two looks at a drill under way.
const drillLook = 200 * time.Millisecond

func (a *app) drillCmd() *cobra.Command {
	var ask wire.DrillAsk
	var gpu int
	var last bool
	return a.command(spec{
		use: "drill [NODE]", short: "Make up a fault and follow it through the whole chain", args: cobra.MaximumNArgs(1), follow: true,
		long: `Has the agent of a node judge a made-up kernel log line, "GPU has fallen off the bus", by its own rules. What that finds is marked
as a drill's: it is reported, decided on and paged like a real fault, and changes nothing. What would have been done is printed
and stands in history. The drill has come back when the pager has taken its page and the agent has said that the node's
certificate still holds. Without NODE the control plane takes the next one in turn that is certified and well.

Pages of a drill have the reason "drill". When it does not come back in time, assayd pages with "drill_failed", the metric
assay_drill_failed is 1, and this command ends with 1. Policy's drill.every has drills begin by themselves.

With --accept-risk=` + wire.RiskDrain + ` the node is really drained, screened, and resumed; it must have no job.`,
		example: "  assay drill\n  assay drill gpu003 --gpu 5\n  assay drill gpu003 --accept-risk=drain --within 1h\n  assay drill --last",
		flags: func(cmd *cobra.Command) {
			cmd.Flags().IntVar(&gpu, "gpu", -1, "index of the GPU that is to have fallen off the bus; default the node's first")
			cmd.Flags().StringVar(&ask.Reason, "reason", "", "why, for history")
			cmd.Flags().StringVar(&ask.AcceptRisk, "accept-risk", "", wire.RiskDrain+": take the node out for it and bring it back")
			a.completeFlag(cmd, "accept-risk", fixed(wire.RiskDrain))
			durationFlag(cmd, &ask.Within, "within", "by when it must be back; default as policy's drill.within, and 1h when it drains")
			cmd.Flags().BoolVar(&last, "last", false, "show the drill under way or the last, and begin none")
		},
		run: func(ctx context.Context, c *client.Client, args []string) error {
			if last {
				if len(args) > 0 || gpu >= 0 || ask != (wire.DrillAsk{}) {
					return &usageError{"--last shows what was, and goes with nothing else", ""}
				}
				return a.lastDrill(ctx, c)
			}
			if len(args) == 1 {
				node, err := oneNode(args[0])
				if err != nil {
					return err
				}
				ask.Node = node
			}
			if gpu >= 0 {
				ask.GPU = &gpu
			}
			d, err := c.StartDrill(ctx, ask)
			if err != nil {
				return err
			}
			return a.followDrill(ctx, c, d)
		},
	})
}

func (a *app) lastDrill(ctx context.Context, c *client.Client) error {
	d, err := c.Drill(ctx)
	if err != nil {
		return err
	}
	return a.drillAnswer(d, func() error {
		if d.ID == "" {
			fmt.Fprintln(a.err, "there has been no drill")
			return nil
		}
		a.drillHead(d)
		for _, s := range d.Steps {
			a.drillStep(d, s)
		}
		a.drillEnd(d)
		return nil
	})
}

// drillAnswer gives the drill and the exit status that goes with it.
func (a *app) drillAnswer(d wire.Drill, show func() error) error {
	if err := a.emit(d, show); err != nil {
		return err
	}
	if d.Outcome == wire.DrillFailed {
		return errFault
	}
	return nil
}

// followDrill prints each step as it comes. Over a change of leaders it goes on: the drill is in the store.
func (a *app) followDrill(ctx context.Context, c *client.Client, d wire.Drill) error {
	id, told, text := d.ID, 0, a.output == "table" || a.wide()
	if text {
		a.drillHead(d)
	}
	late := time.Now().Add(d.Deadline.Sub(d.Started) + a.timeout)
	for {
		if text {
			for ; told < len(d.Steps); told++ {
				a.drillStep(d, d.Steps[told])
			}
		}
		if !d.Ended.IsZero() {
			return a.drillAnswer(d, func() error { a.drillEnd(d); return nil })
		}
		t := time.NewTimer(drillLook)
		select {
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		case <-t.C:
		}
		next, err := c.Drill(ctx)
		switch {
		case err != nil && (exitOf(err) != exitUnknown || time.Now().After(late)):
			return err
		case err != nil:
			continue
		case next.ID != id:
			return fmt.Errorf("drill %s: another one, %s, has begun since", id, next.ID)
		case time.Now().After(late) && next.Ended.IsZero():
			return fmt.Errorf("drill %s: its time is over, and the control plane has not ended it", id)
		}
		d = next
	}
}

func (a *app) drillHead(d wire.Drill) {
	what := "marked, nothing is drained"
	if d.Drains {
		what = "really drained"
	}
	fmt.Fprintf(a.out, "drill %s on %s GPU %d, %s; back by %s\n", clean(d.ID), clean(d.Node), d.GPU, what, a.when(d.Deadline))
}

// drillStep prints one step with its time from the beginning.
func (a *app) drillStep(d wire.Drill, s wire.DrillStep) {
	fmt.Fprintf(a.out, "%8s  %s\n", fmt.Sprintf("+%.1fs", s.At.Sub(d.Started).Seconds()), clean(s.Name))
	for _, line := range s.Detail {
		fmt.Fprintf(a.out, "%8s  %s\n", "", "  "+strings.TrimSpace(clean(line)))
	}
}

func (a *app) drillEnd(d wire.Drill) {
	switch d.Outcome {
	case wire.DrillPassed:
		fmt.Fprintf(a.out, "drill %s passed in %s\n", clean(d.ID), policy.Duration(d.Ended.Sub(d.Started).Round(100*time.Millisecond)))
	case wire.DrillFailed:
		fmt.Fprintf(a.out, "drill %s failed: %s\n", clean(d.ID), clean(d.Why))
	default:
		fmt.Fprintf(a.out, "drill %s is under way; next: %s\n", clean(d.ID), clean(d.Waits))
	}
}
