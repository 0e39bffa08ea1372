package catalog

import "github.com/assay-gpu/assay/checks/nvrm"

func nvrmChecks() []Check {
	return []Check{
		{
			ID: nvrm.ID, Title: "what the GPU driver says without a number", Unit: "lines",
			Doc: `Reads the driver's sentences that carry no XID: a GPU that could not be brought up, one that a call found lost or in
need of a reset, unified memory that is broken until the next boot, firmware without a sign of life, NVLinks that did not
train. Beside an XID they count as its consequence; without one they are all there is. What tools say of inactive links,
and a peer memory client's bookkeeping, is no fault.`,
			Source:   "kernel log; NVIDIA/open-gpu-kernel-modules; NVSentinel 155, sichek 51, gpud 1271",
			Applies:  "every NVIDIA GPU",
			Action:   "reboot or reset_gpu (hard); reset_gpu for firmware without a sign of life, reboot for links that did not train",
			Cost:     "no driver call",
			Revision: 1,
			Neighbours: Neighbours{
				NHC:        "none",
				Gpud:       "links that did not train, SXid and GSP lines by pattern; the rest not",
				NVSentinel: "a GPU off the bus, unless any XID was seen on its address; the rest not",
				DCGM:       "none",
			},
		},
	}
}
