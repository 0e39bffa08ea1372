package slurm

import (
	"context"
	"strings"

	"github.com/assay-gpu/assay/checks/hostlist"
)

// Leaves maps each node to the leaf switch it hangs under. It is empty without topology/tree, and a node that
// topology.conf does not name is missing.
func (c *Client) Leaves(ctx context.Context) (map[string]string, error) {
	out, err := c.read(ctx, "topology", c.cfg.Scontrol, "show", "topology")
	if err != nil {
		return nil, err
	}
	return ParseLeaves(out)
}

// ParseLeaves reads `scontrol show topology`. A leaf is a switch with nodes and no switches below it; of two that name
// one node, which Slurm warns of, the first counts.
func ParseLeaves(out string) (map[string]string, error) {
	leaves := map[string]string{}
	for line := range strings.Lines(out) {
		f := fields(line, nil)
		if f["SwitchName"] == "" || null(f["Switches"]) != "" || f["Level"] != "" && f["Level"] != "0" {
			continue
		}
		names, err := hostlist.Expand(f["Nodes"])
		if err != nil {
			return nil, &FormatError{Verb: "topology", Line: line, Msg: err.Error()}
		}
		for _, n := range names {
			if _, ok := leaves[n]; !ok {
				leaves[n] = f["SwitchName"]
			}
		}
	}
	return leaves, nil
}
