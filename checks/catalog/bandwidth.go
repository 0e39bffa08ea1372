package catalog

import (
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/bandwidth"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/sdc"
)

func bandwidthChecks() []Check {
	return []Check{
		{
			ID: bandwidth.ID, Title: "copies to and from the host are fast", Unit: "GB/s each way",
			Doc: `Takes from a golden run how fast its copies between pinned memory and the GPU were, each way, timed by events while no other
GPU of the node copied. The median of nine must be a share of what the link's generation and width give when it runs as both its
ends can, and a share of what the node's other GPUs of the same product reach, where there are two or more. Where sysfs shows no
link and there are no such peers, it applies only when policy sets a figure. Copies both ways at once are measured and not judged.`,
			Source:  "golden tests k21_h2d and k21_d2h; sysfs bus/pci/devices: link width and speed; Azure/azurehpc-health-checks and NVIDIA/nvbandwidth for the shares",
			Applies: goldenGPUs + "only with the golden kernels of a screen, by policy golden.screen, or by hand; a quick screen that has no time for it leaves it out",
			Action:  "drain",
			Cost:    "0.1 s of each GPU's golden run, one GPU after the other",
			Thresholds: []Threshold{
				{"bandwidth.min_share", func(p policy.Policy) any { return p.Bandwidth.MinShare }},
				{"bandwidth.peer_share", func(p policy.Policy) any { return p.Bandwidth.PeerShare }},
				{"bandwidth.min_gbps", func(p policy.Policy) any { return p.Bandwidth.MinGBps }},
			},
			Revision: 1,
			Neighbours: Neighbours{
				NHC:        "Azure: nvbandwidth below 23 (A100), 48 (H100) or 55 (H200) GB/s",
				Gpud:       "none",
				NVSentinel: diagnosticBefore,
				DCGM:       "the diagnostic's PCIe test only: a minimum where its file for the product has one, else none",
			},
		},
	}
}

// JudgeBandwidth judges how fast the copies of golden runs were, unless policy turns the check off.
func JudgeBandwidth(readings map[string]sdc.Reading, at time.Time, known checks.Inventory, p policy.Policy) []checks.Finding {
	var gpus []bandwidth.GPU
	for _, g := range known.Named() {
		run := readings[g.UUID]
		r := bandwidth.Reading{Have: run.Have, Err: run.Err}
		switch {
		case run.Have == checks.Read:
			r = bandwidth.Of(run.Result)
		case run.Have == checks.NotSupported && p.Golden.NoLibrary != "not_applicable":
			r.Have = checks.Unread
		}
		gpus = append(gpus, bandwidth.GPU{GPU: g, Reading: r})
	}
	fs := bandwidth.Judge(gpus, p.Bandwidth, p.PCIe.Width)
	for i := range fs {
		fs[i].At = at
	}
	return aside(bandwidth.ID, fs, known, p)
}
