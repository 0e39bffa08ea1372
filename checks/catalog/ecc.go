package catalog

import (
	"github.com/assay-gpu/assay/checks/ecc"
	"github.com/assay-gpu/assay/checks/policy"
)

func eccChecks() []Check {
	return []Check{
		{
			ID: ecc.ID, Title: "error-correcting memory is on, and quiet", Unit: "errors since the driver was loaded",
			Doc: `Reads whether ECC is on and what it has counted, in all, by location, and in the last hour. Counters that read N/A are
not zero: they leave the verdict open. Failing memory shows under load, by thousands of corrected errors a minute without
any other sign; a quiet hour at rest proves little.
None of its faults is hard: where an error harms the GPU, the driver says so itself (see recovery).`,
			Source:  "nvmlDeviceGetEccMode, nvmlDeviceGetTotalEccErrors, nvmlDeviceGetSramEccErrorStatus, NVML_FI_DEV_ECC_*_DEV; facebookresearch/gcm for the corrected limit, DCGM for what is watched in an hour",
			Applies: "GPUs with ECC; others say not supported",
			Action:  "reset_gpu; drain; rma beyond the driver's SRAM threshold; fix_config where it is off",
			Cost:    "6 calls a GPU",
			Thresholds: []Threshold{
				{"ecc.max_volatile_uncorrected", func(p policy.Policy) any { return p.ECC.MaxVolatileUncorrected }},
				{"ecc.max_volatile_corrected", func(p policy.Policy) any { return p.ECC.MaxVolatileCorrected }},
				{"ecc.watch_corrected_per_hour", func(p policy.Policy) any { return p.ECC.WatchCorrectedPerHour }},
				{"ecc.max_corrected_per_hour", func(p policy.Policy) any { return p.ECC.MaxCorrectedPerHour }},
				{"ecc.require_enabled", func(p policy.Policy) any { return p.ECC.RequireEnabled }},
			},
			Suites: everySuite, Revision: 2,
			Neighbours: Neighbours{
				NHC:        "Azure: limits of 20 M and 10,000, one for corrected and uncorrected alike",
				Gpud:       "shown, never judged",
				NVSentinel: "double-bit: reset; single-bit rate: none; SRAM threshold: contact support, by the diagnostic only",
				DCGM:       "a single-bit rate of 10; unrepairable memory fails; SRAM threshold in the diagnostic only",
			},
		},
	}
}
