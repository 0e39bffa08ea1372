package catalog

import "github.com/assay-gpu/assay/checks/recovery"

func recoveryChecks() []Check {
	return []Check{
		{
			ID: recovery.ID, Title: "the driver's own verdict", Unit: "recovery action",
			Doc: `Reads the recovery action that the driver itself asks for: the same fact that XID 154 announces, and still there
when the log line was missed. Reset, reboot and drain-and-reset are hard faults; draining peer-to-peer traffic is a soft
one. A value that is not known here leaves the verdict open and is alerted on; it is never taken for healthy.`,
			Source:  "nvmlDeviceGetFieldValues, field NVML_FI_DEV_GET_GPU_RECOVERY_ACTION; NVIDIA/DCGM 263",
			Applies: "drivers since R565; older ones say not supported",
			Action:  "reset_gpu or reboot (hard); drain",
			Cost:    "1 call a GPU",
			Suites:  everySuite, Revision: 1,
			Neighbours: Neighbours{
				NHC:        "none",
				Gpud:       "none",
				NVSentinel: "XID 154 in the log, and by DCGM 4.5 or newer: reset, restart, contact support",
				DCGM:       "since 4.5: reset, reboot and drain-and-reset fail, drain warns; a newer value is ignored",
			},
		},
	}
}
