// Package catalog lists every check in run order and applies them to what was read.
package catalog

import (
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/clocks"
	"github.com/assay-gpu/assay/checks/driver"
	"github.com/assay-gpu/assay/checks/ecc"
	"github.com/assay-gpu/assay/checks/fabric"
	"github.com/assay-gpu/assay/checks/leftover"
	"github.com/assay-gpu/assay/checks/modes"
	"github.com/assay-gpu/assay/checks/nvlink"
	"github.com/assay-gpu/assay/checks/pcie"
	"github.com/assay-gpu/assay/checks/recovery"
	"github.com/assay-gpu/assay/checks/retired"
	"github.com/assay-gpu/assay/checks/rowremap"
	"github.com/assay-gpu/assay/checks/thermal"
)

// A Snapshot is all that one cycle read. It is a value: judging it again gives the same findings.
type Snapshot struct {
	At         time.Time   `json:"at"`
	Node       string      `json:"node"`
	BootID     string      `json:"boot_id"`
	NodeSerial string      `json:"node_serial,omitempty"`
	Driver     string      `json:"driver,omitempty"`  // kernel driver version
	Library    string      `json:"library,omitempty"` // NVML's, as 12.550.54.15; empty: not told
	Init       driver.Init `json:"init"`
	Count      int         `json:"count"` // devices the driver counts, those it cannot open included; -1 when unread
	GPUs       []GPUState  `json:"gpus"`  // those that could be named, by index; a hung or blocked GPU keeps its last identity
	Host       HostState   `json:"host"`

	Texts map[string]string `json:"-"` // the files that the host's readings are from, by path, as evidence
}

// A GPUState is all that one cycle read from one GPU.
type GPUState struct {
	checks.GPU
	Call     driver.Call      `json:"call"`
	ECC      ecc.Reading      `json:"ecc"`
	RowRemap rowremap.Reading `json:"row_remap"`
	Recovery recovery.Reading `json:"recovery"`
	Retired  retired.Reading  `json:"retired"`
	NVLink   nvlink.Reading   `json:"nvlink"`
	PCIe     pcie.Reading     `json:"pcie"`
	Clocks   clocks.Reading   `json:"clocks"`
	Thermal  thermal.Reading  `json:"thermal"`
	Modes    modes.Reading    `json:"modes"`
	Fabric   fabric.Reading   `json:"fabric"`
	Leftover leftover.Reading `json:"processes"`
}

// Inventory is the hardware the snapshot shows.
func (s Snapshot) Inventory() checks.Inventory {
	inv := checks.Inventory{Node: s.Node, BootID: s.BootID, NodeSerial: s.NodeSerial, Driver: s.Driver, Shows: s.shows()}
	for _, g := range s.GPUs {
		inv.GPUs = append(inv.GPUs, g.GPU)
	}
	return inv
}
