package catalog

import "github.com/assay-gpu/assay/checks/nvrm"

func nvrmChecks() []Check {
	return []Check{
		{
			ID: nvrm.ID, Title: "what the GPU driver says without a number", Unit: "lines",
			Doc: `Reads the driver's sentences that carry no XID: a GPU that could not be brought up, one that a call found lost or in
need of a reset, unified memory that is broken until the next boot, firmware without a sign of life, NVLinks that did not
train, power cables that are not connected, a GPU that no driver took or that this one is not made for. Beside an XID they
count as its consequence; without one they are all there is. What tools say of inactive links, a peer memory client's
bookkeeping, and a program with libraries of another version, as a job may bring, is no fault.`,
			Source:   "kernel log; NVIDIA/open-gpu-kernel-modules osinit.c, osapi.c, nv.c; Linux drivers/base/dd.c; NVSentinel 155, sichek 51, gpud 1271",
			Applies:  "every NVIDIA GPU",
			Action:   "reboot or reset_gpu (hard); reset_gpu for firmware without a sign of life, reboot for links that did not train or a GPU that was not taken, drain for power cables, fix_config for the wrong driver",
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
