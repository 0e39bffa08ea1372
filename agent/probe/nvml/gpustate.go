package nvml

import (
	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/clocks"
	"github.com/assay-gpu/assay/checks/fabric"
	"github.com/assay-gpu/assay/checks/leftover"
	"github.com/assay-gpu/assay/checks/modes"
	"github.com/assay-gpu/assay/checks/pcie"
	"github.com/assay-gpu/assay/checks/rowremap"
	"github.com/assay-gpu/assay/checks/thermal"
)

// banks reads how many spare rows are left.
func (c *child) banks(d *device, r *rowremap.Reading) (string, gonvml.Return) {
	const call = "nvmlDeviceGetRowRemapperHistogram"
	ret := c.call(call, func() gonvml.Return {
		h, ret := d.GetRowRemapperHistogram()
		if ret == gonvml.SUCCESS {
			r.Banks = rowremap.Banks{Max: int(h.Max), High: int(h.High), Partial: int(h.Partial), Low: int(h.Low), None: int(h.None)}
		}
		return ret
	})
	r.HaveBanks, _ = availability(call, ret) // shown, and watched: what was not read of it leaves no verdict open
	return call, ret
}

// clocks reads why the GPU runs below its highest clocks. The function was renamed with R535.
func (c *child) clocks(d *device, r *clocks.Reading) (string, gonvml.Return) {
	call := "nvmlDeviceGetCurrentClocksEventReasons"
	get := d.GetCurrentClocksEventReasons
	if !c.hasAny([]string{call}) {
		call, get = "nvmlDeviceGetCurrentClocksThrottleReasons", d.GetCurrentClocksThrottleReasons
	}
	ret := c.call(call, func() gonvml.Return {
		reasons, ret := get()
		r.Reasons = clocks.Reasons(reasons)
		return ret
	})
	if r.Have, r.Err = availability(call, ret); r.Have != checks.Read {
		r.Reasons = 0
	}
	return call, ret
}

// thermal reads temperatures. Thresholds do not change while the GPU is open; products that give their own margin are not
// asked for those they would be ignored for.
func (c *child) thermal(d *device, r *thermal.Reading) (call string, ret gonvml.Return) {
	degrees := func(name string, into *thermal.Degrees, get func() (int, gonvml.Return)) {
		if ret == gonvml.ERROR_GPU_IS_LOST {
			return
		}
		call = name
		ret = c.call(name, func() gonvml.Return {
			n, ret := get()
			into.C = n
			return ret
		})
		if into.Have, into.Err = availability(name, ret); into.Have != checks.Read {
			into.C = 0
		}
	}
	degrees("nvmlDeviceGetTemperature", &r.Core, func() (int, gonvml.Return) {
		t, ret := d.GetTemperature(gonvml.TEMPERATURE_GPU)
		return int(t), ret
	})
	degrees("nvmlDeviceGetMarginTemperature", &r.Margin, func() (int, gonvml.Return) {
		m, ret := d.GetMarginTemperature()
		return int(m.MarginTemperature), ret
	})
	if d.thresholds == nil && ret != gonvml.ERROR_GPU_IS_LOST {
		var t thermal.Reading
		for _, x := range []struct {
			into *thermal.Degrees
			kind gonvml.TemperatureThresholds
		}{{&t.Slowdown, gonvml.TEMPERATURE_THRESHOLD_SLOWDOWN}, {&t.Operating, gonvml.TEMPERATURE_THRESHOLD_GPU_MAX}, {&t.MemoryMax, gonvml.TEMPERATURE_THRESHOLD_MEM_MAX}} {
			degrees("nvmlDeviceGetTemperatureThreshold", x.into, func() (int, gonvml.Return) {
				n, ret := d.GetTemperatureThreshold(x.kind)
				return int(n), ret
			})
		}
		if ret != gonvml.ERROR_GPU_IS_LOST && t.Slowdown.Have != checks.Unread && t.Operating.Have != checks.Unread && t.MemoryMax.Have != checks.Unread {
			d.thresholds = &t
		}
		r.Slowdown, r.Operating, r.MemoryMax = t.Slowdown, t.Operating, t.MemoryMax
	} else if t := d.thresholds; t != nil {
		r.Slowdown, r.Operating, r.MemoryMax = t.Slowdown, t.Operating, t.MemoryMax
	}
	return call, ret
}

// load reads how busy the GPU is: the speed of its PCIe link is judged only then.
func (c *child) load(d *device, r *pcie.Reading) (string, gonvml.Return) {
	const call = "nvmlDeviceGetUtilizationRates"
	ret := c.call(call, func() gonvml.Return {
		u, ret := d.GetUtilizationRates()
		if ret == gonvml.SUCCESS {
			r.Percent = int(u.Gpu)
		}
		return ret
	})
	r.Busy, _ = availability(call, ret) // in MIG mode not supported: the link's speed is then not judged
	return call, ret
}

// modes reads the GPU's settings.
func (c *child) modes(d *device, r *modes.Reading) (call string, ret gonvml.Return) {
	read := func(name string, have *checks.Availability, get func() gonvml.Return) {
		if ret == gonvml.ERROR_GPU_IS_LOST {
			return
		}
		call = name
		ret = c.call(name, get)
		var err string
		if *have, err = availability(name, ret); err != "" {
			r.Err = err
		}
	}
	read("nvmlDeviceGetPersistenceMode", &r.HavePersistence, func() gonvml.Return {
		on, ret := d.GetPersistenceMode()
		r.Persistence = ret == gonvml.SUCCESS && on == gonvml.FEATURE_ENABLED
		return ret
	})
	read("nvmlDeviceGetComputeMode", &r.HaveCompute, func() gonvml.Return {
		mode, ret := d.GetComputeMode()
		if ret == gonvml.SUCCESS {
			r.Compute = modes.Compute(mode)
		}
		return ret
	})
	read("nvmlDeviceGetMigMode", &r.HaveMIG, func() gonvml.Return {
		current, pending, ret := d.GetMigMode()
		if ret == gonvml.SUCCESS {
			r.MIG, r.MIGPending = current == gonvml.DEVICE_MIG_ENABLE, pending == gonvml.DEVICE_MIG_ENABLE
		}
		return ret
	})
	return call, ret
}

// fabric reads the GPU's place in the NVLink fabric. A driver too old for the newer form gives the older one.
func (c *child) fabric(d *device, r *fabric.Reading) (string, gonvml.Return) {
	const call = "nvmlDeviceGetGpuFabricInfoV"
	ret := c.call(call, func() gonvml.Return {
		v, ret := d.GetGpuFabricInfoV().V3()
		if ret == gonvml.SUCCESS {
			r.State, r.Status, r.Health, r.Summary = fabric.State(v.State), int(v.Status), v.HealthMask, int(v.HealthSummary)
		}
		return ret
	})
	if ret == gonvml.ERROR_ARGUMENT_VERSION_MISMATCH {
		ret = c.call(call, func() gonvml.Return {
			v, ret := d.GetGpuFabricInfoV().V2()
			if ret == gonvml.SUCCESS {
				r.State, r.Status, r.Health = fabric.State(v.State), int(v.Status), v.HealthMask
			}
			return ret
		})
	}
	r.Have, r.Err = availability(call, ret)
	return call, ret
}

// maxProcesses bounds how many processes of one GPU are told: an answer must fit in a line.
const maxProcesses = 64

// processes reads which processes compute on the GPU. The library is asked once for a GPU with one process or none, and again
// with twice the room for more.
func (c *child) processes(d *device, r *leftover.Reading) (string, gonvml.Return) {
	const call = "nvmlDeviceGetComputeRunningProcesses"
	ret := c.call(call, func() gonvml.Return {
		list, ret := d.GetComputeRunningProcesses()
		if len(list) > 1 {
			c.made++
		}
		for _, p := range list[:min(len(list), maxProcesses)] {
			one := leftover.Process{PID: int(p.Pid), Bytes: p.UsedGpuMemory}
			if one.Bytes == 1<<64-1 { // NVML_VALUE_NOT_AVAILABLE
				one.Bytes = 0
			}
			r.Processes = append(r.Processes, one)
		}
		return ret
	}, call+"_v3", call+"_v2", call)
	r.Have, r.Err = availability(call, ret)
	return call, ret
}
