package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-gpu/assay/agent/sim"
	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

// simulated is a simulated host, without a driver library.
func simulated(t testing.TB) (dir string, src System) {
	t.Helper()
	dir = t.TempDir()
	sc, err := sim.ParseScenario("", nil)
	if err != nil {
		t.Fatal(err)
	}
	lib := filepath.Join(t.TempDir(), "lib")
	if err := os.WriteFile(lib, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := sim.Init(dir, sc, "gpu001", lib); err != nil {
		t.Fatal(err)
	}
	at := sim.In(dir)
	return dir, System{Sysfs: at.Sysfs, Proc: at.Proc, Calls: at.Calls}
}

// What was read from a simulated node, through files, gives the same readings again from its texts alone.
func TestTextsGiveTheSameReadings(t *testing.T) {
	dir, src := simulated(t)
	change := sim.HostChange{
		Ports: map[string]sim.PortChange{"mlx5_2": {Down: new(true)}}, Stuck: map[int]sim.Stuck{77: {Name: "nvidia-smi", Wait: "x", GPU: true, Killed: true}},
		Mounts: map[string]sim.MountChange{"/home": {Hang: new(true)}}, Modules: map[string]sim.Module{"mc0/dimm1": {Corrected: 3}},
	}
	if err := sim.ChangeHost(dir, change); err != nil {
		t.Fatal(err)
	}
	defer func() { // let the reader of the file system that hangs go
		if err := sim.ChangeHost(dir, sim.HostChange{Mounts: map[string]sim.MountChange{"/home": {Hang: new(false)}}}); err != nil {
			t.Error(err)
		}
	}()
	h, texts := New(src).Read(t.Context(), 200*time.Millisecond, policy.Default())
	again, twice := New(texts).Read(t.Context(), time.Minute, policy.Default())
	if !reflect.DeepEqual(h, again) {
		t.Errorf("got\n%+v\nwant\n%+v", again, h)
	}
	if !reflect.DeepEqual(texts, twice) {
		t.Error("the texts of the texts are others")
	}
	if len(h.Infiniband.Ports) != 8 || h.Infiniband.Ports[2].Up || !h.Infiniband.Ports[3].Up || len(h.Ethernet.Ports) != 2 {
		t.Errorf("ports %+v %+v", h.Infiniband, h.Ethernet)
	}
	if p := h.Processes.Sleeping; len(p) != 1 || !p[0].NVIDIA || !p[0].Killed || p[0].PID != 77 {
		t.Errorf("processes %+v", p)
	}
	if len(h.Mounts.Mounts) != 3 || h.Mounts.Mounts[1].HungFor < 100*time.Millisecond || h.Mounts.Mounts[2].Size == 0 {
		t.Errorf("mounts %+v", h.Mounts)
	}
	if len(h.Memory.Modules) != 8 || h.Memory.Modules[1].Corrected != 3 || h.CPU.Online != 192 || len(h.NVMe.Disks) != 2 || !h.TimeSync.Synced || h.Kernel.Taint != 12289 {
		t.Errorf("%+v", h)
	}
}

// stuckSource never comes back for some names, until told.
type stuckSource struct {
	Source
	stuck func(name string) bool
	free  chan struct{}
	asked atomic.Int32
}

func (s *stuckSource) Text(name string) (string, error) {
	if s.stuck(name) {
		s.asked.Add(1)
		<-s.free
	}
	return s.Source.Text(name)
}

// A file server that is gone keeps one thread, however often it is looked at; it is named with how long it has been, and the
// rest is read as ever.
func TestADeadFileServerKeepsOneThread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &stuckSource{Source: Texts{
			"proc/1/mounts": "/dev/sda1 / ext4 rw 0 0\nfiler:/a /home nfs4 rw 0 0\n", "statfs/": "bsize=1 blocks=2 bavail=1", "statfs/home": "bsize=1 blocks=2 bavail=1",
			"proc/sys/kernel/tainted": "0",
		}, stuck: func(name string) bool { return name == "statfs/home" }, free: make(chan struct{})}
		p := New(src)
		for look := range 5 {
			h, _ := p.Read(t.Context(), 5*time.Second, policy.Default())
			home, root := h.Mounts.Mounts[1], h.Mounts.Mounts[0]
			if want := 5*time.Second + time.Duration(look)*35*time.Second - min(time.Duration(look), 1)*5*time.Second; home.HungFor != want {
				t.Errorf("look %d: hung for %s, want %s", look, home.HungFor, want)
			}
			if root.Size != 2 || h.Kernel.Have != checks.Read {
				t.Errorf("look %d: %+v", look, h)
			}
			time.Sleep(30*time.Second + 5*time.Second*min(time.Duration(look), 1))
		}
		if n := src.asked.Load(); n != 1 {
			t.Errorf("asked %d times", n)
		}
		close(src.free)
		synctest.Wait()
		if h, _ := p.Read(t.Context(), 5*time.Second, policy.Default()); h.Mounts.Mounts[1].HungFor != 0 || h.Mounts.Mounts[1].Size != 2 {
			t.Errorf("once it is back: %+v", h.Mounts.Mounts[1])
		}
	})
}

// Each group that hangs is unread, and says so; the others are read.
func TestAGroupThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &stuckSource{Source: Texts{"proc/meminfo": "MemTotal: 5 kB", "proc/sys/kernel/tainted": "0", "proc/1/mounts": ""},
			stuck: func(name string) bool { return name == "proc/meminfo" || name == "proc/1/mounts" }, free: make(chan struct{})}
		h, _ := New(src).Read(t.Context(), 5*time.Second, policy.Default())
		if h.Memory.Have != checks.Unread || h.Memory.Err != "memory: not read within 5s" || h.Mounts.Err != "mounts: not read within 5s" {
			t.Errorf("%+v %+v", h.Memory, h.Mounts)
		}
		if h.Kernel.Have != checks.Read || h.Infiniband.Have != checks.NotSupported {
			t.Errorf("%+v", h)
		}
		close(src.free)
	})
}

// The counters of a port are read from when it has been up, and go on being read when it is down.
func TestCountersOfAPortThatWasUp(t *testing.T) {
	texts := Texts{"sys/class/infiniband/a/ports/1/state": "1: DOWN", "sys/class/infiniband/a/ports/1/phys_state": "2: Polling", "sys/class/infiniband/a/ports/1/counters/link_downed": "1"}
	p := New(&stuckSource{Source: texts, stuck: func(string) bool { return false }})
	look := func() map[string]uint64 {
		h, _ := p.Read(t.Context(), time.Minute, policy.Default())
		return h.Infiniband.Ports[0].Counters
	}
	if c := look(); c != nil {
		t.Errorf("never up, and yet %v", c)
	}
	texts["sys/class/infiniband/a/ports/1/state"], texts["sys/class/infiniband/a/ports/1/phys_state"] = "4: ACTIVE", "5: LinkUp"
	if c := look(); c["link_downed"] != 1 {
		t.Errorf("up: %v", c)
	}
	texts["sys/class/infiniband/a/ports/1/state"] = "1: DOWN"
	if c := look(); c["link_downed"] != 1 {
		t.Errorf("down again: %v", c)
	}
}

// A counter that a port does not have is left out; one that it has and that cannot be read is said as such.
func TestCountersThatCannotBeRead(t *testing.T) {
	const at = "sys/class/infiniband/a/ports/1/"
	for _, tt := range []struct {
		name, text string
		unread     []string
	}{
		{"read", "5\n", nil},
		{"none on this device", "", nil},
		{"not counted by this device", "N/A (no PMA)\n", nil},
		{"an argument that the driver does not know", "error:" + syscall.EINVAL.Error(), nil},
		{"an operation that the driver does not know", "error:" + syscall.EOPNOTSUPP.Error(), nil},
		{"the device does not answer", "error:" + syscall.EIO.Error(), []string{"link_downed: input/output error"}},
		{"no number", "5 errors\n", []string{`link_downed: "5 errors" is no number`}},
	} {
		texts := Texts{at + "state": "4: ACTIVE", at + "phys_state": "5: LinkUp", at + "rate": "400 Gb/sec (4X NDR)"}
		if tt.text != "" {
			texts[at+"counters/link_downed"] = tt.text
		}
		h, _ := New(texts).Read(t.Context(), time.Minute, policy.Default())
		x := h.Infiniband.Ports[0]
		if _, have := x.Counters["link_downed"]; !slices.Equal(x.Unread, tt.unread) || have != (tt.name == "read") {
			t.Errorf("%s: counters %v, unread %q", tt.name, x.Counters, x.Unread)
		}
		texts[at+"hw_counters/link_downed"] = "7"
		if h, _ = New(texts).Read(t.Context(), time.Minute, policy.Default()); len(h.Infiniband.Ports[0].Unread) > 0 {
			t.Errorf("%s: the other folder has it, and yet %q", tt.name, h.Infiniband.Ports[0].Unread)
		}
	}
}

// Kernel threads are read once, and again after a while: their pid may be another's by then.
func TestKernelThreadsAreLeftAlone(t *testing.T) {
	stat := func(flags string) string { return "7 (x) D 2 0 0 0 -1 " + flags + " 0 0 0 0 0 0 0 0 20 0 1 0 81 0" }
	texts := Texts{"proc/7/stat": stat("69238880")}
	p := New(&stuckSource{Source: texts, stuck: func(string) bool { return false }})
	for look := range renewThreads + 1 {
		if look == 1 {
			texts["proc/7/stat"] = stat("4194560")
		}
		h, _ := p.Read(t.Context(), time.Minute, policy.Default())
		if got := len(h.Processes.Sleeping); (got == 1) != (look == renewThreads) {
			t.Errorf("look %d: %d processes", look, got)
		}
	}
}

func TestSystem(t *testing.T) {
	root := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Join(root, "class/net/b"), 0o755))
	must(os.MkdirAll(filepath.Join(root, "class/net/a"), 0o755))
	must(os.WriteFile(filepath.Join(root, "class/net/a/type"), []byte("1\n"), 0o644))
	must(os.WriteFile(filepath.Join(root, "huge"), make([]byte, 2*maxText), 0o644))
	must(os.Symlink("../x", filepath.Join(root, "class/net/a/device")))
	s := System{Sysfs: root, Proc: "/proc"}
	if got, err := s.Text("sys/class/net/a/type"); got != "1\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := s.Text("sys/huge"); len(got) != maxText || err != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if got, err := s.List("sys/class/net"); strings.Join(got, " ") != "a b" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := s.Link("sys/class/net/a/device"); got != "../x" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	for what, err := range map[string]error{
		"text": second(s.Text("sys/none")), "list": second(s.List("sys/none")), "link": second(s.Link("sys/none")), "statfs": second(s.Text("statfs" + root + "/none")),
	} {
		if !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), root) {
			t.Errorf("%s of what is not there: %v", what, err)
		}
	}
	for what, err := range map[string]error{"text": second(s.Text("etc/passwd")), "list": second(s.List("etc")), "link": second(s.Link("etc/mtab"))} {
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s below another root: %v", what, err)
		}
	}
	var st syscall.Statfs_t
	must(syscall.Statfs(root, &st))
	if got, err := s.Text("statfs" + root); err != nil || fields(got)["blocks"] != st.Blocks || fields(got)["bsize"] != uint64(st.Bsize) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := s.Text("adjtimex"); err != nil && !errors.Is(err, fs.ErrPermission) || err == nil && fields(got)["maxerror"] == 0 {
		t.Errorf("%q, %v", got, err)
	}
}

func second[T any](_ T, err error) error { return err }

// This machine can be read, whatever it is.
func TestThisMachine(t *testing.T) {
	h, texts := New(System{Sysfs: "/sys", Proc: "/proc"}).Read(t.Context(), 10*time.Second, policy.Default())
	if h.Memory.Have != checks.Read || h.Memory.Total < 64<<20 || h.CPU.Online < 1 || h.Processes.Have != checks.Read || h.Kernel.Have != checks.Read {
		t.Errorf("%+v", h)
	}
	again, _ := New(texts).Read(t.Context(), time.Minute, policy.Default())
	if !reflect.DeepEqual(h, again) {
		t.Errorf("its texts give\n%+v\nwant\n%+v", again, h)
	}
}

func BenchmarkRead(b *testing.B) {
	p := New(System{Sysfs: "/sys", Proc: "/proc"})
	for b.Loop() {
		p.Read(b.Context(), 10*time.Second, policy.Default())
	}
}

// BenchmarkGroups reads each group by itself, of the simulated node: ten ports, eight disks and 32 modules of memory; the
// processes are this machine's.
func BenchmarkGroups(b *testing.B) {
	_, src := simulated(b)
	p := New(src)
	here := New(System{Sysfs: "/sys", Proc: "/proc"})
	pol := policy.Default()
	for _, g := range []struct {
		name string
		of   *Probe
		read func(*recorder)
	}{
		{"infiniband", p, func(r *recorder) { p.infiniband(r, pol.Infiniband) }},
		{"ethernet", p, func(r *recorder) { p.ethernet(r, pol.Ethernet) }},
		{"memory", p, func(r *recorder) { memoryOf(r) }},
		{"cpu", p, func(r *recorder) { cpuOf(r) }},
		{"processes", here, func(r *recorder) { processesOf(r, &here.threads) }},
		{"kernel", p, func(r *recorder) { kernelOf(r) }},
		{"nvme", p, func(r *recorder) { nvmeOf(r, &p.health) }},
		{"nvme-asked", p, func(r *recorder) { p.Renew(); nvmeOf(r, &p.health) }},
		{"timesync", p, func(r *recorder) { timesyncOf(r) }},
		{"fabric", p, func(r *recorder) { managerOf(r, &p.manager) }},
	} {
		b.Run(g.name, func(b *testing.B) {
			processorTime(b, func() { g.read(record(g.of.src)) })
		})
	}
	b.Run("mounts", func(b *testing.B) {
		processorTime(b, func() { p.mounts(b.Context(), func(Texts) {}, pol.Mounts) })
	})
}

// processorTime runs f and tells the processor time of this process too: on a busy machine the wall clock tells of others.
func processorTime(b *testing.B, f func()) {
	used := func() int64 {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return u.Utime.Nano() + u.Stime.Nano()
	}
	before := used()
	for b.Loop() {
		f()
	}
	b.ReportMetric(float64(used()-before)/float64(b.N), "cpu-ns/op")
}

// FuzzTexts gives every group a text of the fuzzer's: nothing may panic, and what was read gives the same again.
func FuzzTexts(f *testing.F) {
	for _, s := range []string{"4: ACTIVE", "1 (a) D 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 7", "/dev/sda1 / ext4 rw 0 0\n", "0-3,7", "MemTotal: 5 kB", "bsize=1 blocks=2", "400 Gb/sec (4X NDR)", "error:x", "hung:5s", "\\040 \\"} {
		f.Add(s, s)
	}
	names := []string{
		"sys/class/infiniband/a/ports/1/state", "sys/class/infiniband/a/ports/1/phys_state", "sys/class/infiniband/a/ports/1/rate", "sys/class/infiniband/a/ports/1/counters/link_downed",
		"sys/class/net/a/type", "sys/class/net/a/operstate", "sys/class/net/a/flags", "link:sys/class/net/a/device", "sys/class/nvme/nvme0/nvme0n1/size", "sys/class/nvme/nvme0/state",
		"sys/devices/system/edac/mc/mc0/ce_count", "sys/devices/system/cpu/online", "proc/meminfo", "proc/1/mounts", "proc/7/stat", "proc/7/status", "proc/sys/kernel/tainted", "statfs/", "adjtimex", "hung:timesync",
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		texts := Texts{}
		for i, n := range names {
			texts[n] = []string{a, b}[i%2]
		}
		h, got := New(texts).Read(t.Context(), time.Minute, policy.Default())
		again, _ := New(got).Read(t.Context(), time.Minute, policy.Default())
		if !reflect.DeepEqual(h, again) {
			t.Errorf("got\n%+v\nwant\n%+v", again, h)
		}
	})
}
