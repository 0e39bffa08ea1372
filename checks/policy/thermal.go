package policy

// Thermal holds the limits of package thermal, in °C.
type Thermal struct {
	MinMargin int `json:"min_margin" yaml:"min_margin"` // from the core to the temperature at which the hardware slows down; this or less is a soft Fail, drain
	MaxCore   int `json:"max_core" yaml:"max_core"`     // more is a soft Fail, drain; 0: only the GPU's own limits hold
	MaxMemory int `json:"max_memory" yaml:"max_memory"` // more is a soft Fail, drain; 0: only the GPU's own limits hold
}

// defaultThermal: the limits are the GPU's own. Absolute ones are wrong for some product whatever they are.
func defaultThermal() Thermal { return Thermal{MinMargin: 0, MaxCore: 0, MaxMemory: 0} }

func (v *validator) thermal(t Thermal) {
	for _, l := range []struct {
		path string
		c    int
	}{{"thermal.min_margin", t.MinMargin}, {"thermal.max_core", t.MaxCore}, {"thermal.max_memory", t.MaxMemory}} {
		if l.c < 0 || l.c > 150 {
			v.add(l.path, "%d: want 0 to 150 °C", l.c)
		}
	}
}
