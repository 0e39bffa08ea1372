// Package port judges a node's network ports, InfiniBand's and Ethernet's alike: each is up that should be, at full rate,
// steadily, and with few errors.
//
// Which ports should be up is what policy says, or else every port that has been up on this node before: a port that
// was never cabled is no fault (NVIDIA/NVSentinel 1379, 1462, 1488). A port that is down is a fault after some minutes, one
// that keeps coming back is one for good, until the next boot or until a person says otherwise (leptonai/gpud; its 984,
// NVSentinel 1236 and 1334). Counters count by their rise within a window, never by what they hold.
// All is read from sysfs; ibstat is not needed.
package port

import (
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/strike"
)

// The checks' catalog ids: one for each class of ports in sysfs.
const (
	Infiniband = "infiniband" // /sys/class/infiniband: RDMA ports, whatever their link layer
	Ethernet   = "ethernet"   // /sys/class/net: physical Ethernet interfaces
)

// A Reading is all ports of one class.
type Reading struct {
	Have     checks.Availability `json:"have"` // NotSupported: the kernel shows no such class
	Err      string              `json:"err,omitempty"`
	HungFor  time.Duration       `json:"hung_for,omitempty"`  // for how long the class's files have not come back; 0: they did
	Ports    []Port              `json:"ports,omitempty"`     // by name
	ShortFor time.Duration       `json:"short_for,omitempty"` // for how long fewer ports have been up than policy wants; Track fills it
	LackFor  time.Duration       `json:"lack_for,omitempty"`  // for how long none has been up of those of which policy requires one; Track fills it
}

// A Port is one port's state.
type Port struct {
	Name     string            `json:"name"`          // mlx5_0/1, or enp75s0np0
	PCI      string            `json:"pci,omitempty"` // domain:bus:device.function of its device
	Err      string            `json:"err,omitempty"` // why it could not be read
	Missing  bool              `json:"missing,omitempty"`
	State    string            `json:"state,omitempty"` // in the kernel's words, as "ACTIVE LinkUp" or "down"
	Up       bool              `json:"up"`
	Disabled bool              `json:"disabled,omitempty"` // switched off by a person or a driver
	Rate     int               `json:"rate,omitempty"`     // Gb/s; 0 when the kernel does not say
	Width    string            `json:"width,omitempty"`    // lanes and speed, as "4X NDR"; Ethernet has none
	Counters map[string]uint64 `json:"counters,omitempty"` // those of policy that the device has
	Unread   []string          `json:"unread,omitempty"`   // those that the device has and that could not be read, with why
	Past     Past              `json:"past"`
}

// A Past is what is remembered of a port. Track fills it.
type Past struct {
	Learned  *Learned         `json:"learned,omitempty"`  // nil: it has never been up on this node
	DownFor  time.Duration    `json:"down_for,omitempty"` // for how long every reading has shown it down
	Downed   bool             `json:"downed,omitempty"`   // its counter of losses rose while it was down: it came and went unseen
	Flaps    int              `json:"flaps,omitempty"`    // within policy's window
	HeldBy   int              `json:"held_by,omitempty"`  // not 0: it flapped this often, and stays at fault
	Counters map[string]Count `json:"counters,omitempty"` // by name
}

// A Count is how far a counter rose within its window.
type Count struct {
	strike.Delta
	Held bool `json:"held,omitempty"` // it rose too far, and stays at fault
}

// Learned is what a port has shown while it was up.
type Learned struct {
	PCI  string `json:"pci,omitempty"`
	Rate int    `json:"rate,omitempty"` // Gb/s, the greatest
}

// Subject names the port in a finding.
func (p Port) Subject() checks.Subject {
	return checks.Subject{Kind: checks.KindPort, PCI: p.PCI, Port: p.Name}
}
