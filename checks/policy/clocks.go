package policy

// Clocks holds the limits of package clocks.
type Clocks struct {
	MaxHWShare float64 `json:"max_hw_share" yaml:"max_hw_share"` // of the time, for slowdowns by hardware; more is a soft Fail, drain
	MaxSWShare float64 `json:"max_sw_share" yaml:"max_sw_share"` // of the time, for the software thermal slowdown; more is a soft Fail, drain
}

// defaultClocks: gpud calls a hardware slowdown in 6 of 10 readings a fault, which is 60 % of the time; hardware slowdowns
// halve the clocks, so that a tenth of the time already costs a job 5 %.
func defaultClocks() Clocks { return Clocks{MaxHWShare: 0.1, MaxSWShare: 0.6} }

func (v *validator) clocks(c Clocks) {
	v.share("clocks.max_hw_share", c.MaxHWShare)
	v.share("clocks.max_sw_share", c.MaxSWShare)
}
