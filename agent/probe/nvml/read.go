package nvml

import (
	"fmt"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/ecc"
	"github.com/assay-gpu/assay/checks/rowremap"
	"github.com/assay-gpu/assay/checks/thermal"
)

// A device is a GPU the child has opened. Who it is stays the same while its UUID does.
type device struct {
	gonvml.Device
	gpu        checks.GPU
	thresholds *thermal.Reading // those that never change; nil: not read yet
	heard      bool             // its events are listened to

	links        int        // how many the chip has; 0: not known yet
	linkless     bool       // it has none, by what the driver says of the first
	linkVersion  int        // the newest among them
	noLinkFields bool       // the driver has no fields with a link's number as their scope
	noOldFields  bool       // nor fields for each link by itself
	parts        []linkPart // by link
	turn         int        // the link whose counters are asked for next
}

func (c *child) init() *initReply {
	// The first call loads the library: nothing can be looked up before it.
	c.send(message{Call: "nvmlInit"})
	if ret := c.nvml.Init(); ret != gonvml.SUCCESS {
		if ret == gonvml.ERROR_LIBRARY_NOT_FOUND {
			return &initReply{Err: c.lib + ": library not found or not loadable"}
		}
		return &initReply{Err: why("nvmlInit", ret)}
	}
	c.open = map[request]*device{}
	return &initReply{}
}

func (c *child) node() *nodeReply {
	if c.driver == "" {
		ret := c.call("nvmlSystemGetDriverVersion", func() (ret gonvml.Return) {
			c.driver, ret = c.nvml.SystemGetDriverVersion()
			return ret
		})
		if ret != gonvml.SUCCESS {
			c.driver = "" // the inventory says it is not known
		}
	}
	if c.library == "" {
		ret := c.call("nvmlSystemGetNVMLVersion", func() (ret gonvml.Return) {
			c.library, ret = c.nvml.SystemGetNVMLVersion()
			return ret
		})
		if ret != gonvml.SUCCESS {
			c.library = ""
		}
	}
	r := &nodeReply{Driver: c.driver, Library: c.library}
	ret := c.call("nvmlDeviceGetCount", func() (ret gonvml.Return) {
		r.Count, ret = c.nvml.DeviceGetCount()
		return ret
	}, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount")
	if ret != gonvml.SUCCESS {
		return &nodeReply{Driver: c.driver, Library: c.library, Count: -1, Err: why("nvmlDeviceGetCount", ret)}
	}
	if r.Count != c.count { // indices now mean other GPUs
		clear(c.open)
		c.count = r.Count
	}
	return r
}

// callsPerCycle is how many calls a cycle may make on one GPU. What must be read each time comes first; what changes only
// with the cabling, or comes in turn, gets what is left.
const callsPerCycle = 40

// left is how many more calls may be made on the GPU that is being read.
func (c *child) left() int { return callsPerCycle - c.made }

// gpu reads one GPU: twenty calls once it is open, more where the driver is old.
func (c *child) gpu(r request) *gpuReply {
	c.made = 0
	reply := &gpuReply{State: catalog.GPUState{GPU: checks.GPU{Index: r.Index, PCI: r.PCI}}}
	s := &reply.State
	d, call, ret := c.device(r)
	if ret == gonvml.SUCCESS {
		s.GPU = d.gpu
		c.send(message{Named: s})
		call, ret = c.status(d, s)
	}
	switch ret {
	case gonvml.SUCCESS:
		c.listener.hear(d)
	case gonvml.ERROR_GPU_IS_LOST:
		*s = catalog.GPUState{GPU: s.GPU}
		s.Call.Lost = true
	case gonvml.ERROR_NOT_FOUND:
		reply.Gone = true
		fallthrough
	default:
		s.Call.Err = why(call, ret)
	}
	return reply
}

// device opens the GPU, or verifies that the one opened before is still itself. After an error call names what failed.
func (c *child) device(r request) (d *device, call string, ret gonvml.Return) {
	if d := c.open[r]; d != nil {
		uuid, ret := c.text("nvmlDeviceGetUUID", d.GetUUID)
		if ret == gonvml.SUCCESS && uuid == d.gpu.UUID {
			return d, "", ret
		}
		delete(c.open, r)
		if ret == gonvml.ERROR_GPU_IS_LOST {
			return nil, "nvmlDeviceGetUUID", ret
		}
	}
	d = &device{gpu: checks.GPU{Index: r.Index}}
	if r.PCI != "" {
		call = "nvmlDeviceGetHandleByPciBusId"
		ret = c.call(call, func() (ret gonvml.Return) {
			d.Device, ret = c.nvml.DeviceGetHandleByPciBusId(r.PCI)
			return ret
		}, call+"_v2", call)
	} else {
		call = "nvmlDeviceGetHandleByIndex"
		ret = c.call(call, func() (ret gonvml.Return) {
			d.Device, ret = c.nvml.DeviceGetHandleByIndex(r.Index)
			return ret
		}, call+"_v2", call)
	}
	if ret != gonvml.SUCCESS {
		return nil, call, ret
	}
	call, ret = c.identify(d, r)
	if ret != gonvml.SUCCESS {
		return nil, call, ret
	}
	c.open[r] = d
	return d, "", ret
}

// identify learns who the device is. A UUID and an address it must have; name and serial may be missing.
func (c *child) identify(d *device, r request) (call string, ret gonvml.Return) {
	if d.gpu.UUID, ret = c.text("nvmlDeviceGetUUID", d.GetUUID); ret != gonvml.SUCCESS {
		return "nvmlDeviceGetUUID", ret
	}
	ret = c.call("nvmlDeviceGetPciInfo", func() gonvml.Return {
		p, ret := d.GetPciInfo()
		if ret == gonvml.SUCCESS {
			d.gpu.PCI = fmt.Sprintf("%04x:%02x:%02x.0", p.Domain, p.Bus, p.Device)
		}
		return ret
	}, "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo")
	if ret != gonvml.SUCCESS {
		return "nvmlDeviceGetPciInfo", ret
	}
	if r.PCI != "" { // opened by address: the driver says how it counts it
		ret = c.call("nvmlDeviceGetIndex", func() (ret gonvml.Return) {
			d.gpu.Index, ret = d.GetIndex()
			return ret
		})
		if ret != gonvml.SUCCESS {
			if ret != gonvml.ERROR_FUNCTION_NOT_FOUND {
				return "nvmlDeviceGetIndex", ret
			}
			d.gpu.Index = r.Index
		}
	}
	if d.gpu.Name, ret = c.text("nvmlDeviceGetName", d.GetName); ret == gonvml.ERROR_GPU_IS_LOST {
		return "nvmlDeviceGetName", ret
	}
	if d.gpu.Serial, ret = c.text("nvmlDeviceGetSerial", d.GetSerial); ret == gonvml.ERROR_GPU_IS_LOST {
		return "nvmlDeviceGetSerial", ret
	}
	return "", gonvml.SUCCESS
}

// text makes a call that gives text; empty after an error.
func (c *child) text(name string, f func() (string, gonvml.Return)) (s string, ret gonvml.Return) {
	ret = c.call(name, func() (ret gonvml.Return) {
		s, ret = f()
		return ret
	})
	if ret != gonvml.SUCCESS {
		s = ""
	}
	return s, ret
}

// availability says what a return code means for a reading. A function, structure or field that this driver does not know
// is a thing it cannot tell; any other error leaves the reading unread.
func availability(call string, ret gonvml.Return) (checks.Availability, string) {
	switch ret {
	case gonvml.SUCCESS:
		return checks.Read, ""
	case gonvml.ERROR_NOT_SUPPORTED, gonvml.ERROR_FUNCTION_NOT_FOUND, gonvml.ERROR_ARGUMENT_VERSION_MISMATCH:
		return checks.NotSupported, ""
	}
	return checks.Unread, why(call, ret)
}

// status reads the GPU's state. Only a lost GPU ends it early.
func (c *child) status(d *device, s *catalog.GPUState) (call string, ret gonvml.Return) {
	for _, read := range []func() (string, gonvml.Return){
		func() (string, gonvml.Return) { return c.ecc(d, &s.ECC) },
		func() (string, gonvml.Return) { return c.rowRemap(d, &s.RowRemap) },
		func() (string, gonvml.Return) { return c.banks(d, &s.RowRemap) },
		func() (string, gonvml.Return) { return c.fields(d, s) },
		func() (string, gonvml.Return) { return c.clocks(d, &s.Clocks) },
		func() (string, gonvml.Return) { return c.thermal(d, &s.Thermal) },
		func() (string, gonvml.Return) { return c.load(d, &s.PCIe) },
		func() (string, gonvml.Return) { return c.modes(d, &s.Modes) },
		func() (string, gonvml.Return) { return c.fabric(d, &s.Fabric) },
		func() (string, gonvml.Return) { return c.processes(d, &s.Leftover) },
		func() (string, gonvml.Return) { return c.links(d, &s.NVLink) },
	} {
		if call, ret := read(); ret == gonvml.ERROR_GPU_IS_LOST {
			return call, ret
		}
	}
	return "", gonvml.SUCCESS
}

func (c *child) ecc(d *device, r *ecc.Reading) (string, gonvml.Return) {
	call := "nvmlDeviceGetEccMode"
	var current, pending gonvml.EnableState
	ret := c.call(call, func() (ret gonvml.Return) {
		current, pending, ret = d.GetEccMode()
		return ret
	})
	if r.Have, r.Err = availability(call, ret); r.Have != checks.Read {
		r.HaveSRAM = r.Have
		return call, ret
	}
	r.Enabled, r.Pending = current == gonvml.FEATURE_ENABLED, current != pending
	if !r.Enabled { // nothing is counted
		r.HaveSRAM = checks.NotSupported
		return call, ret
	}
	call = "nvmlDeviceGetTotalEccErrors"
	for _, t := range []struct {
		kind gonvml.MemoryErrorType
		life gonvml.EccCounterType
		into *uint64
	}{
		{gonvml.MEMORY_ERROR_TYPE_CORRECTED, gonvml.VOLATILE_ECC, &r.VolatileCorrected},
		{gonvml.MEMORY_ERROR_TYPE_UNCORRECTED, gonvml.VOLATILE_ECC, &r.VolatileUncorrected},
		{gonvml.MEMORY_ERROR_TYPE_CORRECTED, gonvml.AGGREGATE_ECC, &r.AggregateCorrected},
		{gonvml.MEMORY_ERROR_TYPE_UNCORRECTED, gonvml.AGGREGATE_ECC, &r.AggregateUncorrected},
	} {
		ret = c.call(call, func() (ret gonvml.Return) {
			*t.into, ret = d.GetTotalEccErrors(t.kind, t.life)
			return ret
		})
		if ret == gonvml.SUCCESS {
			continue
		}
		r.Have, r.Err = availability(call, ret)
		if ret == gonvml.ERROR_NOT_SUPPORTED { // with ECC on there are counters: N/A is not zero
			r.Have, r.Err = checks.Unread, why(call, ret)
		}
		return call, ret
	}
	call = "nvmlDeviceGetSramEccErrorStatus"
	ret = c.call(call, func() gonvml.Return {
		sram, ret := d.GetSramEccErrorStatus()
		if ret == gonvml.SUCCESS {
			r.SRAMThresholdExceeded = sram.BThresholdExceeded != 0
			r.SRAM = ecc.Location{
				Have: checks.Read, VolatileCorrected: sram.VolatileCor, VolatileUncorrected: sram.VolatileUncParity + sram.VolatileUncSecDed,
				AggregateCorrected: sram.AggregateCor, AggregateUncorrected: sram.AggregateUncParity + sram.AggregateUncSecDed,
			}
		}
		return ret
	})
	var err string
	if r.HaveSRAM, err = availability(call, ret); err != "" {
		r.Err = err
	}
	r.SRAM.Have = r.HaveSRAM
	return call, ret
}

func (c *child) rowRemap(d *device, r *rowremap.Reading) (string, gonvml.Return) {
	const call = "nvmlDeviceGetRemappedRows"
	ret := c.call(call, func() (ret gonvml.Return) {
		r.Correctable, r.Uncorrectable, r.Pending, r.Failed, ret = d.GetRemappedRows()
		return ret
	})
	if r.Have, r.Err = availability(call, ret); r.Have != checks.Read {
		*r = rowremap.Reading{Have: r.Have, Err: r.Err}
	}
	return call, ret
}
