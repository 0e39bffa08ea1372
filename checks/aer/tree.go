package aer

import (
	"slices"
	"strings"
)

// A Tree is the node's PCI tree as far as it matters here. The zero value knows nothing.
type Tree struct {
	Parent map[string]string `json:"parent"` // of a device: the bridge or port right above it, both as 0000:00:02.0
	GPUs   []string          `json:"gpus"`   // the devices that are NVIDIA GPUs
}

// maxDepth bounds the way up: no PCI tree is deeper than its 256 buses, and a tree read wrong may have a circle.
const maxDepth = 256

// Above reports whether port is above device in the tree.
func (t Tree) Above(port, device string) bool {
	for range maxDepth {
		up, ok := t.Parent[device]
		if !ok {
			return false
		}
		if up == port {
			return true
		}
		device = up
	}
	return false
}

// Below gives the GPUs below a port.
func (t Tree) Below(port string) []string {
	var out []string
	for _, g := range t.GPUs {
		if t.Above(port, g) {
			out = append(out, g)
		}
	}
	slices.Sort(out)
	return out
}

// board is the first function of the board that a device is a function of.
func board(device string) string {
	if i := strings.LastIndexByte(device, '.'); i >= 0 {
		return device[:i] + ".0"
	}
	return device
}

// GPU gives the one GPU that an error is on the way to: the device itself, the source it names, or what is below the port.
// It is empty when there is none, or more than one.
func (t Tree) GPU(e Event) string {
	isGPU := func(d string) bool { return d != "" && slices.Contains(t.GPUs, board(d)) }
	switch {
	case e.Driver == "nvidia" || isGPU(e.Device):
		return board(e.Device)
	case isGPU(e.Source):
		return board(e.Source)
	}
	for _, port := range [...]string{e.Source, e.Device} {
		if below := t.Below(port); port != "" && len(below) == 1 {
			return below[0]
		}
	}
	return ""
}
