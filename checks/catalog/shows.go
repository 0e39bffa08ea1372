package catalog

import (
	"math/bits"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/port"
)

// shows gives what the snapshot shows of the numbers that nodes of one product have in common, by the policy's path. Only
// what was read is there.
func (s Snapshot) shows() map[string]int64 {
	out := map[string]int64{}
	put := func(path string, n int64) {
		if n > 0 {
			out[path] = n
		}
	}
	if s.Init.OK {
		put("inventory.count", int64(s.Count))
		put("nvlink.links", s.common(func(g GPUState) (int, bool) { return g.NVLink.Up() }))
		put("pcie.width", s.common(func(g GPUState) (int, bool) { return g.PCIe.Width, g.PCIe.Have == checks.Read }))
	}
	h := s.Host
	if h.CPU.Have == checks.Read {
		put("cpu.count", int64(h.CPU.Online))
	}
	if h.Memory.Have == checks.Read {
		put("memory.bytes", roughly(h.Memory.Total))
	}
	if h.NVMe.Have == checks.Read {
		put("nvme.count", int64(len(h.NVMe.Disks)))
	}
	up, rate := portsUp(h.Infiniband)
	put("infiniband.count", int64(up))
	put("infiniband.rate", int64(rate))
	if len(out) == 0 {
		return nil
	}
	return out
}

// roughly is n without its low bits: nodes with the same modules differ by what their firmware keeps for itself. What is
// left out is under one part in 128, and always to the low side.
func roughly(n uint64) int64 {
	if keep := bits.Len64(n) - 8; keep > 0 {
		n = n >> keep << keep
	}
	return int64(n)
}

// portsUp counts the ports that are up, and gives the rate that all of them have; 0 when they have several.
func portsUp(r port.Reading) (up, rate int) {
	if r.Have != checks.Read {
		return 0, 0
	}
	for i, p := range r.Ports {
		if p.Err != "" {
			return 0, 0 // some port may be up and nobody could tell
		}
		if !p.Up {
			continue
		}
		if up++; up == 1 {
			rate = r.Ports[i].Rate
		} else if rate != p.Rate {
			rate = 0
		}
	}
	return up, rate
}

// common is what every GPU shows alike; 0 where one could not tell, or shows otherwise.
func (s Snapshot) common(of func(GPUState) (n int, known bool)) int64 {
	value := 0
	for i, g := range s.GPUs {
		n, known := of(g)
		if !known || i > 0 && n != value {
			return 0
		}
		value = n
	}
	return int64(value)
}
