// Command assay-agent is assay's daemon on a GPU node, and what a person runs there by hand.
//
//	assay-agent run              the daemon
//	assay-agent check            judge the hardware now, without a control plane
//	assay-agent status           ask the running daemon where it stands
//	assay-agent capture -o DIR   write all that a check reads, to judge elsewhere with check --from DIR
//	assay-agent enroll           turn a token into this node's identity
//	assay-agent golden           known inputs, known outputs, on every SM
//	assay-agent sim              simulated hardware, for tests and demonstrations
//
// Exit status: 0 done or healthy, 1 a fault found or refused, 2 unknown, 64 usage.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/agent/sim"
)

// Exit statuses.
const (
	exitFault   = 1
	exitUnknown = 2
	exitUsage   = 64
)

// version is set by the linker.
var version = "dev"

// An exitError ends the program with a status of its own. err may be nil: all has been said.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if filepath.Base(os.Args[0]) == "dcgmi" && os.Getenv(sim.EnvDir) != "" {
		os.Exit(sim.Dcgmi(os.Args[1:], os.Stdout, os.Stderr)) // called as dcgmi on a simulated node
	}
	os.Exit(execute(ctx, os.Args[1:]))
}

// execute runs the command line and returns the exit status.
func execute(ctx context.Context, args []string) int {
	root := newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	code := exitUnknown
	var exit *exitError
	if errors.As(err, &exit) {
		code = exit.code
		if exit.err == nil {
			return code
		}
	}
	fmt.Fprintf(os.Stderr, "assay-agent: %v\n", err)
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) && hinted.Hint() != "" {
		fmt.Fprintf(os.Stderr, "hint: %s\n", hinted.Hint())
	}
	return code
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "assay-agent",
		Short:         "Certify this node's GPUs",
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          usageArgs(cobra.NoArgs),
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetVersionTemplate("assay-agent {{.Version}}\n")
	root.SetFlagErrorFunc(flagFaults)
	root.AddCommand(newRun(), newCheck(), newStatus(), newCapture(), newForget(), newEnroll(), newProbe(), newGolden(), newSim(), newVersion())
	root.InitDefaultCompletionCmd()
	strictArgs(root)
	completeFlags(root)
	return root
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(c.OutOrStdout(), "assay-agent %s\n", version)
			return err
		},
	}
}
