package catalog

import (
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/clocks"
	"github.com/assay-gpu/assay/checks/driver"
	"github.com/assay-gpu/assay/checks/ecc"
	"github.com/assay-gpu/assay/checks/modes"
	"github.com/assay-gpu/assay/checks/nvlink"
	"github.com/assay-gpu/assay/checks/retired"
	"github.com/assay-gpu/assay/checks/rowremap"
	"github.com/assay-gpu/assay/checks/thermal"
)

// What nvidia-smi printed on real nodes, as the readings the driver gives for it, and what is to be made of it.
func TestWhatNvidiaSMIShowed(t *testing.T) {
	banks := func(max, high, partial, low, none int) rowremap.Banks {
		return rowremap.Banks{Max: max, High: high, Partial: partial, Low: low, None: none}
	}
	links := func(n, active int) nvlink.Reading {
		r := nvlink.Reading{Have: checks.Read}
		for i := range n {
			l := quietLink(nvlink.Inactive)
			l.SpeedMBps = 26562
			if i < active {
				l.State = nvlink.Active
			}
			r.Links = append(r.Links, l)
		}
		return r
	}
	name := func(s *Snapshot, product string) {
		for i := range s.GPUs {
			s.GPUs[i].Name = product
		}
	}
	for _, tt := range []struct {
		name   string
		gpus   int
		change func(*Snapshot)
		want   string
	}{
		{"an H100 without errors, three corrected ones in SRAM in its life, one with a remap pending, one that failed, a V100 whose page table is full, and one that is lost", 5, func(s *Snapshot) {
			g := s.GPUs
			g[0].ECC.SRAM = ecc.Location{Have: checks.Read, AggregateCorrected: 3}
			g[0].ECC.AggregateCorrected = 3
			g[0].RowRemap.HaveBanks, g[0].RowRemap.Banks = checks.Read, banks(2560, 0, 0, 0, 0)
			g[1].ECC.VolatileUncorrected, g[1].ECC.DRAM = 2, ecc.Location{Have: checks.Read, VolatileUncorrected: 2}
			g[1].RowRemap = rowremap.Reading{Have: checks.Read, Uncorrectable: 2, Pending: true, HaveBanks: checks.Read, Banks: banks(2559, 1, 0, 0, 0)}
			g[2].RowRemap = rowremap.Reading{Have: checks.Read, Correctable: 9, Uncorrectable: 12, Failed: true, HaveBanks: checks.Read, Banks: banks(2550, 6, 2, 1, 1)}
			g[3].Name = "Tesla V100-SXM2-32GB"
			g[3].Retired = retired.Reading{Have: checks.Read, Single: 41, Double: 22, Pending: true}
			g[3].RowRemap = rowremap.Reading{Have: checks.NotSupported, HaveBanks: checks.NotSupported} // N/A is not zero faults
			g[4] = GPUState{GPU: g[4].GPU, Call: driver.Call{Lost: true}}
		}, "driver gpu/GPU-4 fail reboot hard\nrecovery gpu/GPU-4 unknown none\nrowremap gpu/GPU-1 pass reset_gpu secondary\nrowremap gpu/GPU-2 fail rma hard\nrowremap gpu/GPU-3 not_applicable none\nrowremap gpu/GPU-4 unknown none\n" +
			"ecc gpu/GPU-1 fail reset_gpu\necc gpu/GPU-4 unknown none\nretired gpu/GPU-3 fail rma\n" + unread("gpu/GPU-4", "retired", "nvlink", "fabric", "pcie", "clocks", "thermal", "modes")},
		{"after a double-bit error: ECC reads Unknown Error and N/A, a remap is pending", 1, func(s *Snapshot) {
			s.GPUs[0].ECC = ecc.Reading{Err: "nvmlDeviceGetEccMode: unknown error"}
			s.GPUs[0].RowRemap = rowremap.Reading{Have: checks.Read, Uncorrectable: 1, Pending: true, HaveBanks: checks.Read, Banks: banks(2559, 1, 0, 0, 0)}
		}, "rowremap gpu/GPU-0 pass reset_gpu\necc gpu/GPU-0 unknown none"},
		{"GPU 1 asks for a reset while DCGM calls everything healthy", 8, func(s *Snapshot) { s.GPUs[1].Recovery.Action = 1 }, "recovery gpu/GPU-1 fail reset_gpu hard"},
		{"only the idle bit; 56 °C, 1 below the maximum operating temperature and 41 below slowdown", 1, func(s *Snapshot) {
			s.GPUs[0].Clocks.Reasons = clocks.Idle
			s.GPUs[0].Thermal = thermal.Reading{Core: thermal.At(56), Slowdown: thermal.At(97), Operating: thermal.At(57), Memory: thermal.Degrees{Have: checks.NotSupported}}
		}, ""},
		{"the driver's thermal event at 75 °C, far from any limit", 3, func(s *Snapshot) {
			s.GPUs[2].Clocks.Reasons = clocks.SWThermal
			s.GPUs[2].Thermal = thermal.Reading{Core: thermal.At(75), Slowdown: thermal.At(97), Operating: thermal.At(85), Memory: thermal.Degrees{Have: checks.NotSupported}}
		}, "clocks gpu/GPU-2 pass watch"},
		{"a driver too old for some clock event reasons, and a board without a serial: absent is not inactive", 1, func(s *Snapshot) {
			s.GPUs[0].Clocks, s.GPUs[0].Serial = clocks.Reading{Have: checks.NotSupported}, ""
		}, "clocks gpu/GPU-0 not_applicable none"},
		{"topology: GPU 2 has 16 of 18 links to every peer", 8, func(s *Snapshot) {
			name(s, "NVIDIA H100 80GB HBM3")
			for i := range s.GPUs {
				s.GPUs[i].NVLink = links(18, 18)
			}
			s.GPUs[2].NVLink = links(18, 16)
		}, "nvlink gpu/GPU-2 fail reboot"},
		{"12 of 18 links by design", 2, func(s *Snapshot) {
			name(s, "NVIDIA H100 NVL")
			s.GPUs[0].NVLink, s.GPUs[1].NVLink = links(18, 12), links(18, 12)
		}, ""},
		{"two of the twelve lost", 2, func(s *Snapshot) {
			name(s, "NVIDIA H100 NVL")
			s.GPUs[0].NVLink, s.GPUs[1].NVLink = links(18, 12), links(18, 12)
			s.GPUs[1].NVLink.Links[3].State, s.GPUs[1].NVLink.Links[7].State = nvlink.Inactive, nvlink.Inactive
		}, "nvlink gpu/GPU-1 fail reboot"},
		{"the fabric manager was stopped: all links inactive", 8, func(s *Snapshot) {
			name(s, "NVIDIA H100 80GB HBM3")
			for i := range s.GPUs {
				s.GPUs[i].NVLink = links(18, 0)
			}
		}, "nvlink gpu/GPU-0 fail fix_config\nnvlink gpu/GPU-1 fail fix_config\nnvlink gpu/GPU-2 fail fix_config\nnvlink gpu/GPU-3 fail fix_config\n" +
			"nvlink gpu/GPU-4 fail fix_config\nnvlink gpu/GPU-5 fail fix_config\nnvlink gpu/GPU-6 fail fix_config\nnvlink gpu/GPU-7 fail fix_config"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := healthy(tt.gpus)
			for i := range s.GPUs {
				s.GPUs[i].Modes = modes.Reading{HavePersistence: checks.Read, Persistence: true, HaveCompute: checks.Read, HaveMIG: checks.NotSupported}
			}
			tt.change(&s)
			if got := brief(Judge(s, nil, acting())); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}
