package catalog

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
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

// hostIDs are the checks of the node itself, in run order.
const hostIDs = "infiniband ethernet mounts memory cpu processes kernel nvme timesync"

// healthyHost is a host without a fault.
func healthyHost() HostState {
	return HostState{
		Infiniband:    port.Reading{Have: checks.Read, Ports: []port.Port{{Name: "mlx5_0/1", PCI: "0000:18:00.0", State: "ACTIVE LinkUp", Up: true, Rate: 400}}},
		Ethernet:      port.Reading{Have: checks.Read, Ports: []port.Port{{Name: "eth0", State: "up", Up: true, Rate: 25}}},
		Mounts:        mounts.Reading{Have: checks.Read, Mounts: []mounts.Mount{{Point: "/", Device: "/dev/sda", Type: "ext4", Size: 100, Available: 90}}},
		Memory:        memory.Reading{Have: checks.Read, Total: 2e12, EDAC: checks.NotSupported},
		CPU:           cpu.Reading{Have: checks.Read, Online: 192, Clock: "tsc"},
		Processes:     processes.Reading{Have: checks.Read},
		Kernel:        kernel.Reading{Have: checks.Read},
		FabricManager: fabric.Manager{Have: checks.Read, Switches: 4, Running: true},
		NVMe:          nvme.Reading{Have: checks.Read, Disks: []nvme.Disk{{Name: "nvme0", Model: "M", Serial: "1", State: "live"}}},
		TimeSync:      timesync.Reading{Have: checks.Read, Synced: true},
	}
}

// Every check of the host is judged by its own part of the policy, on its own part of the reading.
func TestEachHostCheckIsJudged(t *testing.T) {
	for _, tt := range []struct {
		id     string
		change func(*HostState, *policy.Policy)
		want   string
	}{
		{"infiniband", func(h *HostState, p *policy.Policy) { p.Infiniband.Rate = 800 }, "infiniband port/0000:18:00.0/portmlx5_0/1 fail drain"},
		{"ethernet", func(h *HostState, p *policy.Policy) { p.Ethernet.Count = 2 }, "ethernet node unknown watch"},
		{"mounts", func(h *HostState, p *policy.Policy) { p.Mounts.MaxUsed = 0.05 }, "mounts node fail fix_config"},
		{"memory", func(h *HostState, p *policy.Policy) { p.Memory.Bytes = 4e12 }, "memory node fail drain"},
		{"cpu", func(h *HostState, p *policy.Policy) { p.CPU.Count = 193 }, "cpu node fail drain"},
		{"processes", func(h *HostState, p *policy.Policy) {
			h.Processes.Sleeping = []processes.Process{{PID: 1, NVIDIA: true, For: time.Hour}}
		}, "processes node fail reboot"},
		{"kernel", func(h *HostState, p *policy.Policy) { h.Kernel.Taint = 1 << 4 }, "kernel node fail reboot"},
		{"nvme", func(h *HostState, p *policy.Policy) { p.NVMe.Count = 2 }, "nvme node fail drain"},
		{"timesync", func(h *HostState, p *policy.Policy) {
			h.TimeSync.Synced, h.TimeSync.UnsyncedFor, p.TimeSync.Require = false, time.Hour, true
		}, "timesync node fail fix_config"},
	} {
		t.Run(tt.id, func(t *testing.T) {
			s, p := healthy(1), acting()
			tt.change(&s.Host, &p)
			if got := brief(Judge(s, nil, p)); !strings.Contains(got, tt.want) {
				t.Errorf("got\n%s\nwant in it\n%s", got, tt.want)
			}
			p.Checks = map[string]policy.Check{tt.id: {Mode: policy.Off}}
			if got := brief(Judge(s, nil, p)); strings.Contains(got, tt.id) {
				t.Errorf("the check is off, and yet:\n%s", got)
			}
		})
	}
}

// What was learned is filled in from one snapshot to the next, survives being written down, and is another node's when the
// serial changes.
func TestTrackLearns(t *testing.T) {
	book, learned, p := strike.NewBook("boot"), &Learned{}, acting()
	s := healthy(1)
	s.NodeSerial = "S1"
	s = Track(book, learned, time.Second, s, p)
	if l := s.Host.Infiniband.Ports[0].Past.Learned; l == nil || l.Rate != 400 {
		t.Errorf("learned of the port: %+v", l)
	}
	b, err := json.Marshal(learned)
	if err != nil {
		t.Fatal(err)
	}
	var back Learned
	if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(back, *learned) {
		t.Errorf("%v: %+v, want %+v", err, back, *learned)
	}
	worse := healthy(1)
	worse.NodeSerial = "S1"
	worse.Host.Infiniband.Ports[0].Rate = 200
	worse.Host.Memory.Total = 1.9e12
	worse.Host.CPU.Online = 96
	worse.Host.Mounts.Mounts[0].ReadOnly = true
	worse.Host.NVMe = nvme.Reading{Have: checks.Read}
	want := "infiniband port/0000:18:00.0/portmlx5_0/1 fail drain\nmounts node fail drain\nmemory node fail drain\ncpu node fail drain\nnvme node fail drain"
	if got := brief(Judge(Track(book, &back, 2*time.Second, worse, p), nil, p)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	worse.NodeSerial = "S2"
	if got := brief(Judge(Track(book, &back, 3*time.Second, worse, p), nil, p)); got != "nvme node not_applicable none" {
		t.Errorf("another machine under the same name is held to what the first one had:\n%s", got)
	}
}

// Tracking changes nothing of what it was given but book and learned, and the clone of what was learned shares nothing.
func TestTrackLeavesTheReadingAlone(t *testing.T) {
	s := healthy(1)
	before, _ := json.Marshal(s)
	learned := &Learned{}
	Track(strike.NewBook("boot"), learned, time.Second, s, acting())
	if after, _ := json.Marshal(s); string(after) != string(before) {
		t.Errorf("got  %s\nwant %s", after, before)
	}
	c := learned.Clone()
	c.Writable["/new"], c.Ports["x"] = true, port.Learned{}
	if learned.Writable["/new"] || len(learned.Ports) != 2 {
		t.Error("the clone shares its maps")
	}
}
