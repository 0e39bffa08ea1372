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
			NVLinks: g.linked(), Bandwidth: fakecuda.Bandwidth{Host: g.copySpeed()},
		})
	}
	return n
}
