package sim

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// A Host is what is simulated of the node itself, GPUs aside.
type Host struct {
	Ports    map[string]Port   `json:"ports"`   // RDMA devices with one port each, by name: mlx5_0
	Nets     map[string]Port   `json:"nets"`    // Ethernet interfaces: eth0
	Mounts   map[string]Mount  `json:"mounts"`  // by mount point
	Disks    map[string]Disk   `json:"disks"`   // NVMe controllers: nvme0
	Modules  map[string]Module `json:"modules"` // memory modules: mc0/dimm0
	Memory   uint64            `json:"memory"`  // bytes
	CPUs     int               `json:"cpus"`
	Clock    string            `json:"clock"`
	Taint    uint64            `json:"taint"`
	Unsynced bool              `json:"unsynced"`
	Stuck    map[int]Stuck     `json:"stuck,omitempty"`    // processes in uninterruptible sleep, by pid
	Switches int               `json:"switches,omitempty"` // NVSwitches
	NoFM     bool              `json:"fabric_manager_stopped,omitempty"`
}

// A Port is one network port.
type Port struct {
	PCI      string            `yaml:"pci" json:"pci"`
	Down     bool              `yaml:"down" json:"down"`
	Disabled bool              `yaml:"disabled" json:"disabled"` // switched off
	Missing  bool              `yaml:"missing" json:"missing"`   // gone from sysfs
	Rate     int               `yaml:"rate" json:"rate"`         // Gb/s
	Counters map[string]uint64 `yaml:"counters" json:"counters"`
}

// A Mount is one file system.
type Mount struct {
	Device   string  `yaml:"device" json:"device"`
	Type     string  `yaml:"type" json:"type"`
	ReadOnly bool    `yaml:"read_only" json:"read_only"`
	Hang     bool    `yaml:"hang" json:"hang"` // statfs never comes back
	Missing  bool    `yaml:"missing" json:"missing"`
	Bytes    uint64  `yaml:"bytes" json:"bytes"`
	Used     float64 `yaml:"used" json:"used"` // share of bytes
}

// A Disk is one NVMe controller with one namespace.
type Disk struct {
	PCI         string `yaml:"pci" json:"pci"`
	State       string `yaml:"state" json:"state"`
	Missing     bool   `yaml:"missing" json:"missing"`
	ReadOnly    bool   `yaml:"read_only" json:"read_only"`
	Temperature int    `yaml:"temperature" json:"temperature"`         // °C
	Warning     int    `yaml:"warning" json:"warning,omitempty"`       // bits of its critical warning
	Lost        int    `yaml:"spare_lost" json:"spare_lost,omitempty"` // percent of its spare blocks that are gone
	Used        int    `yaml:"used" json:"used,omitempty"`             // percent of its life
	MediaErrors int    `yaml:"media_errors" json:"media_errors,omitempty"`
	NoHealth    bool   `yaml:"health_unreadable" json:"health_unreadable,omitempty"` // its health log says nothing that can be read
}

// A Module is one memory module's error counters, of this boot.
type Module struct {
	Corrected   uint64 `yaml:"corrected" json:"corrected"`
	Uncorrected uint64 `yaml:"uncorrected" json:"uncorrected"`
}

// A Stuck is a process in uninterruptible sleep.
type Stuck struct {
	Name   string `yaml:"name" json:"name"`
	Wait   string `yaml:"wait" json:"wait"`     // the kernel function it waits in
	GPU    bool   `yaml:"gpu" json:"gpu"`       // it has a GPU open
	Killed bool   `yaml:"killed" json:"killed"` // SIGKILL is pending
}

// A PortChange is what to change of a port; what is nil stays. Counters that are not named stay too.
type PortChange struct {
	Down     *bool             `yaml:"down" json:"down,omitempty"`
	Disabled *bool             `yaml:"disabled" json:"disabled,omitempty"`
	Missing  *bool             `yaml:"missing" json:"missing,omitempty"`
	Rate     *int              `yaml:"rate" json:"rate,omitempty"`
	Counters map[string]uint64 `yaml:"counters" json:"counters,omitempty"`
}

// A MountChange is what to change of a file system, or a new one.
type MountChange struct {
	Device   *string  `yaml:"device" json:"device,omitempty"`
	Type     *string  `yaml:"type" json:"type,omitempty"`
	ReadOnly *bool    `yaml:"read_only" json:"read_only,omitempty"`
	Hang     *bool    `yaml:"hang" json:"hang,omitempty"`
	Missing  *bool    `yaml:"missing" json:"missing,omitempty"`
	Bytes    *uint64  `yaml:"bytes" json:"bytes,omitempty"`
	Used     *float64 `yaml:"used" json:"used,omitempty"`
}

// A DiskChange is what to change of a disk.
type DiskChange struct {
	State       *string `yaml:"state" json:"state,omitempty"`
	Missing     *bool   `yaml:"missing" json:"missing,omitempty"`
	ReadOnly    *bool   `yaml:"read_only" json:"read_only,omitempty"`
	Temperature *int    `yaml:"temperature" json:"temperature,omitempty"`
	Warning     *int    `yaml:"warning" json:"warning,omitempty"`
	Lost        *int    `yaml:"spare_lost" json:"spare_lost,omitempty"`
	Used        *int    `yaml:"used" json:"used,omitempty"`
	MediaErrors *int    `yaml:"media_errors" json:"media_errors,omitempty"`
	NoHealth    *bool   `yaml:"health_unreadable" json:"health_unreadable,omitempty"`
}

// A HostChange is what to change of the node itself; what is nil or not named stays.
type HostChange struct {
	Ports    map[string]PortChange  `yaml:"ports" json:"ports,omitempty"`
	Nets     map[string]PortChange  `yaml:"nets" json:"nets,omitempty"`
	Mounts   map[string]MountChange `yaml:"mounts" json:"mounts,omitempty"`
	Disks    map[string]DiskChange  `yaml:"disks" json:"disks,omitempty"`
	Modules  map[string]Module      `yaml:"modules" json:"modules,omitempty"`
	Memory   *uint64                `yaml:"memory" json:"memory,omitempty"`
	CPUs     *int                   `yaml:"cpus" json:"cpus,omitempty"`
	Clock    *string                `yaml:"clock" json:"clock,omitempty"`
	Taint    *uint64                `yaml:"taint" json:"taint,omitempty"`
	Unsynced *bool                  `yaml:"unsynced" json:"unsynced,omitempty"`
	Switches *int                   `yaml:"switches" json:"switches,omitempty"`
	NoFM     *bool                  `yaml:"fabric_manager_stopped" json:"fabric_manager_stopped,omitempty"`
	Stuck    map[int]Stuck          `yaml:"stuck" json:"stuck,omitempty"` // all of them: an empty map frees every one
}

// fabric are the PCI buses of the network adapters beside the GPUs of an HGX board.
var fabric = [8]string{"18", "2a", "3a", "5d", "9a", "ab", "ba", "db"}

// newHost is a healthy host as HGX boards stand in: eight NDR ports, one cabled and one spare Ethernet port, 2 TB in eight
// modules, 192 processors, two disks, and home directories from a file server.
func newHost() Host {
	h := Host{
		Ports: map[string]Port{}, Nets: map[string]Port{}, Modules: map[string]Module{}, Memory: 2_048_000 << 20, CPUs: 192, Clock: "tsc",
		Taint: 1<<0 | 1<<12 | 1<<13, // P, O and E: what the NVIDIA driver sets
		Disks: map[string]Disk{"nvme0": {PCI: "0000:01:00.0", State: "live", Temperature: 38}, "nvme1": {PCI: "0000:02:00.0", State: "live", Temperature: 41}},
		Mounts: map[string]Mount{
			"/":        {Device: "/dev/nvme0n1p2", Type: "ext4", Bytes: 900e9, Used: 0.2},
			"/scratch": {Device: "/dev/nvme1n1", Type: "xfs", Bytes: 7600e9, Used: 0.3},
			"/home":    {Device: "filer:/home", Type: "nfs4", Bytes: 200e12, Used: 0.6},
		},
	}
	for i, bus := range fabric {
		h.Ports[fmt.Sprintf("mlx5_%d", i)] = Port{PCI: "0000:" + bus + ":00.0", Rate: 400, Counters: map[string]uint64{
			"link_downed": 0, "symbol_error": 0, "link_error_recovery": 0, "port_rcv_errors": 0, "local_link_integrity_errors": 0, "excessive_buffer_overrun_errors": 0,
		}}
	}
	h.Nets["eth0"] = Port{PCI: "0000:6f:00.0", Rate: 25, Counters: map[string]uint64{"carrier_changes": 2}}
	h.Nets["eth1"] = Port{PCI: "0000:6f:00.1", Down: true, Counters: map[string]uint64{"carrier_changes": 1}}
	for mc := range 2 {
		for dimm := range 4 {
			h.Modules[fmt.Sprintf("mc%d/dimm%d", mc, dimm)] = Module{}
		}
	}
	return h
}

// ChangeHost changes the node itself. A *ChangeError lists all that is wrong; then nothing is changed.
func ChangeHost(dir string, c HostChange) error {
	return change(dir, func(s *State) error { return s.Host.change(c) })
}

// change applies c, or nothing of it.
func (h *Host) change(c HostChange) error {
	var e ChangeError
	for kind, names := range map[string][2][]string{
		"ports": {keys(c.Ports), keys(h.Ports)}, "nets": {keys(c.Nets), keys(h.Nets)}, "disks": {keys(c.Disks), keys(h.Disks)}, "modules": {keys(c.Modules), keys(h.Modules)},
	} {
		for _, n := range names[0] {
			if !slices.Contains(names[1], n) {
				e.Faults = append(e.Faults, fmt.Sprintf("%s.%s: the node has %s", kind, n, strings.Join(names[1], ", ")))
			}
		}
	}
	for point, m := range c.Mounts {
		_, have := h.Mounts[point]
		if !path.IsAbs(point) || !have && (m.Device == nil || m.Type == nil) {
			e.Faults = append(e.Faults, fmt.Sprintf("mounts.%s: want a mount point that is there, or a new one with device and type", point))
		}
	}
	if len(e.Faults) > 0 {
		slices.Sort(e.Faults)
		return &e
	}
	changeEach(h.Ports, c.Ports, changePort)
	changeEach(h.Nets, c.Nets, changePort)
	changeEach(h.Mounts, c.Mounts, func(m *Mount, c MountChange) { merge(m, c) })
	changeEach(h.Disks, c.Disks, func(d *Disk, c DiskChange) { merge(d, c) })
	changeEach(h.Modules, c.Modules, func(m *Module, c Module) { *m = c })
	merge(h, struct {
		Memory   *uint64
		CPUs     *int
		Clock    *string
		Taint    *uint64
		Unsynced *bool
		Switches *int
		NoFM     *bool
	}{c.Memory, c.CPUs, c.Clock, c.Taint, c.Unsynced, c.Switches, c.NoFM})
	if c.Stuck != nil {
		h.Stuck = c.Stuck
	}
	return nil
}

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func changeEach[V, C any](all map[string]V, changes map[string]C, f func(*V, C)) {
	for name, c := range changes {
		v := all[name]
		f(&v, c)
		all[name] = v
	}
}

func changePort(p *Port, c PortChange) {
	counters := maps.Clone(p.Counters)
	maps.Copy(counters, c.Counters)
	c.Counters = nil
	merge(p, c)
	p.Counters = counters
}

// reboot heals what a boot heals: counters are zero, nothing is stuck, the kernel trusts itself again. Unless faults stay,
// links are up and file systems answer and can be written.
func (h *Host) reboot(keep bool) {
	h.Stuck, h.Taint, h.Unsynced, h.NoFM = nil, newHost().Taint, false, false
	for name := range h.Modules {
		h.Modules[name] = Module{}
	}
	for _, ports := range []map[string]Port{h.Ports, h.Nets} {
		for name, p := range ports {
			for c := range p.Counters {
				p.Counters[c] = 0
			}
			if !keep {
				was := newHost()
				p.Disabled, p.Missing, p.Down = false, false, was.Ports[name].Down || was.Nets[name].Down
			}
			ports[name] = p
		}
	}
	if keep {
		return
	}
	for point, m := range h.Mounts {
		m.Hang, m.ReadOnly = false, false
		h.Mounts[point] = m
	}
	for name, d := range h.Disks {
		d.State, d.Missing, d.ReadOnly = "live", false, false
		h.Disks[name] = d
	}
}
