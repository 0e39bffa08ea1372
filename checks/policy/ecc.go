package policy

// ECC holds the limits of package ecc.
type ECC struct {
	MaxVolatileUncorrected uint64 `json:"max_volatile_uncorrected" yaml:"max_volatile_uncorrected"` // more is a soft Fail, reset_gpu
	MaxVolatileCorrected   uint64 `json:"max_volatile_corrected" yaml:"max_volatile_corrected"`     // more is a soft Fail, drain
	RequireEnabled         bool   `json:"require_enabled" yaml:"require_enabled"`                   // ECC off is a soft Fail, fix_config
}

func defaultECC() ECC {
	return ECC{MaxVolatileUncorrected: 0, MaxVolatileCorrected: 50_000_000, RequireEnabled: true} // 50 M: facebookresearch/gcm
}
