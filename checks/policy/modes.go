package policy

// Modes holds what package modes wants of a GPU's settings. What differs is a soft Fail, fix_config.
type Modes struct {
	RequirePersistence bool   `json:"require_persistence" yaml:"require_persistence"` // persistence mode off is a fault; else it is watched
	Compute            string `json:"compute" yaml:"compute"`                         // "default" or "exclusive_process"; empty: any in which jobs can run
	MIG                string `json:"mig" yaml:"mig"`                                 // "on" or "off"; empty: either
}

func defaultModes() Modes { return Modes{RequirePersistence: false, Compute: "", MIG: ""} }

func (v *validator) modes(m Modes) {
	oneOf(v, "gpu_modes.compute", m.Compute, "", "default", "exclusive_process")
	oneOf(v, "gpu_modes.mig", m.MIG, "", "on", "off")
}
