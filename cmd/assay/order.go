package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/assay-gpu/assay/checks/hostlist"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/client"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// askOver is how many nodes an order may touch without being confirmed.
const askOver = 10

// Risks that an operator may accept by name.
const (
	riskNoCertificate = "no-certificate" // resume although no fresh certificate says the fault is gone
	riskQuarantined   = "quarantined"    // a range holds nodes that are out of service
	riskUnmanaged     = "unmanaged"      // after retire hooks pass whatever the hardware's state
)

func reasonFlag(cmd *cobra.Command, into *string) {
	cmd.Flags().StringVar(into, "reason", "", "why, for those who come after (required)")
	cmd.MarkFlagRequired("reason")
}

// durationFlag adds a flag for a time span, written as policy files write it: days too.
func durationFlag(cmd *cobra.Command, into *policy.Duration, name, usage string) {
	cmd.Flags().Var(duration{into}, name, usage)
}

// A duration is a flag's value.
type duration struct{ *policy.Duration }

func (d duration) Set(text string) error { return d.UnmarshalText([]byte(text)) }
func (d duration) Type() string          { return "duration" }
func (d duration) String() string {
	if d.Duration == nil || *d.Duration == 0 {
		return ""
	}
	return d.Duration.String()
}

func (a *app) yesFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.yes, "yes", false, fmt.Sprintf("do not ask, not even over %d nodes", askOver))
}

// confirm says on stderr what is about to be touched and asks when it is much.
func (a *app) confirm(verb string, names []string) error {
	fmt.Fprintf(a.err, "%s %s: %s\n", verb, count(len(names), "node"), hostlist.Compress(names))
	if len(names) <= askOver || a.yes {
		return nil
	}
	ok, err := a.ask(fmt.Sprintf("Really %s %d nodes? [y/N] ", verb, len(names)))
	if err != nil {
		return &refusal{fmt.Sprintf("%s of %d nodes is not confirmed", verb, len(names)), "over ten nodes it takes a terminal to ask on, or --yes"}
	}
	if !ok {
		return &refusal{"nothing was done", ""}
	}
	return nil
}

// ask puts a question on the terminal; it is an error if there is none.
func (a *app) ask(question string) (bool, error) {
	f, ok := a.in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return false, os.ErrNotExist
	}
	fmt.Fprint(a.err, question)
	line, err := bufio.NewReader(f).ReadString('\n')
	if err != nil && line == "" {
		return false, nil // end of input is no
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return true, nil
	}
	return false, nil
}

func (a *app) nodeDrainCmd() *cobra.Command {
	var v wire.NodeVerb
	return a.command(spec{
		use: "drain HOSTLIST... --reason TEXT", short: "Take nodes out of service", args: cobra.MinimumNArgs(1),
		long: `No new jobs start on the nodes; those that run go on. A case is opened, and the nodes stay out until assay node resume:
what a person has drained does not come back by itself.`,
		example: `  assay node drain gpu003 --reason 'fan noise, ticket 4711'
  assay node drain 'gpu[017-032]' --reason 'rack 2 power work' --yes`,
		flags: func(cmd *cobra.Command) { reasonFlag(cmd, &v.Reason); a.yesFlag(cmd) },
		run: func(ctx context.Context, c *client.Client, args []string) error {
			_, names, err := nodeNames(args)
			if err != nil {
				return err
			}
			if err := a.confirm("drain", names); err != nil {
				return err
			}
			return a.orderAll(names, func(n string) (wire.Node, error) { return c.Drain(ctx, n, v) })
		},
	})
}

func (a *app) nodeHoldCmd() *cobra.Command {
	var v wire.NodeVerb
	var d policy.Duration
	return a.command(spec{
		use: "hold HOSTLIST... --reason TEXT", short: "Keep nodes from being resumed or given work until you say so", args: cobra.MinimumNArgs(1),
		example: `  assay node hold gpu003 --reason 'board swap' --for 2d
  assay node unhold gpu003`,
		flags: func(cmd *cobra.Command) {
			reasonFlag(cmd, &v.Reason)
			a.yesFlag(cmd)
			durationFlag(cmd, &d, "for", "the hold ends by itself after this long, as 48h or 2d (default: never)")
		},
		run: func(ctx context.Context, c *client.Client, args []string) error {
			_, names, err := nodeNames(args)
			if err != nil {
				return err
			}
			if d < 0 {
				return &usageError{fmt.Sprintf("--for %s: want a time to come", d), ""}
			}
			if d > 0 {
				v.Until = a.now().Add(d.D())
			}
			if err := a.confirm("hold", names); err != nil {
				return err
			}
			return a.orderAll(names, func(n string) (wire.Node, error) { return c.Hold(ctx, n, v) })
		},
	})
}

func (a *app) nodeUnholdCmd() *cobra.Command {
	var v wire.NodeVerb
	return a.command(spec{
		use: "unhold HOSTLIST...", short: "Remove your hold from nodes", args: cobra.MinimumNArgs(1),
		example: "  assay node unhold gpu003\n  assay node unhold gpu003 --owner alice",
		flags: func(cmd *cobra.Command) {
			a.yesFlag(cmd)
			cmd.Flags().StringVar(&v.Owner, "owner", "", "whose hold to remove (default: yours)")
			a.completeFlag(cmd, "owner", offerOfNodes(holders))
			cmd.Flags().StringVar(&v.Reason, "reason", "", "why, for those who come after")
		},
		run: func(ctx context.Context, c *client.Client, args []string) error {
			_, names, err := nodeNames(args)
			if err != nil {
				return err
			}
			if err := a.confirm("unhold", names); err != nil {
				return err
			}
			return a.orderAll(names, func(n string) (wire.Node, error) { return c.Unhold(ctx, n, v) })
		},
	})
}

func (a *app) nodeRetireCmd() *cobra.Command {
	var v wire.NodeVerb
	return a.command(spec{
		use: "retire HOSTLIST... --reason TEXT --accept-risk=unmanaged", short: "End assay's care for nodes", args: cobra.MinimumNArgs(1),
		long: `The certificate is revoked and the case closed. From then on the node's hooks pass whatever state its hardware is
in: that is the risk to accept.`,
		example: "  assay node retire gpu003 --reason 'sent back, lease over' --accept-risk=unmanaged",
		flags: func(cmd *cobra.Command) {
			reasonFlag(cmd, &v.Reason)
			a.yesFlag(cmd)
			cmd.Flags().StringVar(&v.AcceptRisk, "accept-risk", "", "unmanaged: jobs may start there with nothing checked")
			a.completeFlag(cmd, "accept-risk", fixed(riskUnmanaged))
		},
		run: func(ctx context.Context, c *client.Client, args []string) error {
			_, names, err := nodeNames(args)
			if err != nil {
				return err
			}
			if err := knownRisks([]string{v.AcceptRisk}, riskUnmanaged); err != nil {
				return err
			}
			if v.AcceptRisk == "" {
				return &refusal{"retire " + hostlist.Compress(names) + ": hooks there will pass whatever state the hardware is in",
					"to accept that, say --accept-risk=" + riskUnmanaged}
			}
			if err := a.confirm("retire", names); err != nil {
				return err
			}
			return a.orderAll(names, func(n string) (wire.Node, error) { return c.Retire(ctx, n, v) })
		},
	})
}

func (a *app) nodeResumeCmd() *cobra.Command {
	var v wire.NodeVerb
	var risks []string
	return a.command(spec{
		use: "resume HOSTLIST... --reason TEXT", short: "Put nodes back in service", args: cobra.MinimumNArgs(1),
		long: `A resume needs a fresh certificate of the level that the node's case demands. Without one the node is screened first,
and resumed when that passes; to resume it unscreened, accept the risk by name. A drain under way is cancelled.

A range that holds nodes out of service for a fault is refused: name each such node by itself, confirm on the
terminal, or accept the risk "quarantined". Nodes of a range that are in service already are left alone.`,
		example: `  assay node resume gpu003 --reason 'ticket 4711 closed'
  assay node resume gpu003 --reason 'known quirk' --accept-risk=no-certificate
  assay node resume 'gpu[001-008]' --reason 'rack work over' --accept-risk=quarantined`,
		flags: func(cmd *cobra.Command) {
			reasonFlag(cmd, &v.Reason)
			a.yesFlag(cmd)
			cmd.Flags().StringSliceVar(&risks, "accept-risk", nil, "no-certificate: nothing says the fault is gone; quarantined: the range holds nodes out for a fault")
			a.completeFlag(cmd, "accept-risk", fixed(riskNoCertificate, riskQuarantined))
		},
		run: func(ctx context.Context, c *client.Client, args []string) error {
			list, names, err := nodeNames(args)
			if err != nil {
				return err
			}
			if err := knownRisks(risks, riskNoCertificate, riskQuarantined); err != nil {
				return err
			}
			if slices.Contains(risks, riskNoCertificate) {
				v.AcceptRisk = riskNoCertificate
			}
			nodes, err := c.Nodes(ctx, list)
			if err != nil {
				return err
			}
			if names, err = a.resumable(list, names, nodes, slices.Contains(risks, riskQuarantined)); err != nil {
				return err
			}
			if len(names) == 0 {
				fmt.Fprintln(a.err, "nothing to do: all are in service")
				return nil
			}
			if err := a.confirm("resume", names); err != nil {
				return err
			}
			return a.orderAll(names, func(n string) (wire.Node, error) { return c.Resume(ctx, n, v) })
		},
	})
}

// holders are those who hold a node.
func holders(n wire.Node) (names []string) {
	for _, h := range n.Holds {
		names = append(names, h.Owner)
	}
	return names
}

// resumable picks the nodes to resume: those named one by one, and those of ranges that are out of service. Members of
// a range that are out for a fault need the risk accepted or a yes on the terminal: a range resumed in haste has put
// known-bad nodes back to work.
func (a *app) resumable(list string, names []string, nodes []wire.Node, accepted bool) ([]string, error) {
	single := namedAlone(list)
	byName := make(map[string]wire.Node, len(nodes))
	for _, n := range nodes {
		byName[n.Name] = n
	}
	var pick, faulty []string
	for _, name := range names {
		n := byName[name]
		switch {
		case single[name]:
			pick = append(pick, name)
		case slices.Contains(outStates, lifecycle.State(n.State)):
			pick = append(pick, name)
			faulty = append(faulty, name)
		case outOfService(n):
			pick = append(pick, name)
		}
	}
	if len(faulty) == 0 {
		return pick, nil
	}
	fmt.Fprintf(a.err, "%s of the range out of service for a fault:\n", count(len(faulty), "node"))
	for _, name := range faulty {
		n := byName[name]
		fmt.Fprintf(a.err, "  %s  %s  %s  %s\n", clean(n.Name), clean(n.State), dash(clean(n.Case)), dash(cut(strings.Join(n.Reasons, "; "), 60)))
	}
	if accepted {
		return pick, nil
	}
	ok, err := a.ask(fmt.Sprintf("Resume %s too? [y/N] ", hostlist.Compress(faulty)))
	if err == nil && ok {
		return pick, nil
	}
	return nil, &refusal{"resume refused: the range holds " + hostlist.Compress(faulty),
		"name each such node by itself, or say --accept-risk=" + riskQuarantined}
}

// namedAlone returns the names in a hostlist that stand by themselves, outside any bracket.
func namedAlone(list string) map[string]bool {
	alone := map[string]bool{}
	depth, start := 0, 0
	for i := 0; i <= len(list); i++ {
		if i < len(list) {
			switch list[i] {
			case '[':
				depth++
			case ']':
				depth--
			}
			if list[i] != ',' || depth > 0 {
				continue
			}
		}
		if w := strings.TrimSpace(list[start:i]); w != "" && !strings.ContainsRune(w, '[') {
			alone[w] = true
		}
		start = i + 1
	}
	return alone
}

func knownRisks(risks []string, known ...string) error {
	for _, r := range risks {
		if r != "" && !slices.Contains(known, r) {
			return &usageError{fmt.Sprintf("--accept-risk=%s: no such risk here", r), "risks that may be accepted: " + strings.Join(known, ", ")}
		}
	}
	return nil
}

func stateNames() []string {
	return []string{string(lifecycle.Enrolled), string(lifecycle.Certified), string(lifecycle.Screening), string(lifecycle.Suspect), string(lifecycle.Withheld),
		string(lifecycle.Draining), string(lifecycle.Quarantined), string(lifecycle.Remediating), string(lifecycle.RMA), string(lifecycle.Retired)}
}

func knownState(s string) bool            { return slices.Contains(stateNames(), s) }
func contains(ss []string, s string) bool { return slices.Contains(ss, s) }
