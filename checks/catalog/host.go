package catalog

import (
	"maps"
	"slices"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/cpu"
	"github.com/assay-gpu/assay/checks/fabric"
	"github.com/assay-gpu/assay/checks/kernel"
	"github.com/assay-gpu/assay/checks/memory"
	"github.com/assay-gpu/assay/checks/mounts"
	"github.com/assay-gpu/assay/checks/nvme"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/port"
	"github.com/assay-gpu/assay/checks/processes"
	"github.com/assay-gpu/assay/checks/strike"
	"github.com/assay-gpu/assay/checks/timesync"
)

// A HostState is all that one cycle read of the node itself, GPUs aside.
type HostState struct {
	Infiniband port.Reading      `json:"infiniband"`
	Ethernet   port.Reading      `json:"ethernet"`
	Mounts     mounts.Reading    `json:"mounts"`
	Memory     memory.Reading    `json:"memory"`
	CPU        cpu.Reading       `json:"cpu"`
	Processes  processes.Reading `json:"processes"`
	Kernel     kernel.Reading    `json:"kernel"`
	NVMe       nvme.Reading      `json:"nvme"`
	TimeSync   timesync.Reading  `json:"timesync"`

	FabricManager fabric.Manager `json:"fabric_manager"`
}

// Learned is what a node has shown of itself over its boots: what it should show again. It is one node's own, and begins
// anew when the node's serial changes.
type Learned struct {
	NodeSerial string                  `json:"node_serial,omitempty"`
	Ports      map[string]port.Learned `json:"ports,omitempty"`    // by class and subject
	Writable   map[string]bool         `json:"writable,omitempty"` // mount points of local file systems
	Memory     uint64                  `json:"memory,omitempty"`   // bytes
	CPUs       int                     `json:"cpus,omitempty"`
	Disks      []string                `json:"disks,omitempty"`
}

// Clone is a copy that shares nothing.
func (l Learned) Clone() Learned {
	l.Ports, l.Writable, l.Disks = maps.Clone(l.Ports), maps.Clone(l.Writable), slices.Clone(l.Disks)
	return l
}

// Track fills in what is remembered and learned of what a snapshot shows, and takes it into book and learned. at is the
// boot clock at which it was read. It does no I/O.
func Track(book *strike.Book, learned *Learned, at time.Duration, s Snapshot, p policy.Policy) Snapshot {
	if s.NodeSerial != "" && s.NodeSerial != learned.NodeSerial {
		if learned.NodeSerial != "" {
			*learned = Learned{} // another machine under the same name
		}
		learned.NodeSerial = s.NodeSerial
	}
	if learned.Ports == nil {
		learned.Ports = map[string]port.Learned{}
	}
	if learned.Writable == nil {
		learned.Writable = map[string]bool{}
	}
	h := &s.Host
	h.Infiniband = port.Track(book, learned.Ports, port.Infiniband, at, h.Infiniband, p.Infiniband)
	h.Ethernet = port.Track(book, learned.Ports, port.Ethernet, at, h.Ethernet, p.Ethernet)
	h.Mounts = mounts.Track(learned.Writable, h.Mounts)
	h.Memory = memory.Track(book, &learned.Memory, at, h.Memory, p.Memory)
	h.CPU = cpu.Track(&learned.CPUs, h.CPU)
	h.Processes = processes.Track(book, at, h.Processes)
	h.NVMe = nvme.Track(&learned.Disks, h.NVMe)
	h.TimeSync = timesync.Track(book, at, h.TimeSync)
	return s
}

// judgeHost judges the node itself, in run order.
func judgeHost(h HostState, add func(string, ...checks.Finding), p policy.Policy) {
	add(port.Infiniband, port.Judge(port.Infiniband, h.Infiniband, p.Infiniband)...)
	add(port.Ethernet, port.Judge(port.Ethernet, h.Ethernet, p.Ethernet)...)
	add(mounts.ID, mounts.Judge(h.Mounts, p.Mounts))
	add(memory.ID, memory.Judge(h.Memory, p.Memory))
	add(cpu.ID, cpu.Judge(h.CPU, p.CPU))
	add(processes.ID, processes.Judge(h.Processes, p.Processes))
	add(kernel.ID, kernel.Judge(h.Kernel, p.Kernel))
	add(nvme.ID, nvme.Judge(h.NVMe, p.NVMe))
	add(timesync.ID, timesync.Judge(h.TimeSync, p.TimeSync))
}
