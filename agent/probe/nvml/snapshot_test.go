package nvml

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/agent/sim"
	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/driver"
	"github.com/assay-gpu/assay/checks/ecc"
	"github.com/assay-gpu/assay/checks/recovery"
	"github.com/assay-gpu/assay/checks/rowremap"
)

func TestSnapshotOfAHealthyNode(t *testing.T) {
	n := newNode(t, "model: H100\ncount: 8\ndriver: 550.54.15\n")
	snap := n.snapshot(20 * time.Second)
	st := n.state()
	if snap.Node != "gpu001" || snap.BootID != st.BootID || snap.NodeSerial != st.NodeSerial || snap.Driver != "550.54.15" ||
		snap.Count != 8 || snap.Init != (driver.Init{OK: true}) || len(snap.GPUs) != 8 {
		t.Fatalf("got %+v", snap)
	}
	for i, g := range snap.GPUs {
		want := catalog.GPUState{
			GPU: checks.GPU{Node: "gpu001", UUID: st.GPUs[i].UUID, Index: i, PCI: st.GPUs[i].PCI, Name: "NVIDIA H100 80GB HBM3", Serial: st.GPUs[i].Serial},
			ECC: ecc.Reading{Have: checks.Read, Enabled: true, HaveSRAM: checks.Read}, RowRemap: rowremap.Reading{Have: checks.Read},
			Recovery: recovery.Reading{Have: checks.Read},
		}
		if !reflect.DeepEqual(g, want) {
			t.Errorf("GPU %d:\ngot  %+v\nwant %+v", i, g, want)
		}
	}
}

// Each value of the device reaches the reading it belongs to, in the same child.
func TestSnapshotReadsEachValue(t *testing.T) {
	n := newNode(t, "count: 2")
	n.snapshot(20 * time.Second)
	for _, tt := range []struct {
		key, value string
		want       func(*catalog.GPUState)
	}{
		{"ecc_pending", "false", func(s *catalog.GPUState) { s.ECC.Pending = true }},
		{"volatile_corrected", "3", func(s *catalog.GPUState) { s.ECC.VolatileCorrected = 3 }},
		{"volatile_uncorrected", "4", func(s *catalog.GPUState) { s.ECC.VolatileUncorrected = 4 }},
		{"aggregate_corrected", "18446744073709551615", func(s *catalog.GPUState) { s.ECC.AggregateCorrected = 1<<64 - 1 }},
		{"aggregate_uncorrected", "6", func(s *catalog.GPUState) { s.ECC.AggregateUncorrected = 6 }},
		{"sram_threshold", "true", func(s *catalog.GPUState) { s.ECC.SRAMThresholdExceeded = true }},
		{"remap_correctable", "7", func(s *catalog.GPUState) { s.RowRemap.Correctable = 7 }},
		{"remap_uncorrectable", "8", func(s *catalog.GPUState) { s.RowRemap.Uncorrectable = 8 }},
		{"remap_pending", "true", func(s *catalog.GPUState) { s.RowRemap.Pending = true }},
		{"remap_failed", "true", func(s *catalog.GPUState) { s.RowRemap.Failed = true }},
		{"recovery_action", "4", func(s *catalog.GPUState) { s.Recovery.Action = 4 }},
		{"recovery_action", "77", func(s *catalog.GPUState) { s.Recovery.Action = 77 }},
	} {
		before := n.snapshot(20 * time.Second)
		n.set(1, tt.key, tt.value)
		after := n.snapshot(20 * time.Second)
		want := before.GPUs[1]
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
			s.RowRemap = rowremap.Reading{Have: checks.NotSupported}
			s.Name = "Tesla T4"
		}},
		{"no ECC", "gpus: {0: {not_supported: [nvmlDeviceGetEccMode]}}", func(s *catalog.GPUState) {
			s.ECC = ecc.Reading{Have: checks.NotSupported, HaveSRAM: checks.NotSupported}
		}},
		{"ECC off: nothing is counted", "gpus: {0: {ecc_enabled: false, ecc_pending: false}}", func(s *catalog.GPUState) {
			s.ECC = ecc.Reading{Have: checks.Read, HaveSRAM: checks.NotSupported}
		}},
		{"ECC on but counters N/A: not zero", "gpus: {0: {not_supported: [nvmlDeviceGetTotalEccErrors]}}", func(s *catalog.GPUState) {
			s.ECC = ecc.Reading{Enabled: true, Err: "nvmlDeviceGetTotalEccErrors: not supported"}
		}},
		{"no recovery action", "gpus: {0: {not_supported: [nvmlDeviceGetFieldValues]}}", func(s *catalog.GPUState) {
			s.Recovery = recovery.Reading{Have: checks.NotSupported}
		}},
		{"no serial", "gpus: {0: {not_supported: [nvmlDeviceGetSerial]}}", func(s *catalog.GPUState) { s.Serial = "" }},
		{"an old driver", "symbols_missing: [nvmlDeviceGetRemappedRows, nvmlDeviceGetSramEccErrorStatus, nvmlDeviceGetFieldValues]", func(s *catalog.GPUState) {
			s.RowRemap = rowremap.Reading{Have: checks.NotSupported}
			s.Recovery = recovery.Reading{Have: checks.NotSupported}
			s.ECC.HaveSRAM = checks.NotSupported
		}},
		{"an older driver", "symbols_missing: [nvmlDeviceGetTotalEccErrors, nvmlDeviceGetName, nvmlDeviceGetSerial]", func(s *catalog.GPUState) {
			s.ECC = ecc.Reading{Have: checks.NotSupported, Enabled: true}
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
			want := catalog.GPUState{
				GPU: checks.GPU{Node: "gpu001", UUID: g.UUID, PCI: g.PCI, Name: "NVIDIA H100 80GB HBM3", Serial: g.Serial},
				ECC: ecc.Reading{Have: checks.Read, Enabled: true, HaveSRAM: checks.Read}, RowRemap: rowremap.Reading{Have: checks.Read},
				Recovery: recovery.Reading{Have: checks.Read},
			}
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
		if !reflect.DeepEqual(snap.GPUs[2], want) {
			t.Errorf("got  %+v\nwant %+v", snap.GPUs[2], want)
		}
		if !reflect.DeepEqual(snap.GPUs[3], before.GPUs[3]) {
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
			if !reflect.DeepEqual(snap.GPUs[i], want) {
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

// A cycle may make 40 NVML calls per GPU; it makes nine, and thirteen in a child's first.
func TestCallsPerCycle(t *testing.T) {
	n := newNode(t, "count: 8")
	for cycle, most := range []int{13, 9, 9} {
		if err := sim.ResetCalls(n.dir); err != nil {
			t.Fatal(err)
		}
		n.snapshot(20 * time.Second)
		for gpu := range 8 {
			total := 0
			for _, c := range sim.CallsOn(n.dir, gpu) {
				total += c
			}
			if total == 0 || total > most {
				t.Errorf("cycle %d, GPU %d: %d calls, want at most %d: %v", cycle, gpu, total, most, sim.CallsOn(n.dir, gpu))
			}
		}
	}
	if got := n.Stats().Calls; got == 0 {
		t.Error("no calls counted")
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
	<-n.main.exited
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
