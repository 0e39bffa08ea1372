package sim

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
)

// A model is what one GPU product shows of itself.
type model struct {
	name     string // as nvmlDeviceGetName gives it
	deviceID uint32 // PCI device id in the upper, vendor id in the lower half
	gen      string // PCIe link speed, as sysfs writes it
	gddr     bool   // without a row remapper
	cc       int    // compute capability, 10 · major + minor
}

// models lists the products a scenario may name. Device ids: pci.ids, vendor 10de.
var models = map[string]model{
	"A100": {name: "NVIDIA A100-SXM4-80GB", deviceID: 0x20b210de, gen: "16.0 GT/s PCIe", cc: 80},
	"H100": {name: "NVIDIA H100 80GB HBM3", deviceID: 0x233010de, gen: "32.0 GT/s PCIe", cc: 90},
	"H200": {name: "NVIDIA H200", deviceID: 0x233510de, gen: "32.0 GT/s PCIe", cc: 90},
	"B200": {name: "NVIDIA B200", deviceID: 0x290110de, gen: "32.0 GT/s PCIe", cc: 100},
	"V100": {name: "Tesla V100-SXM2-32GB", deviceID: 0x1db510de, gen: "8.0 GT/s PCIe", gddr: true, cc: 70},
	"T4":   {name: "Tesla T4", deviceID: 0x1eb810de, gen: "8.0 GT/s PCIe", gddr: true},
}

// Models names the products a scenario may name.
func Models() []string { return slices.Sorted(maps.Keys(models)) }

// maxGPUs is as many as nvmllib/src/state.h holds.
const maxGPUs = 16

// buses are the PCI buses of the GPUs in an eight-GPU HGX board, as nvidia-smi topo shows them on public H100 nodes.
var buses = [8]uint32{0x1b, 0x43, 0x52, 0x61, 0x9d, 0xc3, 0xd1, 0xdf}

// address is the PCI address of GPU i: rising, as the driver counts GPUs by address.
func address(i int) string {
	if i < len(buses) {
		return fmt.Sprintf("0000:%02x:00.0", buses[i])
	}
	return fmt.Sprintf("0001:%02x:00.0", buses[i-len(buses)])
}

// identity gives GPU i of a node a UUID and a board serial that stay the same whenever the node is made anew.
func identity(node string, i int) (uuid, serial string) {
	h := sha256.Sum256(fmt.Appendf(nil, "assay simulated gpu %s %d", node, i))
	h[6], h[8] = h[6]&0x0f|0x40, h[8]&0x3f|0x80
	n := uint64(h[16])<<32 | uint64(h[17])<<24 | uint64(h[18])<<16 | uint64(h[19])<<8 | uint64(h[20])
	return fmt.Sprintf("GPU-%x-%x-%x-%x-%x", h[0:4], h[4:6], h[6:8], h[8:10], h[10:16]), fmt.Sprintf("%013d", 1_650_000_000_000+n%100_000_000_000)
}

// hostSerial is the node's own serial.
func hostSerial(node string) string {
	h := sha256.Sum256(fmt.Appendf(nil, "assay simulated host %s", node))
	return fmt.Sprintf("SIM%X", h[:5])
}
