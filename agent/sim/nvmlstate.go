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
	nvmlLayout = 1
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
	ECC                   [2][2]uint64
	NotSupported, Hanging uint64
}

type nvmlNode struct {
	Magic, Layout uint32
	GPUs          uint32
	Init          uint32
	InitReturn    int32
	Reserved      uint32
	Driver, NVML  [80]byte
	GPU           [maxGPUs]nvmlGPU
}

// encode is the state as the library maps it.
func (s State) encode() []byte {
	n := nvmlNode{Magic: nvmlMagic, Layout: nvmlLayout, GPUs: uint32(len(s.GPUs))}
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
		n.GPU[i] = g.encode(models[s.Model].deviceID)
	}
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, n) // into memory, of fixed size: cannot fail
	return b.Bytes()
}

func (g GPU) encode(deviceID uint32) nvmlGPU {
	n := nvmlGPU{
		DeviceID: deviceID, Recovery: g.RecoveryAction, Remap: [2]uint32{g.RemapCorrectable, g.RemapUncorrectable},
		ECC:          [2][2]uint64{{g.VolatileCorrected, g.AggregateCorrected}, {g.VolatileUncorrected, g.AggregateUncorrected}},
		NotSupported: functionBits(g.NotSupported...),
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
	} {
		if set {
			n.Flags |= bit
		}
	}
	return n
}

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
