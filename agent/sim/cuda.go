package sim

import "github.com/assay-gpu/assay/golden/fakecuda"

// CUDA is what the CUDA driver shows of the node.
func (s State) CUDA() fakecuda.Node {
	n := fakecuda.Node{Driver: s.Driver, Seed: uint64(s.BootedAt.UnixNano())}
	for _, g := range s.GPUs {
		if g.Missing {
			continue
		}
		n.GPUs = append(n.GPUs, fakecuda.GPU{
			UUID: g.UUID, PCI: g.PCI, Name: g.Name, Capability: models[s.Model].cc,
			Faults: g.ComputeFaults, Hang: g.CUDAHang, Error: g.CUDAError, Lost: g.Lost,
			MHz: g.loadClock(), NVLinks: g.linked(), Bandwidth: fakecuda.Bandwidth{Host: g.copySpeed()},
		})
	}
	return n
}

// loadClock is the SM clock under load, in MHz; 0: the highest. The driver names its reasons as NVML does: hardware slowdown
// halves the clock or worse, power and heat take a part of it. NVIDIA, "NVML API Reference", clock event reasons.
func (g GPU) loadClock() int {
	clock := 0
	for _, reason := range g.Throttle {
		switch reason {
		case "hw_slowdown", "hw_thermal", "power_brake":
			return 990
		case "sw_power_cap", "sw_thermal":
			clock = 1600
		}
	}
	return clock
}
