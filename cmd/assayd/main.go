// Command assayd is assay's control plane: it decides what happens to nodes, keeps it in etcd, and acts through Slurm and
// the agents.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/cmd/internal/faults"
)

// version is set at link time.
var version = "devel"

// Exit statuses.
const (
	exitFault = 1
	exitUsage = 64
)

// usageError is bad input: a flag, a config or a policy.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := root().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "assayd:", err)
		var h interface{ Hint() string }
		if errors.As(err, &h) && h.Hint() != "" && status(err) != exitUsage {
			fmt.Fprintln(os.Stderr, "hint:", h.Hint())
		} else if status(err) == exitUsage {
			fmt.Fprintln(os.Stderr, "hint: nothing was started; see assayd --help")
		}
		os.Exit(status(err))
	}
}

func status(err error) int {
	var u usageError
	if errors.As(err, &u) {
		return exitUsage
	}
	return exitFault
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "assayd",
		Short:         "assay's control plane",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return usageError{faults.CommandLine(c, os.Args[1:], err)} })
	cmd.AddCommand(serveCommand(), configCommand(), demoCommand(), migrateCommand(), membersCommand())
	for _, c := range append(cmd.Commands(), cmd) {
		c.Args = func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("%s takes no argument %q", c.CommandPath(), args[0])}
			}
			return nil
		}
	}
	for _, c := range []*cobra.Command{backupCommand(), restoreCommand(), inviteCommand(), joinCommand(), leaveCommand()} {
		c.Args = func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{fmt.Errorf("%s takes one argument: %s", c.CommandPath(), c.Use)}
			}
			return nil
		}
		cmd.AddCommand(c)
	}
	return cmd
}

func logLevel(s string) (slog.Level, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(s)); err != nil {
		return l, fmt.Errorf("%q: want debug, info, warn or error", s)
	}
	return l, nil
}

func newLogger(c config) *slog.Logger {
	level, _ := logLevel(c.LogLevel) // checked by load
	opts := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, opts))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, opts))
}
