// Package ecc judges a GPU's error-correcting memory: whether it is on, and what it has counted.
package ecc

import "github.com/assay-gpu/assay/checks"

// A Reading is one GPU's ECC state. Volatile counters start at zero at driver load; aggregate ones last for the GPU's life.
// Sources: nvmlDeviceGetEccMode, nvmlDeviceGetTotalEccErrors, nvmlDeviceGetSramEccErrorStatus.
type Reading struct {
	Have    checks.Availability `json:"have"`
	Err     string              `json:"err,omitempty"`     // why Have is Unread
	Enabled bool                `json:"enabled"`           // current mode
	Pending bool                `json:"pending,omitempty"` // mode after the next reset differs

	VolatileCorrected    uint64 `json:"volatile_corrected"`    // errors since driver load
	VolatileUncorrected  uint64 `json:"volatile_uncorrected"`  // errors since driver load
	AggregateCorrected   uint64 `json:"aggregate_corrected"`   // errors over the GPU's life
	AggregateUncorrected uint64 `json:"aggregate_uncorrected"` // errors over the GPU's life

	HaveSRAM              checks.Availability `json:"have_sram"`
	SRAMThresholdExceeded bool                `json:"sram_threshold_exceeded"` // the driver's own RMA threshold for SRAM errors
}
