package policy

// ECC holds the limits of package ecc.
type ECC struct {
	MaxVolatileUncorrected uint64 `json:"max_volatile_uncorrected" yaml:"max_volatile_uncorrected"` // more is a soft Fail, reset_gpu
	MaxVolatileCorrected   uint64 `json:"max_volatile_corrected" yaml:"max_volatile_corrected"`     // more is a soft Fail, drain
	WatchCorrectedPerHour  uint64 `json:"watch_corrected_per_hour" yaml:"watch_corrected_per_hour"` // more within the last hour are watched (10: DCGM, SBE rate)
	MaxCorrectedPerHour    uint64 `json:"max_corrected_per_hour" yaml:"max_corrected_per_hour"`     // more within the last hour is a soft Fail, drain
	RequireEnabled         bool   `json:"require_enabled" yaml:"require_enabled"`                   // ECC off is a soft Fail, fix_config
}

// defaultECC: 50 M is facebookresearch/gcm's. 3600 an hour, one a second, is far above the 3 a day that 5 % of GPUs show
// (arXiv 2508.03513) and far below what failing HBM does (4,600 a second: NVSentinel #1748).
func defaultECC() ECC {
	return ECC{MaxVolatileUncorrected: 0, MaxVolatileCorrected: 50_000_000, WatchCorrectedPerHour: 10, MaxCorrectedPerHour: 3600, RequireEnabled: true}
}
