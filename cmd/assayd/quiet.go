package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/assay-gpu/assay/coordinator/wire"
)

const quietNode = "gpu008"

// quietFaults are faults of quietNode that no log line tells of. Each is a change of one GPU and the check that sees it.
var quietFaults = []struct{ what, gpu, change, check string }{
	{"two of GPU 0's NVLinks are down", "0", "nvlink.3.state=down nvlink.7.state=down", "nvlink"},
	{"GPU 1 came up with half its PCIe lanes", "1", "pcie_width=8", "pcie"},
	{"GPU 2 slows down for heat", "2", "throttle=hw_thermal", "clocks"},
	{"DCGM wants GPU 4 isolated: faulty memory", "4", "dcgm_error=52", "dcgm_health"},
}

// quiet breaks a node without a line in its log, and shows that each fault is found.
func (d *demonstration) quiet(ctx context.Context) error {
	d.say("%s: four faults that no kernel log tells of.", quietNode)
	for _, f := range quietFaults {
		d.say("  %s.", f.what)
		if err := d.sim(ctx, "set", quietNode, append([]string{"--gpu", f.gpu}, strings.Fields(f.change)...)...); err != nil {
			return err
		}
	}
	missing := ""
	err := d.lab.Await(ctx, "each of the quiet faults", func(map[string]wire.Node) bool {
		text, err := d.lab.CLI(ctx, "node", "explain", quietNode)
		if err != nil {
			return false
		}
		missing = ""
		for _, f := range quietFaults {
			if !strings.Contains(text, f.check+" ") {
				missing += " " + f.check
			}
		}
		return missing == ""
	})
	if err != nil {
		return fmt.Errorf("%w; not found yet:%s", err, missing)
	}
	return d.cli(ctx, "node", "explain", quietNode)
}
