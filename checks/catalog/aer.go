package catalog

import (
	"github.com/assay-gpu/assay/checks/aer"
	"github.com/assay-gpu/assay/checks/policy"
)

func aerChecks() []Check {
	return []Check{
		{
			ID: aer.ID, Title: "PCIe errors that the kernel logs", Unit: "messages",
			Doc: `Reads what the kernel's AER driver logs of PCIe errors on GPUs and on the ports above them; the PCI tree in sysfs tells
which GPU is below a port. A fatal error has taken the link down: a soft fault, and the cause of a GPU that is lost right
after it. Corrected errors, and uncorrected ones that are not fatal, are faults by their rate. After a GPU was lost its
path may go on reporting until the next boot; that is a consequence. Firmware that handles the errors itself shows them
as hardware errors of the host instead. A port that contains errors (DPC) takes its link down itself and says no more than that:
it counts as a fatal error. That the drivers below a port could not recover says nothing more: the GPU's has no
part in it, and the error's severity stands.`,
			Source:  "kernel log; Linux drivers/pci/pcie/aer.c; NVIDIA/DCGM for the limit of corrected errors",
			Applies: "hosts whose firmware leaves AER to the kernel",
			Action:  "drain; watch",
			Cost:    "no driver call",
			Thresholds: []Threshold{
				{"aer.max_corrected", func(p policy.Policy) any { return p.AER.MaxCorrected }},
				{"aer.max_non_fatal", func(p policy.Policy) any { return p.AER.MaxNonFatal }},
				{"aer.window", func(p policy.Policy) any { return p.AER.Window }},
			},
			Revision: 1,
			Neighbours: Neighbours{
				NHC:        "none",
				Gpud:       "none",
				NVSentinel: "none",
				DCGM:       "none in the log; it counts replays",
			},
		},
	}
}
