package nvml

import (
	"encoding/binary"
	"fmt"
	"math"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/clocks"
	"github.com/assay-gpu/assay/checks/counter"
	"github.com/assay-gpu/assay/checks/ecc"
	"github.com/assay-gpu/assay/checks/retired"
	"github.com/assay-gpu/assay/checks/thermal"
)

const callFields = "nvmlDeviceGetFieldValues"

// A value is one field's answer.
type value struct {
	have checks.Availability
	err  string // why have is Unread
	n    int
	u    uint64
}

// A table is what one call of nvmlDeviceGetFieldValues gave, by field.
type table map[uint32]value

// ask reads fields of one scope in one call. Fields that the driver does not know are not supported; a whole call that
// fails leaves every field as it does.
func (c *child) ask(d *device, values []gonvml.FieldValue) ([]value, gonvml.Return) {
	ret := c.call(callFields, func() gonvml.Return { return d.GetFieldValues(values) })
	out := make([]value, len(values))
	for i, v := range values {
		r := ret
		if r == gonvml.SUCCESS {
			r = gonvml.Return(v.NvmlReturn)
		}
		if r == gonvml.ERROR_INVALID_ARGUMENT { // a driver from before the field
			r = gonvml.ERROR_NOT_SUPPORTED
		}
		if r == gonvml.ERROR_GPU_IS_LOST {
			return nil, r
		}
		x := &out[i]
		if x.have, x.err = availability(callFields, r); x.have != checks.Read {
			continue
		}
		n, ok := number(v)
		if !ok {
			x.have, x.err = checks.Unread, fmt.Sprintf("%s: field %d has a value of type %d", callFields, v.FieldId, v.ValueType)
			continue
		}
		x.n, x.u = n, uint64(n)
	}
	return out, ret
}

// gpuFields are the fields of a GPU as a whole. One call reads them all.
var gpuFields = []uint32{
	gonvml.FI_DEV_GET_GPU_RECOVERY_ACTION, gonvml.FI_DEV_PCIE_REPLAY_COUNTER, gonvml.FI_DEV_RETIRED_SBE, gonvml.FI_DEV_RETIRED_DBE, gonvml.FI_DEV_RETIRED_PENDING,
	gonvml.FI_DEV_MEMORY_TEMP, gonvml.FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT, gonvml.FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT,
	gonvml.FI_DEV_ECC_SBE_VOL_DEV, gonvml.FI_DEV_ECC_DBE_VOL_DEV, gonvml.FI_DEV_ECC_SBE_AGG_DEV, gonvml.FI_DEV_ECC_DBE_AGG_DEV,
	gonvml.FI_DEV_PERF_POLICY_THERMAL, gonvml.FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN, gonvml.FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN,
	gonvml.FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN, gonvml.FI_DEV_NVLINK_LINK_COUNT,
}

// fields reads all that one call tells of the GPU, for several checks.
func (c *child) fields(d *device, s *catalog.GPUState) (string, gonvml.Return) {
	request := make([]gonvml.FieldValue, len(gpuFields))
	for i, f := range gpuFields {
		request[i].FieldId = f
	}
	values, ret := c.ask(d, request)
	if ret == gonvml.ERROR_GPU_IS_LOST {
		return callFields, ret
	}
	t := table{}
	for i, f := range gpuFields {
		t[f] = values[i]
	}
	action := t[gonvml.FI_DEV_GET_GPU_RECOVERY_ACTION]
	s.Recovery.Have, s.Recovery.Err, s.Recovery.Action = action.have, action.err, action.n
	s.PCIe.Replays = t.of(gonvml.FI_DEV_PCIE_REPLAY_COUNTER).counter()
	s.Retired = t.retired()
	s.ECC.DRAM = t.dram()
	s.Clocks.Held = t.held()
	s.Thermal.Memory = t.degrees(gonvml.FI_DEV_MEMORY_TEMP)
	s.Thermal.SlowdownMargin = t.degrees(gonvml.FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT)
	s.Thermal.OperatingMargin = t.degrees(gonvml.FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT)
	links := t[gonvml.FI_DEV_NVLINK_LINK_COUNT]
	s.NVLink.Have, s.NVLink.Err = links.have, links.err
	if links.have == checks.Read {
		d.links = min(max(links.n, 0), maxLinks)
	}
	return callFields, ret
}

// of is a field's answer; one that was not asked for is as one that the driver does not have.
func (t table) of(field uint32) value {
	if v, asked := t[field]; asked {
		return v
	}
	return value{have: checks.NotSupported}
}

func (v value) counter() counter.Reading { return counter.Reading{Have: v.have, Now: v.u} }

// degrees is a temperature or a margin, which may be below zero: the driver gives it in 32 bits.
func (t table) degrees(field uint32) thermal.Degrees {
	v := t[field]
	return thermal.Degrees{Have: v.have, C: int(int32(uint32(v.u))), Err: v.err}
}

func (t table) retired() retired.Reading {
	single, double, pending := t[gonvml.FI_DEV_RETIRED_SBE], t[gonvml.FI_DEV_RETIRED_DBE], t[gonvml.FI_DEV_RETIRED_PENDING]
	if v := worst(single, double, pending); v.have != checks.Read {
		return retired.Reading{Have: v.have, Err: v.err}
	}
	return retired.Reading{Have: checks.Read, Single: single.n, Double: double.n, Pending: pending.n != 0}
}

func (t table) dram() ecc.Location {
	corrected, uncorrected := t[gonvml.FI_DEV_ECC_SBE_VOL_DEV], t[gonvml.FI_DEV_ECC_DBE_VOL_DEV]
	lifeCorrected, lifeUncorrected := t[gonvml.FI_DEV_ECC_SBE_AGG_DEV], t[gonvml.FI_DEV_ECC_DBE_AGG_DEV]
	if v := worst(corrected, uncorrected, lifeCorrected, lifeUncorrected); v.have != checks.Read {
		return ecc.Location{Have: v.have}
	}
	return ecc.Location{Have: checks.Read, VolatileCorrected: corrected.u, VolatileUncorrected: uncorrected.u,
		AggregateCorrected: lifeCorrected.u, AggregateUncorrected: lifeUncorrected.u}
}

// worst is the answer that says what is known of several that belong together: one that could not be read, else one that
// the driver does not have, else the last.
func worst(vs ...value) (out value) {
	out = value{have: checks.Read}
	for _, v := range vs {
		if v.have == checks.Unread {
			return v
		}
		if out.have == checks.Read {
			out = v
		}
	}
	return out
}

// held is how long reasons to slow down have held. Before R570 only the software thermal one was counted, by another field.
func (t table) held() map[clocks.Name]counter.Reading {
	held := map[clocks.Name]counter.Reading{}
	for _, x := range []struct {
		name  clocks.Name
		field uint32
	}{
		{clocks.NameSWThermal, gonvml.FI_DEV_PERF_POLICY_THERMAL}, {clocks.NameSWThermal, gonvml.FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN},
		{clocks.NameHWThermal, gonvml.FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN}, {clocks.NamePowerBrake, gonvml.FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN},
	} {
		v := t.of(x.field).counter()
		if v.Have == checks.Read || v.Have == checks.Unread && held[x.name].Have != checks.Read {
			held[x.name] = v
		}
	}
	return held
}

// number is a field's value as an int. The layout is nvmlValue_t's, a union in the machine's byte order.
func number(v gonvml.FieldValue) (int, bool) {
	raw := binary.NativeEndian.Uint64(v.Value[:])
	half := binary.NativeEndian.Uint32(v.Value[:4])
	switch gonvml.ValueType(v.ValueType) {
	case gonvml.VALUE_TYPE_UNSIGNED_INT:
		return int(half), true
	case gonvml.VALUE_TYPE_SIGNED_INT:
		return int(int32(half)), true
	case gonvml.VALUE_TYPE_UNSIGNED_LONG, gonvml.VALUE_TYPE_UNSIGNED_LONG_LONG, gonvml.VALUE_TYPE_SIGNED_LONG_LONG:
		return int(int64(raw)), true
	case gonvml.VALUE_TYPE_DOUBLE:
		return int(math.Float64frombits(raw)), true
	}
	return 0, false
}
