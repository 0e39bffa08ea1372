package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/client"
)

// An app is one run of the program: its streams, its clock and its global flags.
type app struct {
	in       io.Reader
	out, err io.Writer
	now      func() time.Time

	socket, server string
	cert, key, ca  string
	output         string
	noColor        bool
	timeout        time.Duration
	yes            bool

	running bool // the command line was good
}

const exitText = `Exit status: 0 done or healthy, 1 a fault found or refused, 2 unknown, 64 usage.`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "assay",
		Short: "Certify GPU nodes: see the fleet, explain a node, give orders",
		Long: `assay shows and steers a fleet of GPU nodes. A node may run work only while it holds a certificate: dated,
expiring proof that this hardware, with this driver, passed a named screen.

It talks to assayd: on a control host over the unix socket, elsewhere with --server and an operator's
certificate. Wherever nodes are named, a hostlist will do: 'gpu[001-016,020]'.

` + exitText,
		Example: `  assay fleet                                     what needs attention
  assay node explain gpu003                       why it is out, and what happens next
  assay node enroll 'gpu[001-008]' --adopt        tokens for live nodes
  assay events --follow                           as it happens`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			return a.checkFlags()
		},
	}
	f := root.PersistentFlags()
	f.StringVar(&a.socket, "socket", client.DefaultSocket, "unix socket of the assayd on this host")
	f.StringVar(&a.server, "server", "", "URL of a control host instead, as https://control1:7420; needs --cert, --key and --ca")
	f.StringVar(&a.cert, "cert", "", "with --server: the operator's certificate, PEM file")
	f.StringVar(&a.key, "key", "", "with --server: its private key, PEM file")
	f.StringVar(&a.ca, "ca", "", "with --server: the fleet's authority, PEM file")
	f.StringVarP(&a.output, "output", "o", "table", "form of the result: table, wide, json or yaml")
	f.BoolVar(&a.noColor, "no-color", false, "no colours (also: NO_COLOR in the environment)")
	f.DurationVar(&a.timeout, "timeout", 30*time.Second, "longest wait for an answer")
	for _, name := range []string{"server", "timeout"} {
		root.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "wide", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	a.group(root)
	root.AddCommand(a.fleetCmd(), a.nodeCmd(), a.guardCmd(), a.caseCmd(), a.certCmd(), a.rmaCmd(), a.eventsCmd(), a.auditCmd(), a.drillCmd(), a.policyCmd(), a.topoCmd(), a.jobCmd(), a.queueCmd(), a.accountCmd(), a.qosCmd(), a.partitionCmd(), a.reservationCmd(), a.simCmd(), a.operatorCmd(), a.versionCmd(), a.manCmd())
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		a.group(completion)
	}
	return root
}

// checkFlags gives every fault of the flags that all commands have.
func (a *app) checkFlags() error {
	var faults []error
	add := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	switch a.output {
	case "table", "wide", "json", "yaml":
	default:
		add("--output %q: want table, wide, json or yaml", a.output)
	}
	if a.timeout <= 0 {
		add("--timeout %s: want more than nothing", a.timeout)
	}
	if a.server == "" && (a.cert != "" || a.key != "" || a.ca != "") {
		add("--cert, --key and --ca go with --server")
	}
	if a.server != "" && (a.cert == "" || a.key == "" || a.ca == "") {
		add("--server needs --cert, --key and --ca; assay operator issue makes them")
	}
	return errors.Join(faults...)
}

// connect makes the client that the flags ask for.
func (a *app) connect() (*client.Client, error) {
	if a.server == "" {
		return client.Unix(a.socket), nil
	}
	var pem [3][]byte
	for i, name := range []string{a.ca, a.cert, a.key} {
		var err error
		if pem[i], err = os.ReadFile(name); err != nil {
			return nil, &usageError{err.Error(), "assay operator issue NAME on the control host makes certificate, key and authority files"}
		}
	}
	cfg, err := authority.ClientTLS(pem[0], pem[1], pem[2])
	if err != nil {
		return nil, &usageError{err.Error(), "assay operator issue NAME on the control host makes certificate, key and authority files"}
	}
	c, err := client.TLS(a.server, cfg)
	if err != nil {
		return nil, &usageError{err.Error(), ""}
	}
	return c, nil
}

// A spec is one command.
type spec struct {
	use, short, long, example string
	args                      cobra.PositionalArgs
	follow                    bool // runs until interrupted: no overall timeout
	local                     bool // does not talk to the control plane
	flags                     func(*cobra.Command)
	offers                    map[string]offer // what the shell offers for words of use, where it is not what offers has
	keys                      []string         // what it offers for KEY=VALUE, each with its =
	run                       func(ctx context.Context, c *client.Client, args []string) error
}

func (a *app) command(s spec) *cobra.Command {
	long := s.short + "."
	if s.long != "" {
		long += "\n\n" + s.long
	}
	cmd := &cobra.Command{
		Use: s.use, Short: s.short, Long: long + "\n\n" + exitText, Example: s.example, Args: s.args,
		RunE: func(cmd *cobra.Command, args []string) error {
			a.running = true
			ctx := cmd.Context()
			if !s.follow {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeoutCause(ctx, a.timeout, fmt.Errorf("no answer within %s", a.timeout))
				defer cancel()
			}
			if s.local {
				return s.run(ctx, nil, args)
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			defer c.Close()
			return s.run(ctx, c, args)
		},
	}
	if s.flags != nil {
		s.flags(cmd)
	}
	a.complete(cmd, s)
	return cmd
}

// group makes a command that only has others under it refuse to be called alone, or with a name it does not know.
func (a *app) group(cmd *cobra.Command) {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			var names []string
			for _, sub := range cmd.Commands() {
				if sub.IsAvailableCommand() {
					names = append(names, sub.Name())
				}
			}
			return fmt.Errorf("%s: which of %s?", cmd.CommandPath(), strings.Join(names, ", "))
		}
		msg := fmt.Sprintf("%s has no command %q", cmd.CommandPath(), args[0])
		if cmd.SuggestionsMinimumDistance == 0 {
			cmd.SuggestionsMinimumDistance = 2
		}
		if s := cmd.SuggestionsFor(args[0]); len(s) > 0 {
			msg += "; did you mean " + strings.Join(s, " or ") + "?"
		}
		return fmt.Errorf("%s", msg)
	}
}

func (a *app) groupCmd(use, short, example string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Long: short + ".\n\n" + exitText, Example: example}
	a.group(cmd)
	cmd.AddCommand(subs...)
	return cmd
}

func (a *app) versionCmd() *cobra.Command {
	return a.command(spec{
		use: "version", short: "Print the version", example: "  assay version", args: cobra.NoArgs, local: true,
		run: func(context.Context, *client.Client, []string) error {
			fmt.Fprintln(a.out, "assay", version)
			return nil
		},
	})
}
