package main

import (
	"io"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A flag of one command that is called like one for all would take its place: job submit --key once left nobody able to
// submit over TLS.
func TestNoFlagHidesOneForAll(t *testing.T) {
	root := (&app{out: io.Discard, err: io.Discard, now: time.Now}).root()
	var walk func(*cobra.Command)
	seen := 0
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			sub.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
				seen++
				if p := root.PersistentFlags().Lookup(f.Name); p != nil && p != f {
					t.Errorf("%s --%s hides the one for all commands", sub.CommandPath(), f.Name)
				}
			})
			walk(sub)
		}
	}
	walk(root)
	if seen < 20 {
		t.Fatalf("only %d flags", seen)
	}
}
