package sim

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/assay-gpu/assay/agent/sim/nvmllib"
)

// The layout of nvml.state: nvmllib/src/state.h.
const (
	nvmlMagic  = 0x59415341
	nvmlLayout = 4
)

// Bits of nvmlGPU.Flags.
const (
	flagMissing = 1 << iota
	flagLost
	flagECC
	flagECCPending
	flagSRAM
	flagRemapPending
	flagRemapFailed
	flagPersistence
	flagMIG
	flagMIGPending
	flagMargin
)

// Values of nvmlNode.Init.
const (
	initOK = iota
	initHang
	initError
)

type nvmlGPU struct {
	UUID, Name            [96]byte
	Serial                [32]byte
	Domain, Bus, Device   uint32
	DeviceID              uint32
	Flags                 uint32
	Recovery              uint32
	Remap                 [2]uint32
	ECC                   [2][2]nvmlCounter
	ClockReasons          uint64
	Temperature, Margin   int32
	Threshold             [4]int32
	Utilization           uint32
	ComputeMode           uint32
	Fabric                [4]uint32 // state, status, health, summary
	Bank                  [5]uint32
	Fields                uint32
	Process               [maxProcesses]uint32
	Remote                [maxLinks][3]uint32
	NotSupported, Hanging uint64
	Unreadable            uint64
}

type nvmlNode struct {
	Magic, Layout uint32
	GPUs          uint32
	Init          uint32
	InitReturn    int32
	NewestField   uint32
	Driver, NVML  [80]byte
	GPU           [maxGPUs]nvmlGPU
}

// encode is the state as the library maps it.
func (s State) encode() []byte {
	n := nvmlNode{Magic: nvmlMagic, Layout: nvmlLayout, GPUs: uint32(len(s.GPUs)), NewestField: uint32(s.NewestField)}
	copy(n.Driver[:len(n.Driver)-1], s.Driver)
	copy(n.NVML[:len(n.NVML)-1], "13."+s.Driver)
	switch s.Init {
	case "hang":
		n.Init = initHang
	case "error":
		n.Init, n.InitReturn = initError, 9 // NVML_ERROR_DRIVER_NOT_LOADED
	case "version_mismatch":
		n.Init, n.InitReturn = initError, 18 // NVML_ERROR_LIB_RM_VERSION_MISMATCH
	}
	for i, g := range s.GPUs {
		n.GPU[i] = g.encode(models[s.Model])
	}
	var fields [maxGPUs][maxFields]nvmlField
	for i, g := range s.GPUs {
		n.GPU[i].Fields = uint32(copy(fields[i][:], g.fields(models[s.Model])))
	}
	var b bytes.Buffer
	for _, part := range []any{n, &fields} {
		_ = binary.Write(&b, binary.LittleEndian, part) // into memory, of fixed size: cannot fail
	}
	return b.Bytes()
}

func (g GPU) encode(m model) nvmlGPU {
	n := nvmlGPU{
		DeviceID: m.deviceID, Recovery: g.RecoveryAction, Remap: [2]uint32{g.RemapCorrectable, g.RemapUncorrectable},
		Temperature: int32(g.Temperature), Margin: int32(m.slowdown - 2 - g.Temperature), Utilization: g.Utilization,
		Threshold:   [4]int32{int32(m.slowdown + 6), int32(m.slowdown), int32(m.memoryMax), int32(m.slowdown - 2)},
		ComputeMode: uint32(max(0, slices.Index(ComputeModes, g.ComputeMode))),
		Fabric:      [4]uint32{uint32(max(0, slices.Index(Fabrics, g.Fabric))), g.FabricStatus, g.FabricHealth, 0},
		Bank:        [5]uint32{banks - g.BanksNone, 0, 0, 0, g.BanksNone}, NotSupported: functionBits(g.NotSupported...), Unreadable: functionBits(g.Unreadable...),
	}
	for kind, counts := range g.eccCounts() {
		for life, count := range counts {
			n.ECC[kind][life] = nvmlCounter{Value: count, Since: g.RatesSince.UnixNano()}
			if kind == 0 {
				n.ECC[kind][life].PerMinute = g.VolatileCorrectedPerMinute
			}
		}
	}
	for i, pid := range g.Processes {
		n.Process[i] = processID(pid)
	}
	for _, name := range g.Throttle {
		n.ClockReasons |= 1 << slices.Index(Throttles, name)
		if name == "hw_thermal" || name == "power_brake" {
			n.ClockReasons |= 1 << slices.Index(Throttles, "hw_slowdown") // as the driver does
		}
	}
	for i, l := range g.Links {
		if m.fabric && l.State != "down" { // the far end is one of four switches
			n.Remote[i] = [3]uint32{0, uint32(5 + i%4), 0}
		}
	}
	copy(n.UUID[:len(n.UUID)-1], g.UUID)
	copy(n.Name[:len(n.Name)-1], g.Name)
	copy(n.Serial[:len(n.Serial)-1], g.Serial)
	_, _ = fmt.Sscanf(g.PCI, "%x:%x:%x.0", &n.Domain, &n.Bus, &n.Device) // our own address()
	if g.Hang != "" {
		n.Hanging = functionBits(g.Hang)
	}
	for bit, set := range map[uint32]bool{
		flagMissing: g.Missing, flagLost: g.Lost, flagECC: g.ECCEnabled, flagECCPending: g.ECCPending,
		flagSRAM: g.SRAMThreshold, flagRemapPending: g.RemapPending, flagRemapFailed: g.RemapFailed,
		flagPersistence: g.Persistence, flagMIG: g.MIG, flagMIGPending: g.MIGPending, flagMargin: m.margin,
	} {
		if set {
			n.Flags |= bit
		}
	}
	return n
}

// banks is how many banks of memory a row remapper serves: those of an H100.
const banks = 2560

// functionBits has the bit of each function named set; "all" sets every bit.
func functionBits(names ...string) uint64 {
	var bits uint64
	for _, name := range names {
		if name == "all" {
			return ^uint64(0)
		}
		if i := slices.Index(nvmllib.Functions, name); i >= 0 {
			bits |= 1 << i
		}
	}
	return bits
}
