package policy

// PCIe holds the limits of package pcie.
type PCIe struct {
	Width                   int         `json:"width" yaml:"width"`                                             // lanes a GPU should have; 0: what GPU and port can do. Fewer is a soft Fail, drain
	BusyPercent             int         `json:"busy_percent" yaml:"busy_percent"`                               // of time that kernels run: from here on the link's speed is judged
	RepeatsPerMinuteAndLane PCIeRepeats `json:"repeats_per_minute_and_lane" yaml:"repeats_per_minute_and_lane"` // replays, and corrected errors; more is a soft Fail, drain
	RequireACSOff           bool        `json:"require_acs_off" yaml:"require_acs_off"`                         // a bridge that redirects peer-to-peer traffic on bare metal is a soft Fail, fix_config; else it is watched
}

// PCIeRepeats are the repeats a link may have, by its generation.
type PCIeRepeats struct {
	Gen1 float64 `json:"gen1" yaml:"gen1"`
	Gen2 float64 `json:"gen2" yaml:"gen2"`
	Gen3 float64 `json:"gen3" yaml:"gen3"`
	Gen4 float64 `json:"gen4" yaml:"gen4"`
	Gen5 float64 `json:"gen5" yaml:"gen5"`
	Gen6 float64 `json:"gen6" yaml:"gen6"`
}

// defaultPCIe: the repeats are DCGM's health thresholds. They are the bit error rate that PCIe allows, 1e-12, at each
// generation's speed: 32 GT/s × 60 s × 1e-12 = 1.92. An application that keeps the GPU half busy is under load.
func defaultPCIe() PCIe {
	return PCIe{
		Width: 0, BusyPercent: 50, RequireACSOff: false,
		RepeatsPerMinuteAndLane: PCIeRepeats{Gen1: 0.15, Gen2: 0.3, Gen3: 0.48, Gen4: 0.96, Gen5: 1.92, Gen6: 3.84},
	}
}

func (v *validator) pcie(p PCIe) {
	switch p.Width {
	case 0, 1, 2, 4, 8, 16:
	default:
		v.add("pcie.width", "%d: want 1, 2, 4, 8 or 16 lanes, or 0 for what GPU and port can do", p.Width)
	}
	if p.BusyPercent < 1 || p.BusyPercent > 100 {
		v.add("pcie.busy_percent", "%d: want 1 to 100", p.BusyPercent)
	}
	r := p.RepeatsPerMinuteAndLane
	for i, g := range []float64{r.Gen1, r.Gen2, r.Gen3, r.Gen4, r.Gen5, r.Gen6} {
		v.rate("pcie.repeats_per_minute_and_lane.gen"+string(rune('1'+i)), g)
	}
}
