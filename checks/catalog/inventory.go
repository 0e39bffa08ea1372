package catalog

import (
	"github.com/assay-gpu/assay/checks/inventory"
	"github.com/assay-gpu/assay/checks/policy"
)

func inventoryChecks() []Check {
	return []Check{
		{
			ID: inventory.ID, Title: "the GPUs are all there, and the right ones", Unit: "GPUs",
			Doc: `Compares the GPUs the driver counts with those accepted at enrolment, by UUID, and with policy. A GPU that is
missing is a hard fault. A GPU of another identity in its place, one too many, another product or another driver than
policy names is for a person to settle. Without anything to compare with, a node that shows GPUs passes.`,
			Source:  "nvmlDeviceGetCount_v2, nvmlDeviceGetUUID, nvmlDeviceGetName, nvmlSystemGetDriverVersion",
			Applies: "every NVIDIA GPU",
			Action:  "reboot for a missing GPU (hard); fix_config otherwise",
			Cost:    "1 call a node and 5 a GPU; what does not change is read once a start",
			Thresholds: []Threshold{
				{"inventory.count", func(p policy.Policy) any { return p.Inventory.Count }},
				{"inventory.name", func(p policy.Policy) any { return p.Inventory.Name }},
				{"inventory.driver", func(p policy.Policy) any { return p.Inventory.Driver }},
			},
			Suites: everySuite, Revision: 1,
			Neighbours: Neighbours{
				NHC:        "Azure: as many as the profile says, else a failure",
				Gpud:       "a count that is set: two reboots, then inspection",
				NVSentinel: "none; a lost GPU by its log line",
				DCGM:       "none",
			},
		},
	}
}
