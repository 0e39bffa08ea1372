package sysfs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/aer"
)

// PCITree reads which device is below which from the links in root/bus/pci/devices, each of which names all bridges from
// the host's on down: ../../../devices/pci0000:00/0000:00:02.0/0000:02:00.0. What cannot be read is left out; the tree is
// then smaller, and no error.
func PCITree(root string) aer.Tree {
	dir := filepath.Join(root, "bus/pci/devices")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return aer.Tree{}
	}
	t := aer.Tree{Parent: map[string]string{}}
	for _, e := range entries {
		device := checks.PCIAddress(e.Name())
		if device == "" {
			continue
		}
		if isGPU(filepath.Join(dir, e.Name())) {
			t.GPUs = append(t.GPUs, device)
		}
		to, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err != nil {
			continue
		}
		up := ""
		for part := range strings.SplitSeq(filepath.ToSlash(to), "/") {
			here := ""
			if strings.Count(part, ":") == 2 {
				here = checks.PCIAddress(part)
			}
			if here != "" && up != "" {
				t.Parent[here] = up
			}
			up = here
		}
	}
	slices.Sort(t.GPUs)
	return t
}

// isGPU reports whether a device is NVIDIA's and drives a display or computes in 3D: bridges, switches and audio are not.
func isGPU(dir string) bool {
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(b))
	}
	class := read("class")
	return read("vendor") == "0x10de" && (strings.HasPrefix(class, "0x0300") || strings.HasPrefix(class, "0x0302"))
}
