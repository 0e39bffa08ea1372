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
	pcieGen  int    // PCIe generation
	gddr     bool   // without a row remapper; it retires pages
	cc       int    // compute capability, 10 · major + minor

	links       int    // NVLinks
	linkVersion uint64 // NVML_NVLINK_VERSION_*
	linkSpeed   uint32 // MB/s, one direction
	fabric      bool   // it registers with the fabric manager
	margin      bool   // it gives its own margin to the slowdown temperature
	held        bool   // it counts how long each clock event reason has held
	slowdown    int    // °C, of the core
	memoryMax   int    // °C; 0: it does not tell the memory's temperature
}

// pcieSpeeds are the generations' speeds as sysfs writes them.
var pcieSpeeds = []string{"2.5 GT/s PCIe", "5.0 GT/s PCIe", "8.0 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s PCIe", "64.0 GT/s PCIe"}

// models lists the products a scenario may name. Device ids: pci.ids, vendor 10de.
var models = map[string]model{
	"A100": {name: "NVIDIA A100-SXM4-80GB", deviceID: 0x20b210de, pcieGen: 4, links: 12, linkVersion: 5, linkSpeed: 25000, slowdown: 90, memoryMax: 95, cc: 80},
	"H100": {name: "NVIDIA H100 80GB HBM3", deviceID: 0x233010de, pcieGen: 5, links: 18, linkVersion: 6, linkSpeed: 26562, fabric: true, margin: true, held: true, slowdown: 90, memoryMax: 95, cc: 90},
	"H200": {name: "NVIDIA H200", deviceID: 0x233510de, pcieGen: 5, links: 18, linkVersion: 6, linkSpeed: 26562, fabric: true, margin: true, held: true, slowdown: 90, memoryMax: 95, cc: 90},
	"B200": {name: "NVIDIA B200", deviceID: 0x290110de, pcieGen: 5, links: 18, linkVersion: 7, linkSpeed: 53125, fabric: true, margin: true, held: true, slowdown: 90, memoryMax: 95, cc: 100},
	"V100": {name: "Tesla V100-SXM2-32GB", deviceID: 0x1db510de, pcieGen: 3, gddr: true, links: 6, linkVersion: 3, linkSpeed: 25781, slowdown: 87, memoryMax: 85, cc: 70},
	"T4":   {name: "Tesla T4", deviceID: 0x1eb810de, pcieGen: 3, gddr: true, slowdown: 93},
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
