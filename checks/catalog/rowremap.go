package catalog

import (
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/rowremap"
)

func rowremapChecks() []Check {
	return []Check{
		{
			ID: rowremap.ID, Title: "the row remapper has spare rows", Unit: "rows",
			Doc: `Reads the row remapper, which swaps faulty memory rows for spare ones. A pending remap is safe to compute on and
takes effect at the next GPU reset, so it passes and asks for a reset when the node is idle. A remap that failed is
grounds for RMA and a hard fault. Many rows remapped after correctable errors foretell worse: 83 % of such nodes regress
(Anubis, ATC'24). A memory bank without a spare row is watched, as are very many rows remapped after uncorrectable errors.`,
			Source:  `nvmlDeviceGetRemappedRows, nvmlDeviceGetRowRemapperHistogram; NVIDIA, "GPU Memory Error Management"`,
			Applies: "A100 and later; others say not supported",
			Action:  "rma for a failed remap (hard); drain; reset_gpu when idle for a pending one; watch",
			Cost:    "2 calls a GPU",
			Thresholds: []Threshold{
				{"row_remap.max_correctable", func(p policy.Policy) any { return p.RowRemap.MaxCorrectable }},
				{"row_remap.watch_uncorrectable", func(p policy.Policy) any { return p.RowRemap.WatchUncorrectable }},
			},
			Suites: everySuite, Revision: 2,
			Neighbours: Neighbours{
				NHC:        "none",
				Gpud:       "pending: reboot; failed: inspection; by product names; a query that fails ends as healthy",
				NVSentinel: "failed: contact support; pending: reset, which DCGM raises in its diagnostic only",
				DCGM:       "failed fails; 512 rows after uncorrectable errors warn; pending in the diagnostic only",
			},
		},
	}
}
