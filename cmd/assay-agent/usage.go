package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
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

// flagFaults turns the first fault pflag met into all there are: every unknown flag and every value that does not parse.
func flagFaults(c *cobra.Command, first error) error {
	var faults []error
	args := os.Args[1:]
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			break
		}
		name, ok := strings.CutPrefix(args[i], "--")
		if !ok {
			continue
		}
		name, value, has := strings.Cut(name, "=")
		f := c.Flags().Lookup(name)
		if f == nil {
			if name != "help" && name != "version" {
				faults = append(faults, fmt.Errorf("unknown flag: --%s", name))
			}
			continue
		}
		if !has && f.NoOptDefVal == "" {
			if i++; i == len(args) {
				faults = append(faults, fmt.Errorf("flag needs a value: --%s", name))
				break
			}
			value, has = args[i], true
		}
		if has {
			if err := f.Value.Set(value); err != nil {
				faults = append(faults, fmt.Errorf("invalid value %q for --%s: %w", value, name, err))
			}
		}
	}
	if len(faults) == 0 {
		faults = []error{first}
	}
	return usage(&flagError{errors.Join(faults...), c.CommandPath()})
}

type flagError struct {
	err  error
	path string
}

func (e *flagError) Error() string { return e.err.Error() }
func (e *flagError) Unwrap() error { return e.err }
func (e *flagError) Hint() string  { return e.path + " --help lists the flags" }
