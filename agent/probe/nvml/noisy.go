package nvml

// A Noisy function is one of NVML's that this probe never calls: the driver or the card's firmware writes to the kernel log
// about it, or it changes what others read.
type Noisy struct{ Function, Why string }

// AllNoisy lists them. NVIDIA publishes no such list: each is here for what nvml.h says that it does, or for what was seen of the
// same access elsewhere. A flood of such lines hides the faults that the log is read for.
var AllNoisy = []Noisy{
	{"nvmlDeviceReadWritePRM_v1", "accesses registers through firmware; where it refuses, each access is a line, as ACCESS_REG of mlx5 (leptonai/gpud 1164, 1167)"},
	{"nvmlDeviceReadPRMCounters_v1", "reads counters the same way, many in one call"},
	{"nvmlDeviceValidateInforom", "reads the board's flash; what is wrong with it the driver logs"},
	{"nvmlDeviceClearEccErrorCounts", "clears what ECC counted, for everybody"},
	{"nvmlDeviceResetNvLinkErrorCounters", "clears what links counted, for everybody"},
	{"nvmlDeviceResetNvLinkUtilizationCounter", "clears what links carried, for everybody"},
	{"nvmlDeviceSetPersistenceMode", "loads or unloads the GPU's state, which the driver logs"},
	{"nvmlDeviceDiscoverGpus", "scans the PCI bus anew, which the kernel logs"},
	{"nvmlDeviceRemoveGpu_v2", "takes the GPU off the bus, which the driver logs"},
}
