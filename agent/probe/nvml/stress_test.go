package nvml

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/assay-gpu/assay/agent/sim"
)

// The library answers many threads of one process while the state under it is replaced, and finds its node without being
// told: this process has no ASSAY_SIM_DIR.
func TestTheLibraryUnderConcurrentChange(t *testing.T) {
	// One process has one such library, whatever the path it is opened by: with -count this is the same node each time.
	sc, err := sim.ParseScenario("s", []byte("count: 8"))
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, dir: filepath.Join(filepath.Dir(library), "node")}
	if err := sim.Init(n.dir, sc, "gpu001", library); err != nil {
		t.Fatal(err)
	}
	lib := gonvml.New(gonvml.WithLibraryPath(sim.In(n.dir).Library))
	if ret := lib.Init(); ret != gonvml.SUCCESS {
		t.Fatalf("nvmlInit: %d", ret)
	}
	const callers, each, wantChanges = 8, 2500, 50
	var changes atomic.Int64
	stop := make(chan struct{})
	var changing sync.WaitGroup
	changing.Go(func() {
		for i := uint64(1); ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			value := strconv.FormatUint(i, 10)
			if err := sim.Set(n.dir, int(i%8), map[string]string{"remap_correctable": value, "remap_uncorrectable": value}); err != nil {
				t.Error(err)
				changes.Store(wantChanges)
				return
			}
			changes.Add(1)
		}
	})
	var calling sync.WaitGroup
	var made atomic.Int64
	for i := range callers {
		calling.Go(func() {
			d, ret := lib.DeviceGetHandleByIndex(i)
			if ret != gonvml.SUCCESS {
				t.Errorf("open %d: %d", i, ret)
				return
			}
			for k := 0; k < each || changes.Load() < wantChanges; k++ {
				// Both values change in one step: a reader never sees one without the other.
				a, b, _, _, ret := d.GetRemappedRows()
				if ret != gonvml.SUCCESS || a != b {
					t.Errorf("GPU %d: %d and %d, %d", i, a, b, ret)
					return
				}
				made.Add(1)
			}
		})
	}
	calling.Wait()
	close(stop)
	changing.Wait()
	if got := int64(sim.Calls(n.dir)["nvmlDeviceGetRemappedRows"]); got != made.Load() || got < callers*each {
		t.Errorf("%d calls counted of %d made", got, made.Load())
	}
	t.Logf("%d calls, %d changes", made.Load(), changes.Load())
}

// A hundred children, one after the other, while the node changes.
func TestAHundredChildren(t *testing.T) {
	n := newNode(t, "count: 8")
	for i := range 100 {
		n.set(i%8, "volatile_corrected", strconv.Itoa(i))
		snap := n.snapshot(20 * time.Second)
		if !snap.Init.OK || len(snap.GPUs) != 8 || snap.GPUs[i%8].ECC.VolatileCorrected != uint64(i) {
			t.Fatalf("child %d: %+v", i, snap)
		}
		if err := n.Quiesce(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if r := n.Stats().Restarts; len(r) != 0 {
		t.Errorf("children were lost: %v", r)
	}
	if got := sim.Calls(n.dir)["nvmlInit_v2"]; got != 100 {
		t.Errorf("%d children, want 100", got)
	}
}

// Many callers may ask at once; each gets whole answers.
func TestConcurrentSnapshots(t *testing.T) {
	n := newNode(t, "count: 4")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				snap, err := n.Snapshot(t.Context())
				if err != nil || !snap.Init.OK || len(snap.GPUs) != 4 || snap.GPUs[3].Call.Err != "" {
					t.Errorf("got %+v, %v", snap, err)
				}
			}
		})
	}
	wg.Wait()
	if got := sim.Calls(n.dir)["nvmlInit_v2"]; got != 1 {
		t.Errorf("%d children, want 1", got)
	}
}

// BenchmarkSnapshot reads eight GPUs. It reports the child's memory and processor time: the whole agent, children
// included, has 40 MiB and 0.3 % of a core at one snapshot every 30 s. It reports the most calls that a GPU was asked in a
// snapshot, too, by the library's own count: 40 are allowed.
func BenchmarkSnapshot(b *testing.B) {
	sc, err := sim.ParseScenario("s", []byte("count: 8"))
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	if err := sim.Init(dir, sc, "gpu001", library); err != nil {
		b.Fatal(err)
	}
	n := &node{dir: dir}
	at := sim.In(dir)
	s, err := New(Config{Argv: []string{os.Args[0]}, Env: n.childEnv(), BootID: at.BootID, Sysfs: at.Sysfs})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for range 4 { // until the far ends of links are known
		if snap, err := s.Snapshot(b.Context()); err != nil || !snap.Init.OK {
			b.Fatal(snap, err)
		}
	}
	if err := sim.ResetCalls(dir); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if snap, err := s.Snapshot(b.Context()); err != nil || !snap.Init.OK {
			b.Fatal(snap, err)
		}
	}
	most := 0
	for gpu := range 8 {
		total := 0
		for _, n := range sim.CallsOn(dir, gpu) {
			total += n
		}
		most = max(most, total)
	}
	b.ReportMetric(float64(most)/float64(b.N), "calls/GPU")
	if most > 40*b.N {
		b.Errorf("%d calls on a GPU in %d snapshots, more than 40 in each", most, b.N)
	}
	proc := filepath.Join("/proc", strconv.Itoa(s.main.cmd.Process.Pid))
	if rollup, err := os.ReadFile(filepath.Join(proc, "smaps_rollup")); err == nil {
		for line := range strings.Lines(string(rollup)) {
			if f := strings.Fields(line); len(f) > 1 && f[0] == "Pss:" {
				kb, _ := strconv.ParseFloat(f[1], 64)
				b.ReportMetric(kb/1024, "child-MiB")
			}
		}
	}
	if stat, err := os.ReadFile(filepath.Join(proc, "stat")); err == nil {
		f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		user, _ := strconv.ParseFloat(f[11], 64)
		system, _ := strconv.ParseFloat(f[12], 64)
		b.ReportMetric((user+system)*10/float64(b.N), "child-ms/op") // a clock tick is 10 ms
	}
}
