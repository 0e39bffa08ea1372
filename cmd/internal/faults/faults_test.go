package faults

import (
	"errors"
	"testing"

	"github.com/spf13/cobra"
)

func TestCommandLine(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		want string // "" is the first fault, as cobra has it
	}{
		{"nothing that we see", []string{"node", "drain", "gpu001", "--reason", "x"}, "first"},
		{"three flags", []string{"node", "drain", "gpu001", "--reason=x", "--bogus", "--for", "x", "--nope=1"}, "unknown flag: --bogus\ninvalid value \"x\" for --for: must be an integer\nunknown flag: --nope"},
		{"a value, an argument and a flag that is needed", []string{"node", "drain", "--for", "x"}, "invalid value \"x\" for --for: must be an integer\nrequires at least 1 arg(s), only received 0\nrequired flag(s) \"reason\" not set"},
		{"a word after an unknown flag may be its value", []string{"node", "drain", "--bogus", "gpu001"}, "unknown flag: --bogus\nrequired flag(s) \"reason\" not set"},
		{"letters", []string{"node", "drain", "-yq", "-f", "x", "-f3", "gpu001", "--reason=x"}, "unknown flag: -q\ninvalid value \"x\" for --for: must be an integer"},
		{"no value at the end", []string{"node", "drain", "gpu001", "--reason"}, "flag needs a value: --reason"},
		{"flags before the command, and words after --", []string{"--bogus", "node", "drain", "--reason=x", "--", "--for"}, "unknown flag: --bogus"},
		{"an argument that is named as the command", []string{"node", "drain", "drain", "--reason=x"}, "first"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var reason string
			var hours int
			root, node := &cobra.Command{Use: "assay"}, &cobra.Command{Use: "node"}
			drain := &cobra.Command{Use: "drain", Args: cobra.MinimumNArgs(1), Run: func(*cobra.Command, []string) {}}
			drain.Flags().StringVar(&reason, "reason", "", "")
			drain.Flags().IntVarP(&hours, "for", "f", 0, "")
			drain.Flags().BoolP("yes", "y", false, "")
			if err := drain.MarkFlagRequired("reason"); err != nil {
				t.Fatal(err)
			}
			root.AddCommand(node)
			node.AddCommand(drain)
			if got := CommandLine(drain, tt.args, errors.New("first")).Error(); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
	more := CommandLine(&cobra.Command{Use: "assay"}, []string{"--bogus"}, errors.New("first"), func() error { return errors.New("more") })
	if more.Error() != "unknown flag: --bogus\nmore" {
		t.Error(more)
	}
}
