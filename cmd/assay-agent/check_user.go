package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/agent/atomicfile"
	probe "github.com/assay-gpu/assay/agent/probe/user"
	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/cmd/internal/tab"
	"github.com/assay-gpu/assay/coordinator/wire"
)

func newCheckUser() *cobra.Command {
	var asJSON bool
	var policyFile string
	c := &cobra.Command{
		Use: "user [NAME…]", Short: "Run the site's own executables that policy names", Args: usageArgs(cobra.ArbitraryArgs),
		Long: "User runs the user checks of the last policy received, or of --policy FILE, those that are named or all, and prints what\n" +
			"they find. Exit status: 0 healthy, 1 a fault found, 2 something could not be tested.",
		Example: "  assay-agent check user\n  assay-agent check user scratch --policy policy.yaml --json",
	}
	f := hardwareFlags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print one finding a line, as JSON")
	c.Flags().StringVar(&policyFile, "policy", "", "take the user checks of this policy `FILE`")
	c.ValidArgsFunction = func(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		return tab.Rest(offerUserChecks(f, policyFile), args, word), cobra.ShellCompDirectiveNoFileComp
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		cfg, err := f.load()
		if err != nil {
			return err
		}
		p, known, err := lastPolicy(cfg, policyFile)
		if err != nil {
			return err
		}
		if len(args) == 0 {
			args = slices.Sorted(maps.Keys(p.UserChecks))
		}
		var faults []error
		for _, name := range args {
			if _, ok := p.UserChecks[name]; !ok {
				faults = append(faults, fmt.Errorf("user check %q: policy names none; there are %s", name, strings.Join(slices.Sorted(maps.Keys(p.UserChecks)), ", ")))
			}
		}
		if len(args) == 0 {
			faults = append(faults, errors.New("policy names no user check"))
		}
		if err := joinUsage(faults...); err != nil {
			return err
		}
		r := probe.New(selfCommand("probe", "limits"))
		var found []checks.Finding
		for _, name := range args {
			found = append(found, catalog.JudgeUser(name, r.Run(c.Context(), name, p.UserChecks[name], cfg.Node), known, p)...)
		}
		return printSide(c.OutOrStdout(), cfg.Node, found, asJSON)
	}
	return c
}

// lastPolicy is the policy of a check by hand on this node: the file's, else the last one received, else the built-in one,
// as it holds for the node, with every check judging. With it comes the hardware that is known without asking.
func lastPolicy(cfg config, file string) (policy.Policy, checks.Inventory, error) {
	known := checks.Inventory{Node: cfg.Node}
	p := policy.Default()
	var kept struct{ Desired wire.Desired }
	if found, err := atomicfile.ReadJSON(cfg.StateDir+"/desired.json", &kept); err == nil && found {
		p = kept.Desired.Policy
		if kept.Desired.Expected != nil {
			known.GPUs = kept.Desired.Expected.GPUs
		}
	}
	if file != "" {
		var err error
		if p, err = loadPolicy(file); err != nil {
			return p, known, err
		}
	}
	if b, err := bootIDFile(cfg.BootID)(); err == nil {
		known.BootID = b
	}
	p = p.ForNode(cfg.Node, policy.HardwareOf(known, kept.Desired.Expected), kept.Desired.Learned)
	p.Mode, p.Checks = policy.Act, nil
	return p, known, nil
}
