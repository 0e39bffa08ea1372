package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/checks/hostlist"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/client"
	"github.com/assay-gpu/assay/coordinator/wire"
)

func (a *app) nodeCmd() *cobra.Command {
	return a.groupCmd("node", "List, explain and order nodes", "  assay node list\n  assay node explain gpu003",
		a.nodeListCmd(), a.nodeShowCmd(), a.nodeHistoryCmd(), a.nodeExplainCmd(), a.nodeDrainCmd(), a.nodeResumeCmd(),
		a.nodeHoldCmd(), a.nodeUnholdCmd(), a.nodeEnrollCmd(), a.nodeRetireCmd())
}

func (a *app) nodeListCmd() *cobra.Command {
	var states []string
	var out bool
	return a.command(spec{
		use: "list [HOSTLIST...]", short: "List nodes", args: cobra.ArbitraryArgs,
		example: `  assay node list
  assay node list 'gpu[001-016]' -o wide
  assay node list --state quarantined,rma
  assay node list --out -o json | jq -r '.[].name'`,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringSliceVar(&states, "state", nil, "only nodes in these states")
			a.completeFlag(cmd, "state", fixed(stateNames()...))
			cmd.Flags().BoolVar(&out, "out", false, "only nodes out of service")
		},
		run: func(ctx context.Context, c *client.Client, args []string) error {
			list, _, err := nodeNames(args)
			if err != nil {
				return err
			}
			for _, s := range states {
				if !knownState(s) {
					return &usageError{fmt.Sprintf("--state %q: no such state", s), "states are " + strings.Join(stateNames(), ", ")}
				}
			}
			nodes, err := c.Nodes(ctx, list)
			if err != nil {
				return err
			}
			kept := make([]wire.Node, 0, len(nodes))
			for _, n := range nodes {
				if (len(states) == 0 || contains(states, n.State)) && (!out || outOfService(n)) {
					kept = append(kept, n)
				}
			}
			return a.emit(kept, func() error {
				if len(kept) == 0 {
					fmt.Fprintln(a.err, "no such node")
					return nil
				}
				return a.nodeRows(kept)
			})
		},
	})
}

func (a *app) nodeShowCmd() *cobra.Command {
	return a.command(spec{
		use: "show HOSTLIST...", short: "Show all that is known of nodes", args: cobra.MinimumNArgs(1),
		example: "  assay node show gpu003\n  assay node show 'gpu[003-004]' -o yaml",
		run: func(ctx context.Context, c *client.Client, args []string) error {
			list, _, err := nodeNames(args)
			if err != nil {
				return err
			}
			nodes, err := c.Nodes(ctx, list)
			if err != nil {
				return err
			}
			return a.emit(nodes, func() error {
				for i, n := range nodes {
					if i > 0 {
						fmt.Fprintln(a.out)
					}
					if err := a.nodeFacts(n); err != nil {
						return err
					}
				}
				return nil
			})
		},
	})
}

// nodeNames reads hostlists: as one list for the server, and as names.
func nodeNames(args []string) (list string, names []string, err error) {
	if len(args) == 0 {
		return "", nil, nil
	}
	list = strings.Join(args, ",")
	if names, err = hostlist.Expand(list); err != nil {
		return "", nil, &usageError{err.Error(), "a hostlist looks like gpu[001-008,012] or gpu001,gpu002; quote it from the shell"}
	}
	if len(names) == 0 {
		return "", nil, &usageError{fmt.Sprintf("%q names no node", list), ""}
	}
	return list, names, nil
}

// oneNode reads an argument that must name one node.
func oneNode(arg string) (string, error) {
	_, names, err := nodeNames([]string{arg})
	if err != nil {
		return "", err
	}
	if len(names) != 1 {
		return "", &usageError{fmt.Sprintf("%q names %d nodes; want one", arg, len(names)), ""}
	}
	return names[0], nil
}

// nodeRows writes a table of nodes; with -o wide all that fits on a long line.
func (a *app) nodeRows(nodes []wire.Node) error {
	header := []string{"node", "state", "since", "certificate", "case", "owner", "reason"}
	if a.wide() {
		header = []string{"node", "state", "since", "certificate", "case", "owner", "deadline", "marks", "holds", "gpus", "driver", "leaf", "slurm", "seen", "pending", "reason"}
	}
	rows := make([][]string, 0, len(nodes))
	for _, n := range nodes {
		why := strings.Join(n.Reasons, "; ")
		if why == "" && len(n.Holds) > 0 {
			why = "held by " + n.Holds[0].Owner + ": " + n.Holds[0].Reason
		}
		if why == "" && len(n.Observed) > 0 {
			why = "only observed: " + strings.Join(n.Observed, "; ")
		}
		state := a.state(n.State, n.Lost)
		if !a.wide() {
			rows = append(rows, []string{clean(n.Name), state, a.age(n.Since), a.certText(n), dash(clean(n.Case)), dash(clean(n.Owner)), dash(cut(why, 60))})
			continue
		}
		slurm := ""
		if n.Slurm != nil {
			slurm = n.Slurm.State
		}
		var holds, pending []string
		for _, h := range n.Holds {
			holds = append(holds, h.Owner)
		}
		for _, e := range n.Effects {
			pending = append(pending, e.Kind)
		}
		rows = append(rows, []string{clean(n.Name), state, a.age(n.Since), a.certText(n), dash(clean(n.Case)), dash(clean(n.Owner)), dash(a.age(n.Deadline)),
			dash(clean(strings.Join(n.Marks, ","))), dash(clean(strings.Join(holds, ","))), fmt.Sprint(n.GPUs), dash(clean(n.Driver)), dash(clean(n.Leaf)),
			dash(clean(slurm)), dash(a.age(n.LastSeen)), dash(clean(strings.Join(pending, ","))), dash(clean(why))})
	}
	return a.rows(header, rows)
}

// certText says in a few words what certificate a node holds.
func (a *app) certText(n wire.Node) string {
	switch c := n.Certificate; {
	case c == nil:
		return "none"
	case n.Suspended:
		return c.Level.String() + ", suspended"
	case !a.now().Before(c.Expires):
		return c.Level.String() + ", expired " + a.age(c.Expires)
	default:
		return c.Level.String() + ", ends " + a.age(c.Expires)
	}
}

func (a *app) nodeFacts(n wire.Node) error {
	cert := a.certText(n)
	if c := n.Certificate; c != nil {
		cert = fmt.Sprintf("%s; serial %d, expires %s", cert, c.Serial, a.when(c.Expires))
	}
	return a.facts(
		[2]string{"Node", clean(n.Name)},
		[2]string{"State", a.state(n.State, n.Lost) + " since " + a.when(n.Since)},
		[2]string{"Marks", clean(strings.Join(n.Marks, ", "))},
		[2]string{"Reasons", cleanLines(strings.Join(n.Reasons, "\n"))},
		[2]string{"Case", clean(n.Case)},
		[2]string{"Owner", clean(n.Owner)},
		[2]string{"Deadline", a.when(n.Deadline)},
		[2]string{"Holds", a.holdLines(n.Holds)},
		[2]string{"Certificate", cert},
		[2]string{"Slurm", a.slurmLine(n.Slurm)},
		[2]string{"Pending", a.effectLines(n.Effects)},
		[2]string{"Hardware", fmt.Sprintf("%s, driver %s", count(n.GPUs, "GPU"), dash(clean(n.Driver)))},
		[2]string{"Leaf", clean(n.Leaf)},
		[2]string{"Boot", clean(n.BootID)},
		[2]string{"Last seen", a.when(n.LastSeen)},
	)
}

func (a *app) holdLines(hs []wire.Hold) string {
	var lines []string
	for _, h := range hs {
		until := "until removed"
		if !h.Expires.IsZero() {
			until = "until " + a.when(h.Expires)
		}
		lines = append(lines, fmt.Sprintf("%s: %s, %s", clean(h.Owner), clean(h.Reason), until))
	}
	return strings.Join(lines, "\n")
}

func (a *app) slurmLine(s *wire.SlurmNode) string {
	if s == nil {
		return ""
	}
	line := clean(s.State)
	if s.Reason != "" {
		line += fmt.Sprintf(", %q by %s", clean(s.Reason), dash(clean(s.ReasonUser)))
		if !s.ReasonTime.IsZero() {
			line += " at " + a.when(s.ReasonTime)
		}
	}
	if len(s.Jobs) > 0 {
		line += ", jobs " + clean(strings.Join(s.Jobs, " "))
	}
	return line
}

func (a *app) effectLines(es []wire.Effect) string {
	var lines []string
	for _, e := range es {
		lines = append(lines, fmt.Sprintf("%s, asked for %s", clean(e.Kind), a.when(e.Created)))
	}
	return strings.Join(lines, "\n")
}

func (a *app) nodeEnrollCmd() *cobra.Command {
	var ask wire.EnrolAsk
	ttl := policy.Duration(time.Hour)
	return a.command(spec{
		use: "enroll HOSTLIST...", short: "Make one-time tokens that turn hosts into nodes", args: cobra.MinimumNArgs(1),
		long: `Prints one token for each node. On the node, assay-agent enroll --token TOKEN turns it into the node's identity.
A token works once, and only until it expires; keep it as you would a password.

With --adopt the nodes are live already: the next prolog that passes certifies them. Without it a node first
passes the intake screen.`,
		example: `  assay node enroll gpu009
  assay node enroll 'gpu[001-008]' --adopt
  assay node enroll 'gpu[001-008]' --adopt -o json | jq -r '.[] | "\(.node) \(.token)"'`,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().BoolVar(&ask.Adopt, "adopt", false, "live nodes: a passing prolog certifies them without an intake screen")
			durationFlag(cmd, &ttl, "ttl", "how long the tokens work, up to 7d")
			cmd.Flags().StringVar(&ask.Leaf, "leaf", "", "leaf switch the nodes hang under, if Slurm does not say")
			a.completeFlag(cmd, "leaf", offerOfNodes(func(n wire.Node) []string { return []string{n.Leaf} }))
		},
		run: func(ctx context.Context, c *client.Client, args []string) error {
			var err error
			if _, ask.Nodes, err = nodeNames(args); err != nil {
				return err
			}
			ask.TTL = ttl.D().String()
			tokens, err := c.Enroll(ctx, ask)
			if err != nil {
				return err
			}
			return a.emit(tokens, func() error {
				rows := make([][]string, 0, len(tokens))
				for _, t := range tokens {
					rows = append(rows, []string{clean(t.Node), clean(t.Token), a.when(t.Expires)})
				}
				if err := a.rows([]string{"node", "token", "expires"}, rows); err != nil {
					return err
				}
				fmt.Fprintln(a.err, "On each node, as root: assay-agent enroll --token TOKEN")
				return nil
			})
		},
	})
}

func (a *app) nodeHistoryCmd() *cobra.Command {
	return a.command(spec{
		use: "history NODE", short: "Print a node's transitions and decisions, oldest first", args: cobra.ExactArgs(1),
		long: `The form is that of the state machine's test files: what is printed here can be pasted into a test.`,
		example: `  assay node history gpu003
  assay node history gpu003 -o json`,
		run: func(ctx context.Context, c *client.Client, args []string) error {
			node, err := oneNode(args[0])
			if err != nil {
				return err
			}
			es, err := c.NodeHistory(ctx, node)
			if err != nil {
				return err
			}
			return a.emit(es, func() error {
				for i, e := range es {
					if i > 0 {
						fmt.Fprintln(a.out)
					}
					a.testForm(e)
				}
				return nil
			})
		},
	})
}

// testForm writes an entry as a datadriven test case: a comment, the event, a rule, what came of it.
func (a *app) testForm(e wire.HistoryEntry) {
	fmt.Fprintf(a.out, "# %s by %s", a.when(e.At), clean(e.By))
	if e.Case != "" {
		fmt.Fprintf(a.out, ", case %s", clean(e.Case))
	}
	fmt.Fprintf(a.out, "\nevent\n%s\n----\n", clean(e.Event))
	if e.From != "" || e.To != "" {
		fmt.Fprintf(a.out, "%s -> %s\n", dash(clean(e.From)), dash(clean(e.To)))
	}
	for _, d := range e.Detail {
		fmt.Fprintln(a.out, "  "+strings.TrimSpace(clean(d)))
	}
}

// orderAll gives one order to each node and writes where each stands after it. A refusal on one does not stop the
// rest; the first error decides the exit status.
func (a *app) orderAll(names []string, order func(node string) (wire.Node, error)) error {
	var done []wire.Node
	var first error
	for _, name := range names {
		n, err := order(name)
		if err != nil {
			var gone *client.UnreachableError
			if errors.As(err, &gone) {
				first = err
				break // the others would wait as long for nothing
			}
			if first == nil {
				first = err
			} else {
				fmt.Fprintf(a.err, "assay: %s: %s\n", name, cleanLines(err.Error()))
			}
			continue
		}
		done = append(done, n)
	}
	if len(done) > 0 || first == nil {
		if err := a.emit(done, func() error { return a.nodeRows(done) }); err != nil {
			return err
		}
	}
	if first != nil && len(names) > 1 {
		fmt.Fprintf(a.err, "done on %d of %s\n", len(done), count(len(names), "node"))
	}
	return first
}
