package sim

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// The sizes of nvmllib/src/state.h.
const (
	maxLinks  = 18
	maxFields = 512

	maxProcesses = 8
)

// nvmlCounter is struct sim_counter.
type nvmlCounter struct {
	Value     uint64
	PerMinute uint64
	Since     int64
}

// nvmlField is struct sim_field.
type nvmlField struct {
	Field, Scope uint32
	Type         uint32
	Ret          int32
	nvmlCounter
}

// retUnknown is NVML_ERROR_UNKNOWN, as nvidia-smi's "Unknown Error".
const retUnknown = 999

// Types of a field's value: nvmlValueType_t.
const (
	typeUint  = 1
	typeUlong = 3 // unsigned long long
)

// Fields of nvmlDeviceGetFieldValues, by nvml.h.
const (
	fieldRetiredSBE       = 29
	fieldRetiredDBE       = 30
	fieldRetiredPending   = 31
	fieldPolicyThermal    = 75
	fieldMemoryTemp       = 82
	fieldLinkCount        = 91
	fieldReplays          = 94
	fieldRemoteLink       = 146
	fieldLinkReplay       = 161
	fieldLinkRecovery     = 162
	fieldLinkCRC          = 163
	fieldLinkSpeed        = 164
	fieldLinkState        = 165
	fieldLinkVersion      = 166
	fieldShutdownMargin   = 193
	fieldSlowdownMargin   = 194
	fieldMemoryMargin     = 195
	fieldOperatingMargin  = 196
	fieldLinkEffectiveBER = 220
	fieldLinkSymbolBER    = 222
	fieldRecoveryAction   = 230
	fieldHeldSWThermal    = 269
	fieldHeldHWThermal    = 270
	fieldHeldPowerBrake   = 271
)

// Fields of a link by itself, as drivers before R520 have them: of link 0 and, counting up anew, of link 6.
var (
	fieldsOldFlit     = [2]uint32{32, 96}
	fieldsOldData     = [2]uint32{39, 102}
	fieldsOldReplay   = [2]uint32{46, 108}
	fieldsOldRecovery = [2]uint32{53, 114}
	fieldsOldSpeed    = [2]uint32{84, 132}
)

// Fields of ECC counters of device memory: corrected and uncorrected, volatile and aggregate.
var fieldsDRAM = [2][2]uint32{{11, 22}, {12, 23}}

// fields is what nvmlDeviceGetFieldValues knows of the GPU.
func (g GPU) fields(m model) []nvmlField {
	var out []nvmlField
	since := g.RatesSince.UnixNano()
	add := func(field, scope, typ uint32, value, perMinute uint64) {
		out = append(out, nvmlField{Field: field, Scope: scope, Type: typ, nvmlCounter: nvmlCounter{value, perMinute, since}})
	}
	plain := func(field uint32, value uint64) { add(field, 0, typeUint, value, 0) }
	plain(fieldRecoveryAction, uint64(g.RecoveryAction))
	add(fieldReplays, 0, typeUint, g.PCIeReplays, g.PCIeReplaysPerMinute)
	if m.gddr { // retires pages
		plain(fieldRetiredSBE, uint64(g.RetiredSingle))
		plain(fieldRetiredDBE, uint64(g.RetiredDouble))
		plain(fieldRetiredPending, flag(g.RetiredPending))
	}
	if g.MemoryTemperature > 0 {
		plain(fieldMemoryTemp, uint64(g.MemoryTemperature))
	}
	if m.margin {
		plain(fieldShutdownMargin, signed(-8))
		plain(fieldSlowdownMargin, signed(-2))
		plain(fieldMemoryMargin, 0)
		plain(fieldOperatingMargin, 0)
	}
	if g.ECCEnabled {
		for kind, perMinute := range []uint64{g.VolatileCorrectedPerMinute, 0} {
			for life := range 2 {
				add(fieldsDRAM[kind][life], 0, typeUlong, g.eccCounts()[kind][life], perMinute)
			}
		}
	}
	held := func(field uint32, name string) {
		perMinute := uint64(0)
		if slices.Contains(g.Throttle, name) {
			perMinute = uint64(time.Minute)
		}
		add(field, 0, typeUlong, g.Held[name], perMinute)
	}
	held(fieldPolicyThermal, "sw_thermal")
	if m.held {
		held(fieldHeldSWThermal, "sw_thermal")
		held(fieldHeldHWThermal, "hw_thermal")
		held(fieldHeldPowerBrake, "power_brake")
	}
	if m.links > 0 {
		plain(fieldLinkCount, uint64(len(g.Links)))
	}
	for i, l := range g.Links {
		scope := uint32(i)
		add(fieldLinkState, scope, typeUint, uint64(slices.Index(LinkStates, l.State)), 0)
		add(fieldLinkVersion, scope, typeUint, m.linkVersion, 0)
		if l.State != "down" {
			add(fieldLinkSpeed, scope, typeUint, uint64(l.SpeedMBps), 0)
			add(fieldRemoteLink, scope, typeUint, uint64(g.Index*m.links+i)%64, 0)
		}
		add(fieldLinkReplay, scope, typeUlong, l.Replay, l.ReplayPerMinute)
		add(fieldLinkRecovery, scope, typeUlong, l.Recovery, l.RecoveryPerMinute)
		add(fieldLinkCRC, scope, typeUlong, l.CRC, l.CRCPerMinute)
		if i < 12 && m.cc < 90 {
			old := func(ids [2]uint32) uint32 { return ids[i/6] + scope%6 }
			add(old(fieldsOldReplay), 0, typeUlong, l.Replay, l.ReplayPerMinute)
			add(old(fieldsOldRecovery), 0, typeUlong, l.Recovery, l.RecoveryPerMinute)
			add(old(fieldsOldFlit), 0, typeUlong, l.CRC, l.CRCPerMinute)
			add(old(fieldsOldData), 0, typeUlong, 0, 0)
			if l.State != "down" {
				add(old(fieldsOldSpeed), 0, typeUint, uint64(l.SpeedMBps), 0)
			}
		}
		if m.linkVersion >= 7 {
			ber, err := packBER(l.EffectiveBER)
			if err != nil { // none set: as good as can be told
				ber = 255 | 15<<8
			}
			add(fieldLinkEffectiveBER, scope, typeUlong, ber, 0)
			add(fieldLinkSymbolBER, scope, typeUlong, ber, 0)
		}
	}
	return g.without(out)
}

// fieldNumber is the field of nvmlDeviceGetFieldValues that a scenario names, as field_82.
func fieldNumber(name string) (uint32, bool) {
	number, ok := strings.CutPrefix(name, "field_")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(number, 10, 16)
	return uint32(n), err == nil
}

// without takes out the fields that the GPU does not have, and makes those that cannot be read fail.
func (g GPU) without(fields []nvmlField) []nvmlField {
	for _, name := range g.NotSupported {
		if n, ok := fieldNumber(name); ok {
			fields = slices.DeleteFunc(fields, func(f nvmlField) bool { return f.Field == n })
		}
	}
	for _, name := range g.Unreadable {
		n, ok := fieldNumber(name)
		for i := range fields {
			if ok && fields[i].Field == n {
				fields[i].Ret = retUnknown
			}
		}
	}
	return fields
}

func flag(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// signed is a negative number as the 32 bits of a field.
func signed(n int32) uint64 { return uint64(uint32(n)) }

// eccCounts are corrected and uncorrected errors, volatile and aggregate.
func (g GPU) eccCounts() [2][2]uint64 {
	return [2][2]uint64{{g.VolatileCorrected, g.AggregateCorrected}, {g.VolatileUncorrected, g.AggregateUncorrected}}
}
