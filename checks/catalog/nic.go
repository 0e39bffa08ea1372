package catalog

import "github.com/assay-gpu/assay/checks/nic"

func nicChecks() []Check {
	return []Check{
		{
			ID: nic.ID, Title: "what the drivers of network cards write to the kernel log", Unit: "lines",
			Doc: `Reads mlx5's lines and those of the kernel's watchdog of transmit queues. A card whose firmware answers no command, stands
still, reports a hardware error it cannot recover from, or that its driver finds dead, is a soft fault: it stays so until the node reboots. A link that
goes down, a module that is hot and a queue that did not send are watched. A port without a cable, a slot that gives less
power, and a register that could not be read are usual and ask for nothing.`,
			Source:   "kernel log; Linux drivers/net/ethernet/mellanox/mlx5/core; gpud 1164, 1167, NVSentinel 1334",
			Applies:  "ConnectX and BlueField; the watchdog speaks for every card",
			Action:   "reboot; watch",
			Cost:     "no driver call",
			Revision: 1,
			Neighbours: Neighbours{
				NHC:        `facebookresearch/gcm: "Lost Carrier" anywhere in syslog is critical`,
				Gpud:       "slot power, hot modules and register errors are events; firmware that is gone is not read",
				NVSentinel: "patterns for all of these, off by default",
				DCGM:       "none",
			},
		},
	}
}
