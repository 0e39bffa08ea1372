package nvml

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/agent/sim"
	"github.com/assay-gpu/assay/agent/sim/nvmllib"
	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/clocks"
	"github.com/assay-gpu/assay/checks/counter"
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

// healthyH100 is what the probe reads of a simulated H100 at rest. The far ends of its first links are known: as many as a
// child has had time to ask for.
func healthyH100(gpu checks.GPU, farEnds int) catalog.GPUState {
	none := nvlink.BER{Have: checks.NotSupported} // before NVLink 5
	s := catalog.GPUState{
		GPU:      gpu,
		ECC:      ecc.Reading{Have: checks.Read, Enabled: true, HaveSRAM: checks.Read, DRAM: ecc.Location{Have: checks.Read}, SRAM: ecc.Location{Have: checks.Read}},
		RowRemap: rowremap.Reading{Have: checks.Read, HaveBanks: checks.Read, Banks: rowremap.Banks{Max: 2560}}, Recovery: recovery.Reading{Have: checks.Read},
		Retired: retired.Reading{Have: checks.NotSupported}, NVLink: nvlink.Reading{Have: checks.Read}, PCIe: pcie.Reading{Busy: checks.Read, Replays: counter.Of(0)},
		Clocks: clocks.Reading{Have: checks.Read, Reasons: clocks.Idle, Held: map[clocks.Name]counter.Reading{
			clocks.NameSWThermal: counter.Of(0), clocks.NameHWThermal: counter.Of(0), clocks.NamePowerBrake: counter.Of(0),
		}},
		Thermal: thermal.Reading{
			Core: thermal.At(34), Memory: thermal.At(42), Margin: thermal.At(54), SlowdownMargin: thermal.At(-2), OperatingMargin: thermal.At(0),
			Slowdown: thermal.At(90), Operating: thermal.At(88), MemoryMax: thermal.At(95),
		},
		Modes:  modes.Reading{HavePersistence: checks.Read, Persistence: true, HaveCompute: checks.Read, HaveMIG: checks.Read},
		Fabric: fabric.Reading{Have: checks.Read, State: fabric.Completed}, Leftover: leftover.Reading{Have: checks.Read},
	}
	for i := range 18 {
		far := (gpu.Index*18 + i) % 64
		l := nvlink.Link{
			Have: checks.Read, State: nvlink.Active, Version: 6, SpeedMBps: 26562, RemoteLink: &far,
			Replay: counter.Of(0), Recovery: counter.Of(0), CRC: counter.Of(0), Effective: none, Symbol: none,
		}
		if i < farEnds {
			l.Remote = fmt.Sprintf("0000:%02x:00.0", 5+i%4)
		}
		s.NVLink.Links = append(s.NVLink.Links, l)
	}
	return s
}

// sameState compares two readings of a GPU. The far ends of links are learnt a few at a time, so that a later reading may know
// more of them.
func sameState(a, b catalog.GPUState) bool {
	for _, s := range []*catalog.GPUState{&a, &b} {
		s.NVLink.Links = slices.Clone(s.NVLink.Links)
		for i := range s.NVLink.Links {
			s.NVLink.Links[i].Remote = ""
		}
	}
	return reflect.DeepEqual(a, b)
}

// withoutFields is what a GPU shows at first whose driver knows no field: to ask for each of its links takes more calls than are left.
func withoutFields(s *catalog.GPUState) {
	no := thermal.Degrees{Have: checks.NotSupported}
	s.Recovery.Have, s.NVLink, s.Retired.Have = checks.NotSupported, nvlink.Reading{Err: "more links than a cycle has calls for; they are read in the next"}, checks.NotSupported
	s.ECC.DRAM = ecc.Location{Have: checks.NotSupported}
	s.PCIe.Replays = counter.Reading{Have: checks.NotSupported}
	s.Clocks.Held = nil
	s.Thermal.Memory, s.Thermal.SlowdownMargin, s.Thermal.OperatingMargin = no, no, no
}

func TestSnapshotOfAHealthyNode(t *testing.T) {
	n := newNode(t, "model: H100\ncount: 8\ndriver: 550.54.15\n")
	snap := n.snapshot(20 * time.Second)
	st := n.state()
	if snap.Node != "gpu001" || snap.BootID != st.BootID || snap.NodeSerial != st.NodeSerial || snap.Driver != "550.54.15" ||
		snap.Count != 8 || snap.Init != (driver.Init{OK: true}) || len(snap.GPUs) != 8 {
		t.Fatalf("got %+v", snap)
	}
	for i, g := range snap.GPUs {
		want := healthyH100(checks.GPU{Node: "gpu001", UUID: st.GPUs[i].UUID, Index: i, PCI: st.GPUs[i].PCI, Name: "NVIDIA H100 80GB HBM3", Serial: st.GPUs[i].Serial}, 6)
		if !reflect.DeepEqual(g, want) {
			t.Errorf("GPU %d:\ngot  %+v\nwant %+v", i, g, want)
		}
	}
}

// Each value of the device reaches the reading it belongs to, in the same child.
func TestSnapshotReadsEachValue(t *testing.T) {
	n := newNode(t, "count: 2")
	for range 3 { // until the far ends of all links are known
		n.snapshot(20 * time.Second)
	}
	for _, tt := range []struct {
		key, value string
		want       func(*catalog.GPUState)
	}{
		{"ecc_pending", "false", func(s *catalog.GPUState) { s.ECC.Pending = true }},
		{"volatile_corrected", "3", func(s *catalog.GPUState) { s.ECC.VolatileCorrected, s.ECC.DRAM.VolatileCorrected = 3, 3 }},
		{"volatile_uncorrected", "4", func(s *catalog.GPUState) { s.ECC.VolatileUncorrected, s.ECC.DRAM.VolatileUncorrected = 4, 4 }},
		{"aggregate_corrected", "18446744073709551615", func(s *catalog.GPUState) { s.ECC.AggregateCorrected, s.ECC.DRAM.AggregateCorrected = 1<<64-1, 1<<64-1 }},
		{"aggregate_uncorrected", "6", func(s *catalog.GPUState) { s.ECC.AggregateUncorrected, s.ECC.DRAM.AggregateUncorrected = 6, 6 }},
		{"sram_threshold", "true", func(s *catalog.GPUState) { s.ECC.SRAMThresholdExceeded = true }},
		{"remap_correctable", "7", func(s *catalog.GPUState) { s.RowRemap.Correctable = 7 }},
		{"remap_uncorrectable", "8", func(s *catalog.GPUState) { s.RowRemap.Uncorrectable = 8 }},
		{"remap_pending", "true", func(s *catalog.GPUState) { s.RowRemap.Pending = true }},
		{"remap_failed", "true", func(s *catalog.GPUState) { s.RowRemap.Failed = true }},
		{"recovery_action", "4", func(s *catalog.GPUState) { s.Recovery.Action = 4 }},
		{"recovery_action", "77", func(s *catalog.GPUState) { s.Recovery.Action = 77 }},
		{"banks_none", "2", func(s *catalog.GPUState) { s.RowRemap.Banks = rowremap.Banks{Max: 2558, None: 2} }},
		{"nvlink.3.state", "down", func(s *catalog.GPUState) {
			l := &s.NVLink.Links[3]
			l.State, l.SpeedMBps, l.RemoteLink = nvlink.Inactive, 0, nil
		}},
		{"nvlink.4.state", "sleep", func(s *catalog.GPUState) { s.NVLink.Links[4].State = nvlink.Sleep }},
		{"nvlink.17.state", "no_traffic", func(s *catalog.GPUState) { s.NVLink.Links[17].State = nvlink.TrafficDisabled }},
		{"nvlink.0.replay", "5", func(s *catalog.GPUState) { s.NVLink.Links[0].Replay.Now = 5 }},
		{"nvlink.1.recovery", "6", func(s *catalog.GPUState) { s.NVLink.Links[1].Recovery.Now = 6 }},
		{"nvlink.2.crc", "4294967295", func(s *catalog.GPUState) { s.NVLink.Links[2].CRC.Now = 1<<32 - 1 }},
		{"nvlink.5.speed_mbps", "13281", func(s *catalog.GPUState) { s.NVLink.Links[5].SpeedMBps = 13281 }},
		{"pcie_replays", "7", func(s *catalog.GPUState) { s.PCIe.Replays.Now = 7 }},
		{"utilization", "93", func(s *catalog.GPUState) { s.PCIe.Percent = 93 }},
		{"temperature", "91", func(s *catalog.GPUState) { s.Thermal.Core.C, s.Thermal.Margin.C = 91, -3 }},
		{"memory_temperature", "96", func(s *catalog.GPUState) { s.Thermal.Memory.C = 96 }},
		{"throttle", "sw_power_cap,idle", func(s *catalog.GPUState) { s.Clocks.Reasons = clocks.SWPowerCap | clocks.Idle }},
		{"processes", "4711,12", func(s *catalog.GPUState) {
			s.Leftover.Processes = []leftover.Process{{PID: 4711, Bytes: 512 << 20}, {PID: 12, Bytes: 512 << 20}}
		}},
		{"persistence", "false", func(s *catalog.GPUState) { s.Modes.Persistence = false }},
		{"compute_mode", "exclusive_process", func(s *catalog.GPUState) { s.Modes.Compute = modes.ExclusiveProcess }},
		{"mig", "true", func(s *catalog.GPUState) { s.Modes.MIG = true }},
		{"mig_pending", "true", func(s *catalog.GPUState) { s.Modes.MIGPending = true }},
		{"fabric_status", "3", func(s *catalog.GPUState) { s.Fabric.Status = 3 }},
		{"fabric_health", "5", func(s *catalog.GPUState) { s.Fabric.Health = 5 }},
		{"fabric", "in_progress", func(s *catalog.GPUState) { s.Fabric.State = fabric.InProgress }},
	} {
		before := n.snapshot(20 * time.Second)
		n.set(1, tt.key, tt.value)
		after := n.snapshot(20 * time.Second)
		want := before.GPUs[1]
		want.NVLink.Links = slices.Clone(want.NVLink.Links)
		tt.want(&want)
		if !reflect.DeepEqual(after.GPUs[1], want) {
			t.Errorf("%s=%s:\ngot  %+v\nwant %+v", tt.key, tt.value, after.GPUs[1], want)
		}
		if !reflect.DeepEqual(after.GPUs[0], before.GPUs[0]) {
			t.Errorf("%s=%s changed the other GPU: %+v", tt.key, tt.value, after.GPUs[0])
		}
	}
	if r := n.Stats().Restarts; len(r) != 0 {
		t.Errorf("children were lost: %v", r)
	}
}

// Not supported, not known to an old driver, and an error are three things.
func TestSnapshotTellsNotSupportedFromUnread(t *testing.T) {
	for _, tt := range []struct {
		name, scenario string
		want           func(*catalog.GPUState)
	}{
		{"no remapper, as on GDDR", "model: T4", func(s *catalog.GPUState) {
			s.RowRemap = rowremap.Reading{Have: checks.NotSupported, HaveBanks: checks.NotSupported}
			s.Name = "Tesla T4"
			s.Retired = retired.Reading{Have: checks.Read}
			s.NVLink = nvlink.Reading{Have: checks.NotSupported}
			s.Fabric = fabric.Reading{Have: checks.NotSupported}
			s.Modes.HaveMIG = checks.NotSupported
			s.Clocks.Held = map[clocks.Name]counter.Reading{clocks.NameSWThermal: counter.Of(0)}
			no := thermal.Degrees{Have: checks.NotSupported}
			s.Thermal = thermal.Reading{Core: thermal.At(34), Memory: no, Margin: no, SlowdownMargin: no, OperatingMargin: no, Slowdown: thermal.At(93), Operating: thermal.At(91), MemoryMax: no}
		}},
		{"no ECC", "gpus: {0: {not_supported: [nvmlDeviceGetEccMode]}}", func(s *catalog.GPUState) {
			s.ECC = ecc.Reading{Have: checks.NotSupported, HaveSRAM: checks.NotSupported, DRAM: ecc.Location{Have: checks.Read}}
		}},
		{"ECC off: nothing is counted", "gpus: {0: {ecc_enabled: false, ecc_pending: false}}", func(s *catalog.GPUState) {
			s.ECC = ecc.Reading{Have: checks.Read, HaveSRAM: checks.NotSupported, DRAM: ecc.Location{Have: checks.NotSupported}}
		}},
		{"ECC on but counters N/A: not zero", "gpus: {0: {not_supported: [nvmlDeviceGetTotalEccErrors]}}", func(s *catalog.GPUState) {
			s.ECC = ecc.Reading{Enabled: true, Err: "nvmlDeviceGetTotalEccErrors: not supported", DRAM: ecc.Location{Have: checks.Read}}
		}},
		{"no fields at all", "gpus: {0: {not_supported: [nvmlDeviceGetFieldValues]}}", withoutFields},
		{"no clock event reasons", "gpus: {0: {not_supported: [nvmlDeviceGetCurrentClocksEventReasons]}}", func(s *catalog.GPUState) { s.Clocks.Have, s.Clocks.Reasons = checks.NotSupported, 0 }},
		{"reasons by their name before R535", "symbols_missing: [nvmlDeviceGetCurrentClocksEventReasons]", func(*catalog.GPUState) {}},
		{"no margin", "symbols_missing: [nvmlDeviceGetMarginTemperature]", func(s *catalog.GPUState) { s.Thermal.Margin = thermal.Degrees{Have: checks.NotSupported} }},
		{"no temperature, as on a virtual GPU", "gpus: {0: {not_supported: [nvmlDeviceGetTemperature]}}", func(s *catalog.GPUState) { s.Thermal.Core = thermal.Degrees{Have: checks.NotSupported} }},
		{"how busy it is is not told in MIG mode", "gpus: {0: {not_supported: [nvmlDeviceGetUtilizationRates]}}", func(s *catalog.GPUState) { s.PCIe.Busy = checks.NotSupported }},
		{"processes are not told", "gpus: {0: {not_supported: [nvmlDeviceGetComputeRunningProcesses_v3]}}", func(s *catalog.GPUState) { s.Leftover.Have = checks.NotSupported }},
		{"no fabric", "gpus: {0: {fabric: none}}", func(s *catalog.GPUState) { s.Fabric = fabric.Reading{Have: checks.NotSupported} }},
		{"far ends are not told", "gpus: {0: {not_supported: [nvmlDeviceGetNvLinkRemotePciInfo_v2]}}", func(s *catalog.GPUState) {
			for i := range s.NVLink.Links {
				s.NVLink.Links[i].Remote = ""
			}
		}},
		{"no serial", "gpus: {0: {not_supported: [nvmlDeviceGetSerial]}}", func(s *catalog.GPUState) { s.Serial = "" }},
		{"an old driver", "symbols_missing: [nvmlDeviceGetRemappedRows, nvmlDeviceGetSramEccErrorStatus, nvmlDeviceGetFieldValues]", func(s *catalog.GPUState) {
			s.RowRemap = rowremap.Reading{Have: checks.NotSupported, HaveBanks: checks.Read, Banks: rowremap.Banks{Max: 2560}}
			withoutFields(s)
			s.ECC.HaveSRAM, s.ECC.SRAM = checks.NotSupported, ecc.Location{Have: checks.NotSupported}
		}},
		{"an older driver", "symbols_missing: [nvmlDeviceGetTotalEccErrors, nvmlDeviceGetName, nvmlDeviceGetSerial]", func(s *catalog.GPUState) {
			s.ECC = ecc.Reading{Have: checks.NotSupported, Enabled: true, DRAM: ecc.Location{Have: checks.Read}}
			s.Name, s.Serial = "", ""
		}},
		{"a library that does not know its errors", "symbols_missing: [nvmlErrorString, nvmlShutdown]", func(s *catalog.GPUState) {}},
		{"no UUID: the GPU is not read", "symbols_missing: [nvmlDeviceGetUUID]", func(s *catalog.GPUState) {
			*s = catalog.GPUState{GPU: checks.GPU{Node: s.Node, PCI: s.PCI}, Call: driver.Call{Err: "nvmlDeviceGetUUID: function not found in this driver's library"}}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, "count: 1\n"+tt.scenario)
			g := n.state().GPUs[0]
			want := healthyH100(checks.GPU{Node: "gpu001", UUID: g.UUID, PCI: g.PCI, Name: "NVIDIA H100 80GB HBM3", Serial: g.Serial}, 6)
			tt.want(&want)
			snap := n.snapshot(20 * time.Second)
			if !snap.Init.OK || len(snap.GPUs) != 1 || !reflect.DeepEqual(snap.GPUs[0], want) {
				t.Errorf("\ngot  %+v\nwant %+v", snap, want)
			}
			if r := n.Stats().Restarts; len(r) != 0 {
				t.Errorf("children were lost: %v", r)
			}
		})
	}
}

func TestNVMLThatDoesNotStart(t *testing.T) {
	for _, tt := range []struct{ name, scenario, want string }{
		{"library missing", "init: library_not_found", "library not found"},
		{"driver not loaded", "init: error", "nvmlInit: driver not loaded"},
		{"driver newer than library", "init: version_mismatch", "versions differ"},
		{"a library without nvmlInit ends the child", "symbols_missing: [nvmlInit_v2]", "nvmlInit"},
		{"no count", "symbols_missing: [nvmlDeviceGetCount_v2]", "nvmlDeviceGetCount: function not found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			known := checks.GPU{UUID: "GPU-known", Index: 0, PCI: "0000:1b:00.0", Name: "a name"}
			n := newNode(t, "count: 1\n"+tt.scenario, func(c *Config) { c.Known = []checks.GPU{known} })
			snap := n.snapshot(20 * time.Second)
			if snap.Init.OK || snap.Init.HungCount != 0 || !strings.Contains(snap.Init.Err, tt.want) {
				t.Errorf("got %+v, want %q", snap.Init, tt.want)
			}
			known.Node = "gpu001"
			if snap.Count != -1 || len(snap.GPUs) != 1 || snap.GPUs[0].GPU != known || snap.GPUs[0].Call.Err == "" || snap.GPUs[0].ECC.Have != checks.Unread {
				t.Errorf("got %+v, want the known GPU unread", snap)
			}
			if strings.HasPrefix(tt.scenario, "init") { // and when it starts again, it is read again
				n.set(-1, "init", "")
				if snap := n.snapshot(20 * time.Second); !snap.Init.OK || snap.Count != 1 || snap.GPUs[0].ECC.Have != checks.Read {
					t.Errorf("after it was mended: %+v", snap)
				}
			}
		})
	}
}

func TestLostAndMissingGPUs(t *testing.T) {
	n := newNode(t, "count: 4")
	before := n.snapshot(20 * time.Second)
	t.Run("lost in a resident child", func(t *testing.T) {
		if err := sim.FallOffBus(n.dir, 2); err != nil {
			t.Fatal(err)
		}
		snap := n.snapshot(20 * time.Second)
		if snap.Count != 4 || len(snap.GPUs) != 4 {
			t.Fatalf("got %+v", snap)
		}
		want := catalog.GPUState{GPU: before.GPUs[2].GPU, Call: driver.Call{Lost: true}}
		if !sameState(snap.GPUs[2], want) {
			t.Errorf("got  %+v\nwant %+v", snap.GPUs[2], want)
		}
		if !sameState(snap.GPUs[3], before.GPUs[3]) {
			t.Errorf("the GPU after it: %+v", snap.GPUs[3])
		}
	})
	t.Run("lost before the agent started, named from the cached inventory", func(t *testing.T) {
		s := n.supervisor(func(c *Config) { c.Known = before.Inventory().GPUs })
		snap := snapshot(t, s, 20*time.Second)
		if len(snap.GPUs) != 4 || snap.GPUs[2].GPU != before.GPUs[2].GPU || !snap.GPUs[2].Call.Lost {
			t.Errorf("got %+v", snap.GPUs)
		}
	})
	t.Run("lost before any agent saw it, named by its address", func(t *testing.T) {
		snap := snapshot(t, n.supervisor(), 20*time.Second)
		want := checks.GPU{Node: "gpu001", Index: 2, PCI: before.GPUs[2].PCI}
		if len(snap.GPUs) != 4 || snap.GPUs[2].GPU != want || !snap.GPUs[2].Call.Lost {
			t.Errorf("got %+v", snap.GPUs)
		}
	})
	t.Run("gone from the count: the others are read under their new indices", func(t *testing.T) {
		n.set(2, "lost", "false")
		n.set(1, "missing", "true")
		snap := n.snapshot(20 * time.Second)
		if snap.Count != 3 || len(snap.GPUs) != 3 {
			t.Fatalf("got %+v", snap)
		}
		for i, was := range []int{0, 2, 3} {
			want := before.GPUs[was]
			want.Index = i
			if !sameState(snap.GPUs[i], want) {
				t.Errorf("GPU %d:\ngot  %+v\nwant %+v", i, snap.GPUs[i], want)
			}
		}
	})
	t.Run("back again, with another board in its place", func(t *testing.T) {
		n.set(1, "missing", "false")
		n.set(1, "uuid", "GPU-11111111-2222-4333-8444-555555555555")
		n.set(3, "uuid", "GPU-99999999-2222-4333-8444-555555555555") // under the child's open handle
		snap := n.snapshot(20 * time.Second)
		if len(snap.GPUs) != 4 || snap.GPUs[1].UUID != "GPU-11111111-2222-4333-8444-555555555555" || snap.GPUs[3].UUID != "GPU-99999999-2222-4333-8444-555555555555" {
			t.Errorf("got %+v", snap.GPUs)
		}
	})
}

// A cycle may make 40 NVML calls per GPU. It makes 20; in a child's first also those that tell who the GPU is and what its
// thresholds are; and in the first three those for the far ends of its links. None is one that changes anything, or that the
// driver writes to the kernel log about: reading registers directly, or clearing what was counted.
func TestCallsPerCycle(t *testing.T) {
	n := newNode(t, "count: 8")
	allowed := map[string]int{ // in one cycle
		"nvmlDeviceGetHandleByIndex_v2": 1, "nvmlDeviceGetUUID": 1, "nvmlDeviceGetPciInfo_v3": 1, "nvmlDeviceGetName": 1, "nvmlDeviceGetSerial": 1,
		"nvmlDeviceGetEccMode": 1, "nvmlDeviceGetTotalEccErrors": 4, "nvmlDeviceGetSramEccErrorStatus": 1, "nvmlDeviceGetRemappedRows": 1, "nvmlDeviceGetRowRemapperHistogram": 1,
		"nvmlDeviceGetFieldValues": 2, "nvmlDeviceGetNvLinkRemotePciInfo_v2": 6, "nvmlDeviceGetCurrentClocksEventReasons": 1, "nvmlDeviceGetTemperature": 1,
		"nvmlDeviceGetMarginTemperature": 1, "nvmlDeviceGetTemperatureThreshold": 3, "nvmlDeviceGetUtilizationRates": 1, "nvmlDeviceGetPersistenceMode": 1,
		"nvmlDeviceGetComputeMode": 1, "nvmlDeviceGetMigMode": 1, "nvmlDeviceGetGpuFabricInfoV": 1, "nvmlDeviceGetComputeRunningProcesses_v3": 1,
	}
	for cycle, most := range []int{33, 26, 26, 20, 20} {
		if err := sim.ResetCalls(n.dir); err != nil {
			t.Fatal(err)
		}
		n.snapshot(20 * time.Second)
		for gpu := range 8 {
			total := 0
			for name, c := range sim.CallsOn(n.dir, gpu) {
				total += c
				if c > allowed[name] {
					t.Errorf("cycle %d, GPU %d: %d calls of %s, want at most %d", cycle, gpu, c, name, allowed[name])
				}
			}
			for _, f := range AllNoisy {
				if c := sim.Calls(n.dir)[f.Function]; c > 0 {
					t.Errorf("cycle %d: %d calls of %s, which %s", cycle, c, f.Function, f.Why)
				}
			}
			if total != most {
				t.Errorf("cycle %d, GPU %d: %d calls, want %d: %v", cycle, gpu, total, most, sim.CallsOn(n.dir, gpu))
			}
		}
	}
	if got := n.Stats().Calls; got == 0 {
		t.Error("no calls counted")
	}
}

// The simulated library has each function that makes the driver log, so that a call of one would be counted.
func TestNoisyFunctionsAreCounted(t *testing.T) {
	for _, f := range AllNoisy {
		if !slices.Contains(nvmllib.Functions, f.Function) || f.Why == "" {
			t.Errorf("%s: not counted by the simulated library, or nobody says why it is not called", f.Function)
		}
	}
}

func TestQuiesceLetsGoOfTheDevices(t *testing.T) {
	n := newNode(t, "count: 2")
	n.snapshot(20 * time.Second)
	pid := n.main.cmd.Process.Pid
	ctx := t.Context()
	if err := n.Quiesce(ctx); err != nil {
		t.Fatal(err)
	}
	if running(pid) {
		t.Error("the child is still there")
	}
	if snap := n.snapshot(20 * time.Second); len(snap.GPUs) != 2 || snap.GPUs[0].ECC.Have != checks.Read {
		t.Errorf("after Quiesce: %+v", snap)
	}
	if r := n.Stats().Restarts; len(r) != 0 {
		t.Errorf("Quiesce counts as a loss: %v", r)
	}
}

func TestCloseEndsTheChild(t *testing.T) {
	n := newNode(t, "count: 1")
	n.snapshot(20 * time.Second)
	pid := n.main.cmd.Process.Pid
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if running(pid) {
		t.Error("the child is still there")
	}
	if _, err := n.Snapshot(t.Context()); err == nil {
		t.Error("Snapshot after Close gave no error")
	}
}

// A child that dies between two cycles is replaced without a gap.
func TestAChildThatDies(t *testing.T) {
	n := newNode(t, "count: 2")
	n.snapshot(20 * time.Second)
	if err := n.main.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-n.main.Done()
	if snap := n.snapshot(20 * time.Second); !snap.Init.OK || len(snap.GPUs) != 2 || snap.GPUs[1].ECC.Have != checks.Read {
		t.Errorf("got %+v", snap)
	}
	if r := n.Stats().Restarts; r["died"] != 1 {
		t.Errorf("got %v, want one that died", r)
	}
}

func running(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer p.Release()
	return p.Signal(nullSignal) == nil
}
