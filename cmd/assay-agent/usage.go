package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/cmd/internal/faults"
)

// usage makes err a fault of the command line or of a file named there.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{exitUsage, err}
}

// usageArgs makes what check says of positional arguments a fault of usage.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error { return usage(check(c, args)) }
}

// strictArgs makes a command that only has others under it refuse a name it does not know, and cobra's own commands take
// wrong arguments for a fault of usage as ours do.
func strictArgs(c *cobra.Command) {
	if c.HasSubCommands() && !c.Runnable() {
		c.Args = cobra.NoArgs
		c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	}
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			err := check(c, args)
			var exit *exitError
			if errors.As(err, &exit) {
				return err
			}
			return usage(err)
		}
	}
	for _, sub := range c.Commands() {
		strictArgs(sub)
	}
}

// flagFaults turns the first fault that pflag met into all there are.
func flagFaults(c *cobra.Command, first error) error {
	return usage(&flagError{faults.CommandLine(c, os.Args[1:], first), c.CommandPath()})
}

type flagError struct {
	err  error
	path string
}

func (e *flagError) Error() string { return e.err.Error() }
func (e *flagError) Unwrap() error { return e.err }
func (e *flagError) Hint() string  { return e.path + " --help lists the flags" }
