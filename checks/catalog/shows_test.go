package catalog

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/driver"
	"github.com/assay-gpu/assay/checks/nvme"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/port"
)

func TestShows(t *testing.T) {
	host := func(s *Snapshot) {
		s.Host.CPU.Have, s.Host.CPU.Online = checks.Read, 224
		s.Host.Memory.Have, s.Host.Memory.Total = checks.Read, 2_113_526_484_992
		s.Host.NVMe = nvme.Reading{Have: checks.Read, Disks: []nvme.Disk{{Name: "nvme0"}, {Name: "nvme1"}}}
		s.Host.Infiniband = port.Reading{Have: checks.Read, Ports: []port.Port{{Name: "a", Up: true, Rate: 400}, {Name: "b"}, {Name: "c", Up: true, Rate: 400}}}
	}
	for _, tt := range []struct {
		name   string
		change func(*Snapshot)
		want   string
	}{
		{"GPUs alone", func(*Snapshot) {}, "map[inventory.count:8 nvlink.links:1 pcie.width:16]"},
		{"the node too", host, "map[cpu.count:224 infiniband.count:2 infiniband.rate:400 inventory.count:8 memory.bytes:2113123909632 nvlink.links:1 nvme.count:2 pcie.width:16]"},
		{"NVML does not start", func(s *Snapshot) { s.Init = driver.Init{Err: "x"} }, "map[]"},
		{"nothing was counted", func(s *Snapshot) { s.Count = -1 }, "map[nvlink.links:1 pcie.width:16]"},
		{"ports at two rates", func(s *Snapshot) {
			host(s)
			s.Host.Infiniband.Ports[0].Rate = 200
			s.Init.OK = false
			s.Host.CPU.Have, s.Host.Memory.Have, s.Host.NVMe.Have = 0, 0, 0
		}, "map[infiniband.count:2]"},
		{"a port that could not be read", func(s *Snapshot) {
			host(s)
			s.Host.Infiniband.Ports[1].Err = "x"
			s.Init.OK = false
			s.Host.CPU.Have, s.Host.Memory.Have, s.Host.NVMe.Have = 0, 0, 0
		}, "map[]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := healthy(8)
			s.Host = HostState{}
			tt.change(&s)
			if got := fmt.Sprint(s.Inventory().Shows); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	// What is shown can be filled in: each path is one of the policy's.
	s := healthy(8)
	host(&s)
	var nodes []policy.Shown
	for i := range 5 {
		nodes = append(nodes, policy.Shown{Node: fmt.Sprint(i), SKU: "x", Values: s.Inventory().Shows})
	}
	p := policy.Default().ForNode("n", policy.Hardware{SKU: "x", GPUs: 8}, policy.Learn(nodes, policy.Default().Baseline)[0].Set())
	if got := fmt.Sprint(p.Inventory.Count, p.CPU.Count, p.Memory.Bytes, p.NVMe.Count, p.Infiniband.Count, p.Infiniband.Rate); got != "8 224 2113123909632 2 2 400" {
		t.Errorf("filled in: %s", got)
	}
}

func TestRoughlyIsNeverMoreAndNearlyAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(0, 1<<50).Draw(t, "bytes")
		if r := uint64(roughly(n)); r > n || (n-r)*128 > n {
			t.Fatalf("%d of %d", r, n)
		}
	})
}
