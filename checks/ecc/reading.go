// Package ecc judges a GPU's error-correcting memory: whether it is on, and what it has counted.
package ecc

import (
	"time"

	"github.com/assay-gpu/assay/checks"
)

// A Reading is one GPU's ECC state. Volatile counters start at zero at driver load; aggregate ones last for the GPU's life.
// Sources: nvmlDeviceGetEccMode, nvmlDeviceGetTotalEccErrors, nvmlDeviceGetSramEccErrorStatus; for DRAM
// nvmlDeviceGetFieldValues, NVML_FI_DEV_ECC_*_DEV.
type Reading struct {
	Have    checks.Availability `json:"have"`
	Err     string              `json:"err,omitempty"`     // why Have is Unread
	Enabled bool                `json:"enabled"`           // current mode
	Pending bool                `json:"pending,omitempty"` // mode after the next reset differs

	VolatileCorrected    uint64 `json:"volatile_corrected"`    // errors since driver load
	VolatileUncorrected  uint64 `json:"volatile_uncorrected"`  // errors since driver load
	AggregateCorrected   uint64 `json:"aggregate_corrected"`   // errors over the GPU's life
	AggregateUncorrected uint64 `json:"aggregate_uncorrected"` // errors over the GPU's life

	DRAM Location `json:"dram"` // device memory's part of the totals
	SRAM Location `json:"sram"` // caches', registers' and the rest's

	CorrectedThen *uint64       `json:"corrected_then,omitempty"` // VolatileCorrected at an earlier reading; nil without one
	Over          time.Duration `json:"over,omitempty"`           // since then, an hour at most

	HaveSRAM              checks.Availability `json:"have_sram"`
	SRAMThresholdExceeded bool                `json:"sram_threshold_exceeded"` // the driver's own RMA threshold for SRAM errors
}

// A Location is what one kind of memory counted. Where a product does not tell it apart, Have says so: N/A is not zero.
type Location struct {
	Have                 checks.Availability `json:"have"`
	VolatileCorrected    uint64              `json:"volatile_corrected,omitempty"`
	VolatileUncorrected  uint64              `json:"volatile_uncorrected,omitempty"`
	AggregateCorrected   uint64              `json:"aggregate_corrected,omitempty"`
	AggregateUncorrected uint64              `json:"aggregate_uncorrected,omitempty"`
}
