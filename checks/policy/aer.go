package policy

import "time"

// AER holds the limits of package aer.
type AER struct {
	MaxCorrected int      `json:"max_corrected" yaml:"max_corrected"` // messages of corrected errors within Window; more is a soft Fail, drain
	MaxNonFatal  int      `json:"max_non_fatal" yaml:"max_non_fatal"` // messages of uncorrected, non-fatal errors within Window; more is a soft Fail, drain
	Window       Duration `json:"window" yaml:"window"`
}

// defaultAER takes for corrected errors what DCGM takes for PCIe replays on 16 lanes of the third generation: 0.48 a minute
// and lane, 461 an hour. No source has a figure for uncorrected ones that are not fatal; ten an hour is our own.
func defaultAER() AER {
	return AER{MaxCorrected: 461, MaxNonFatal: 10, Window: Duration(time.Hour)}
}

func (v *validator) aer(a AER) {
	atLeast(v, "aer.max_corrected", a.MaxCorrected, 0)
	atLeast(v, "aer.max_non_fatal", a.MaxNonFatal, 0)
	v.within("aer.window", a.Window, time.Second, 7*day)
}
