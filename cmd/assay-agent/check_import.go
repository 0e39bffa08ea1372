package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/hostlist"
	"github.com/assay-gpu/assay/checks/user/nhc"
)

// maxConfig bounds a configuration that is imported, in bytes.
const maxConfig = 4 << 20

func newCheckImport() *cobra.Command {
	c := &cobra.Command{Use: "import", Short: "Take over the checks of another tool", Args: usageArgs(cobra.NoArgs)}
	c.AddCommand(newCheckImportNHC())
	return c
}

func newCheckImportNHC() *cobra.Command {
	var nodes, program string
	var asJSON bool
	c := &cobra.Command{
		Use: "nhc FILE|-", Short: "Say what becomes of each line of an NHC configuration", Args: usageArgs(cobra.ExactArgs(1)),
		Long: "Nhc reads a configuration of LBNL's Node Health Check and prints a part of a policy file: what of each line assay does by\n" +
			"itself, what goes on as a user check through NHC or a shell, and what cannot be taken over and why, as comments; then the\n" +
			"values to set. Masks that name hosts by a pattern need --nodes.\n" +
			"Exit status: 0 everything is taken over, 1 some lines are refused.",
		Example: "  assay-agent check import nhc /etc/nhc/nhc.conf --nodes 'gpu[001-064]' >>policy.yaml",
	}
	c.Flags().StringVar(&nodes, "nodes", "", "the hosts that there are, as a `HOSTLIST`")
	c.Flags().StringVar(&program, "program", "/usr/sbin/nhc", "NHC's `PATH` on the nodes")
	c.Flags().BoolVar(&asJSON, "json", false, "print one line of the configuration a line, as JSON")
	c.RunE = func(c *cobra.Command, args []string) error {
		o := nhc.Options{Program: program, Compress: func(hosts []string) []string { return []string{hostlist.Compress(hosts)} }}
		o.Has = func(id string) bool { _, ok := catalog.Lookup(id); return ok }
		var err error
		if nodes != "" {
			if o.Hosts, err = hostlist.Expand(nodes); err != nil {
				err = fmt.Errorf("--nodes: %w", err)
			}
		}
		text, rerr := readInput(c.InOrStdin(), args[0], maxConfig)
		if err := joinUsage(err, rerr); err != nil {
			return err
		}
		items := nhc.Plan(nhc.Parse(text), o)
		if asJSON {
			err = printItems(c.OutOrStdout(), items)
		} else {
			_, err = io.WriteString(c.OutOrStdout(), nhc.Fragment(args[0], items))
		}
		if err == nil && nhc.Count(items)[nhc.Refused] > 0 {
			err = &exitError{code: exitFault}
		}
		return err
	}
	return c
}

func printItems(w io.Writer, items []nhc.Item) error {
	enc := json.NewEncoder(w)
	for _, it := range items {
		row := struct {
			Line  int            `json:"line"`
			Text  string         `json:"text"`
			Kind  nhc.Kind       `json:"kind"`
			Why   string         `json:"why"`
			Nodes []string       `json:"nodes,omitempty"`
			Set   map[string]any `json:"set,omitempty"`
		}{it.Line.Number, it.Line.Text, it.Kind, it.Why, it.Nodes, it.Set}
		if err := enc.Encode(row); err != nil {
			return err
		}
	}
	return nil
}
