// Package faults tells all that is wrong with a command line at once. Cobra and pflag stop at the first fault that they meet.
package faults

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// CommandLine gives every fault of args, of which cobra found first on its way to c: flags that c does not have, values
// that do not parse, values that are missing, what c says of its arguments, flags that it needs. more are checks besides.
func CommandLine(c *cobra.Command, args []string, first error, more ...func() error) error {
	l := line{c: c}
	l.read(args)
	if !l.unknown { // a word after a flag nobody knows may be its value
		l.add(c.ValidateArgs(l.words))
	}
	l.add(c.ValidateRequiredFlags())
	l.add(c.ValidateFlagGroups())
	for _, check := range more {
		l.add(check())
	}
	if len(l.faults) == 0 {
		return first
	}
	return errors.Join(l.faults...)
}

// A line is a command line while it is read.
type line struct {
	c       *cobra.Command
	faults  []error
	words   []string // what is no flag, without the command's own name
	unknown bool     // there is a flag that c does not have
}

func (l *line) add(err error) {
	if err != nil {
		l.faults = append(l.faults, err)
	}
}

func (l *line) read(args []string) {
	path := strings.Fields(l.c.CommandPath())[1:]
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			l.words = append(l.words, args[i+1:]...)
			return
		case strings.HasPrefix(arg, "--"):
			name, value, has := strings.Cut(arg[2:], "=")
			i += l.flag(l.c.Flags().Lookup(name), "--"+name, value, has, args[i+1:])
		case len(arg) > 1 && arg[0] == '-':
			i += l.letters(arg[1:], args[i+1:])
		case len(path) > 0 && arg == path[0]:
			path = path[1:]
		default:
			l.words = append(l.words, arg)
		}
	}
}

// letters reads flags of one letter: -a, -ab, -o json, -ojson or -o=json. It gives how many of the words after it they took.
func (l *line) letters(s string, after []string) int {
	for i := range len(s) {
		f := l.c.Flags().ShorthandLookup(s[i : i+1])
		rest := s[i+1:]
		if f != nil && f.NoOptDefVal != "" && !strings.HasPrefix(rest, "=") {
			l.set(f, f.NoOptDefVal)
			continue
		}
		return l.flag(f, "-"+s[i:i+1], strings.TrimPrefix(rest, "="), rest != "", after)
	}
	return 0
}

// flag reads one flag, and gives how many of the words after it are its value.
func (l *line) flag(f *pflag.Flag, name, value string, has bool, after []string) int {
	switch {
	case f == nil:
		l.unknown = true
		l.add(fmt.Errorf("unknown flag: %s", name))
	case has:
		l.set(f, value)
	case f.NoOptDefVal != "":
		l.set(f, f.NoOptDefVal)
	case len(after) == 0:
		l.add(fmt.Errorf("flag needs a value: %s", name))
		f.Changed = true // it was given, if badly: nobody is told to give it
	default:
		l.set(f, after[0])
		return 1
	}
	return 0
}

func (l *line) set(f *pflag.Flag, value string) {
	if err := f.Value.Set(value); err != nil {
		l.add(fmt.Errorf("invalid value %q for --%s: %w", value, f.Name, err))
	}
	f.Changed = true
}
