package nvml

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// gpuAddresses lists the PCI addresses of NVIDIA display and 3D controllers that sysfs shows, in the order in which the
// driver counts them. Bridges, switches and audio functions of the same vendor are left out by class.
func gpuAddresses(sysfs string) []string {
	dir := filepath.Join(sysfs, "bus/pci/devices")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if oneLine(filepath.Join(dir, e.Name(), "vendor")) != "0x10de" {
			continue
		}
		if class := oneLine(filepath.Join(dir, e.Name(), "class")); strings.HasPrefix(class, "0x0300") || strings.HasPrefix(class, "0x0302") {
			out = append(out, strings.ToLower(e.Name()))
		}
	}
	slices.Sort(out)
	return out
}

// hostSerial is the node's serial as its firmware gives it; empty when it cannot be read.
func hostSerial(sysfs string) string {
	return oneLine(filepath.Join(sysfs, "class/dmi/id/product_serial"))
}

func oneLine(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
