package history

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/memory"
	"github.com/assay-gpu/assay/checks/mounts"
	"github.com/assay-gpu/assay/checks/nvme"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/port"
)

var quiet = slog.New(slog.DiscardHandler)

// snapshot shows one port, up or down, a file system and some memory.
func snapshot(boot string, up bool) catalog.Snapshot {
	s := catalog.Snapshot{Node: "n1", BootID: boot, NodeSerial: "S1"}
	s.Host.Infiniband = port.Reading{Have: checks.Read, Ports: []port.Port{{Name: "mlx5_0/1", PCI: "0000:4b:00.0", Up: up, State: "DOWN Polling"}}}
	s.Host.Memory = memory.Reading{Have: checks.Read, Total: 1000, EDAC: checks.NotSupported}
	s.Host.Mounts = mounts.Reading{Have: checks.Read, Mounts: []mounts.Mount{{Point: "/scratch"}}}
	s.Host.NVMe = nvme.Reading{Have: checks.Read, Disks: []nvme.Disk{{Name: "nvme0", Model: "M", Serial: "1"}}}
	return s
}

// fault is what the checks say of the port after Track.
func fault(k *Keeper, s catalog.Snapshot, at time.Duration) string {
	p := policy.Default()
	f := port.Judge(port.Infiniband, k.Track(s, at, p).Host.Infiniband, p.Infiniband)[0]
	return f.Verdict.String() + " " + f.Reason
}

// Down before a restart and down after it is down all the while; a boot forgets how long, not that it had been up.
func TestARestartGoesOn(t *testing.T) {
	dir := t.TempDir()
	k := Open(dir, false, quiet)
	fault(k, snapshot("boot-1", true), time.Minute)
	fault(k, snapshot("boot-1", false), 2*time.Minute)
	k.Save()
	k = Open(dir, false, quiet)
	if got := fault(k, snapshot("boot-1", false), 6*time.Minute); got != "fail down (DOWN Polling) for 4m0s" {
		t.Errorf("after a restart: %s", got)
	}
	k.Save()
	k = Open(dir, false, quiet)
	if got := fault(k, snapshot("boot-2", false), time.Minute); got != "unknown down (DOWN Polling) for 0s; a fault after 4m" {
		t.Errorf("after a boot: %s", got)
	}
	if got := fault(k, snapshot("boot-2", false), 5*time.Minute); !strings.HasPrefix(got, "fail") {
		t.Errorf("what was learned is forgotten: %s", got)
	}
}

// A crash loses no more than saveEvery of the windows, and nothing of what was learned.
func TestACrash(t *testing.T) {
	dir := t.TempDir()
	k := Open(dir, false, quiet)
	fault(k, snapshot("boot-1", true), time.Minute) // saves
	fault(k, snapshot("boot-1", false), 2*time.Minute)
	fault(k, snapshot("boot-1", false), time.Minute+saveEvery) // saves
	k = Open(dir, false, quiet)
	if got := fault(k, snapshot("boot-1", false), 7*time.Minute); got != "fail down (DOWN Polling) for 5m0s" {
		t.Errorf("got %s", got)
	}
}

// A check by hand looks, and leaves all as it was.
func TestReadOnlyWritesNothing(t *testing.T) {
	dir := t.TempDir()
	k := Open(dir, true, quiet)
	fault(k, snapshot("boot-1", true), time.Minute)
	k.Save()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

// Files that cannot be read are as good as none, and are replaced.
func TestRubbishOnDisk(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{bookFile, learnedFile} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(`{"boot_id":"boot-1","subjects":{"x":null},"memory":7,`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	k := Open(dir, false, quiet)
	if got := k.Track(snapshot("boot-1", true), time.Minute, policy.Default()).Host.Memory.Learned; got != 1000 {
		t.Errorf("learned %d", got)
	}
	k.Save()
	if got := Parts(dir); !slices.Contains(got, "memory") {
		t.Errorf("not replaced: %q", got)
	}
}

func TestForget(t *testing.T) {
	dir := t.TempDir()
	if err := Forget(dir, "mlx5_0/1"); err == nil || !strings.Contains(err.(*UnknownPartError).Hint(), "nothing is remembered at all") {
		t.Errorf("with nothing there: %v", err)
	}
	k := Open(dir, false, quiet)
	fault(k, snapshot("boot-1", true), time.Minute)
	want := "/scratch M 1 disks memory mlx5_0/1"
	if got := strings.Join(Parts(dir), " "); got != want {
		t.Errorf("remembered %q, want %q", got, want)
	}
	var unknown *UnknownPartError
	if err := Forget(dir, "mlx5_9/1"); !errors.As(err, &unknown) || !strings.Contains(unknown.Hint(), "mlx5_0/1") {
		t.Errorf("a part nobody knows: %v", err)
	}
	for _, name := range []string{"mlx5_0/1", "/scratch", "memory", "disks"} {
		if err := Forget(dir, name); err != nil {
			t.Fatal(err)
		}
	}
	s := snapshot("boot-1", false)
	s.Host.Memory.Total = 500
	s.Host.Mounts.Mounts[0].ReadOnly = true
	s.Host.NVMe.Disks = nil
	// By hand, the same is said without the daemon; and it is still there for the daemon to take up.
	for _, k := range []*Keeper{Open(dir, true, quiet), k} {
		got := k.Track(s, 10*time.Minute, policy.Default()).Host
		if l := got.Infiniband.Ports[0].Past.Learned; l != nil || got.Memory.Learned != 500 || got.Mounts.Mounts[0].WasWritable || len(got.NVMe.Learned) != 0 {
			t.Errorf("not forgotten: %+v", got)
		}
	}
	if left, err := os.ReadDir(filepath.Join(dir, forgetDir)); err != nil || len(left) != 0 {
		t.Errorf("left to forget: %v, %v", left, err)
	}
	if got := strings.Join(Parts(dir), " "); got != "memory mlx5_0/1" { // known anew: less memory, and a port that is down
		t.Errorf("remembered %q", got)
	}
}

// A disk that refuses is logged, and everything goes on in memory.
func TestADiskThatRefuses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	k := Open(dir, false, quiet)
	fault(k, snapshot("boot-1", true), time.Minute)
	if got := fault(k, snapshot("boot-1", false), 2*time.Minute); got != "unknown down (DOWN Polling) for 0s; a fault after 4m" {
		t.Errorf("got %s", got)
	}
	k.Save()
}
