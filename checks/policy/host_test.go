package policy

import (
	"strings"
	"testing"
	"time"
)

func TestHostSections(t *testing.T) {
	limit := func(change func(*Limit)) map[string]Limit {
		l := Limit{Max: 1, Within: Duration(time.Hour), Action: "drain"}
		change(&l)
		return map[string]Limit{"link_downed": l}
	}
	for _, tt := range []struct {
		name   string
		change func(*Policy)
		want   string // the fault; empty: none
	}{
		{"names to leave alone", func(p *Policy) { p.Infiniband.Ignore = "mlx5_4 mlx5_1? eno*" }, ""},
		{"a port that must be up", func(p *Policy) { p.Infiniband.Require = map[string]int{"mlx5_0/1": 200, "*": 0} }, ""},
		{"a port whose name is no pattern", func(p *Policy) { p.Infiniband.Require = map[string]int{"mlx5_[": 1} }, `infiniband.require: "mlx5_["`},
		{"two ports in one name", func(p *Policy) { p.Infiniband.Require = map[string]int{"mlx5_0 mlx5_1": 1} }, `infiniband.require: "mlx5_0 mlx5_1"`},
		{"a rate below nothing", func(p *Policy) { p.Ethernet.Require = map[string]int{"eno1": -1} }, `ethernet.require[eno1]`},
		{"a warning beyond eight bits", func(p *Policy) { p.NVMe.FailWarnings = 256 }, "nvme.fail_warnings"},
		{"more spare than there is", func(p *Policy) { p.NVMe.WatchSpare = 101 }, "nvme.watch_spare"},
		{"a life beyond what a disk can say", func(p *Policy) { p.NVMe.WatchUsed = 256 }, "nvme.watch_used"},
		{"a name that is no pattern", func(p *Policy) { p.Infiniband.Ignore = "mlx5_[" }, `infiniband.ignore: "mlx5_["`},
		{"more ports than nodes have", func(p *Policy) { p.Ethernet.Count = 1025 }, "ethernet.count: 1025"},
		{"no counters", func(p *Policy) { p.Infiniband.Counters = nil }, ""},
		{"a counter of one's own", func(p *Policy) { p.Infiniband.Counters = limit(func(*Limit) {}) }, ""},
		{"a counter that is a path", func(p *Policy) { p.Infiniband.Counters = map[string]Limit{"../state": {Within: 1e9, Action: "drain"}} }, "infiniband.counters.../state: want the name"},
		{"a counter that is a hidden file", func(p *Policy) { p.Infiniband.Counters = map[string]Limit{".x": {Within: 1e9, Action: "drain"}} }, "infiniband.counters..x: want the name"},
		{"a counter without a window", func(p *Policy) { p.Infiniband.Counters = limit(func(l *Limit) { l.Within = 0 }) }, "infiniband.counters.link_downed.within: 0s"},
		{"a counter without an action", func(p *Policy) { p.Infiniband.Counters = limit(func(l *Limit) { l.Action = "" }) }, `infiniband.counters.link_downed.action: ""`},
		{"an action that no port asks for", func(p *Policy) { p.Ethernet.Counters = limit(func(l *Limit) { l.Action = "rma" }) }, `ethernet.counters.link_downed.action: "rma": want one of [watch drain]`},
		{"fewer than no strikes", func(p *Policy) { p.Ethernet.Counters = limit(func(l *Limit) { l.Strikes = -1 }) }, "ethernet.counters.link_downed.strikes: -1"},
		{"a mount point", func(p *Policy) { p.Mounts.Expect = map[string]Mount{"/scratch": {}} }, ""},
		{"a mount point that is none", func(p *Policy) { p.Mounts.Expect = map[string]Mount{"scratch": {}} }, "mounts.expect.scratch: want a mount point"},
		{"all memory may be missing", func(p *Policy) { p.Memory.Tolerance = 1 }, "memory.tolerance: 1: want a share"},
		{"no memory may be missing", func(p *Policy) { p.Memory.Tolerance = 0 }, ""},
		{"strikes for modules", func(p *Policy) { p.Memory.Corrected.Strikes = 1 }, "memory.corrected.strikes: 1"},
		{"more processors than nodes have", func(p *Policy) { p.CPU.Count = 65537 }, "cpu.count: 65537"},
		{"a taint that does not exist", func(p *Policy) { p.Kernel.FailTaints = "MZ" }, `kernel.fail_taints: "MZ": want letters out of PFSR`},
		{"every taint", func(p *Policy) { p.Kernel.WatchTaints = "PFSRMBUDAWCIOELKXTNJ" }, ""},
		{"more disks than nodes have", func(p *Policy) { p.NVMe.Count = 257 }, "nvme.count: 257"},
		{"a margin beyond any limit", func(p *Policy) { p.NVMe.Margin = 101 }, "nvme.margin: 101"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := Default()
			tt.change(&p)
			fs := Validate(p)
			if tt.want == "" && len(fs) > 0 || tt.want != "" && (len(fs) != 1 || !strings.HasPrefix(fs[0].Path+": "+fs[0].Message, tt.want)) {
				t.Errorf("got %v, want %q", fs, tt.want)
			}
		})
	}
}
