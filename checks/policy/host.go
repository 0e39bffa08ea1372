package policy

// host checks the sections of the host's own checks.
func (v *validator) host(p Policy) {
	v.ports("infiniband", p.Infiniband)
	v.ports("ethernet", p.Ethernet)
	v.mounts(p.Mounts)
	v.memory(p.Memory)
	v.cpu(p.CPU)
	v.processes(p.Processes)
	v.kernel(p.Kernel)
	v.nvme(p.NVMe)
	v.timesync(p.TimeSync)
}
