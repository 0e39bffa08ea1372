package catalog

import (
	"github.com/assay-gpu/assay/checks/ecc"
	"github.com/assay-gpu/assay/checks/policy"
)

func eccChecks() []Check {
	return []Check{
		{
			ID: ecc.ID, Title: "error-correcting memory is on, and quiet", Unit: "errors since the driver was loaded",
			Doc: `Reads whether ECC is on and what it has counted. Counters that read N/A are not zero: they leave the verdict open.
None of its faults is hard: where an error harms the GPU, the driver says so itself (see recovery).`,
			Source:  "nvmlDeviceGetEccMode, nvmlDeviceGetTotalEccErrors, nvmlDeviceGetSramEccErrorStatus; facebookresearch/gcm for the corrected limit",
			Applies: "GPUs with ECC; others say not supported",
			Action:  "reset_gpu; drain; rma beyond the driver's SRAM threshold; fix_config where it is off",
			Cost:    "6 calls a GPU",
			Thresholds: []Threshold{
				{"ecc.max_volatile_uncorrected", func(p policy.Policy) any { return p.ECC.MaxVolatileUncorrected }},
				{"ecc.max_volatile_corrected", func(p policy.Policy) any { return p.ECC.MaxVolatileCorrected }},
				{"ecc.require_enabled", func(p policy.Policy) any { return p.ECC.RequireEnabled }},
			},
			Suites: everySuite, Revision: 1,
			Neighbours: Neighbours{
				NHC:        "Azure: limits of 20 M and 10,000, one for corrected and uncorrected alike",
				Gpud:       "shown, never judged",
				NVSentinel: "double-bit: reset; single-bit rate: none; SRAM threshold: contact support, by the diagnostic only",
				DCGM:       "a single-bit rate of 10; unrepairable memory fails; SRAM threshold in the diagnostic only",
			},
		},
	}
}
