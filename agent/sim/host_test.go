package sim

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTheHostIsThere(t *testing.T) {
	dir := newNode(t, "count: 1\nhost: {ports: {mlx5_3: {down: true}}, memory: 1024}\noverrides:\n  - {nodes: gpu001, host: {ports: {mlx5_4: {rate: 200}}}}")
	at := In(dir)
	for name, want := range map[string]string{
		at.Sysfs + "/class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE", at.Sysfs + "/class/infiniband/mlx5_3/ports/1/phys_state": "2: Polling",
		at.Sysfs + "/class/infiniband/mlx5_4/ports/1/rate": "200 Gb/sec (4X HDR)", at.Sysfs + "/class/net/eth0/operstate": "up", at.Sysfs + "/class/net/eth1/operstate": "down",
		at.Proc + "/meminfo": "MemTotal:       1 kB\nMemFree:        0 kB", at.Calls + "/statfs-%2Fscratch": "bsize=4096 blocks=1855468750 bavail=1298828125 files=463867187 ffree=371093750",
		at.Sysfs + "/devices/system/edac/mc/mc1/dimm3/dimm_ue_count": "0", at.Proc + "/sys/kernel/tainted": "12289",
	} {
		if got := content(t, name); got != want {
			t.Errorf("%s: %q, want %q", strings.TrimPrefix(name, dir), got, want)
		}
	}
	if to, err := os.Readlink(at.Sysfs + "/class/infiniband/mlx5_0/device"); err != nil || filepath.Base(to) != "0000:18:00.0" {
		t.Errorf("%q, %v", to, err)
	}
}

func TestChangeHost(t *testing.T) {
	dir := newNode(t, "count: 1")
	at := In(dir)
	must(t, ChangeHost(dir, HostChange{
		Ports: map[string]PortChange{"mlx5_0": {Missing: new(true)}, "mlx5_1": {Counters: map[string]uint64{"link_downed": 7}}},
		Disks: map[string]DiskChange{"nvme1": {State: new("dead")}}, Stuck: map[int]Stuck{42: {Name: "cp", Wait: "nfs", Killed: true}},
		Mounts: map[string]MountChange{"/data": {Device: new("filer:/data"), Type: new("nfs4")}, "/scratch": {Missing: new(true)}},
	}))
	if _, err := os.Stat(at.Sysfs + "/class/infiniband/mlx5_0"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a port that is gone: %v", err)
	}
	for name, want := range map[string]string{
		at.Sysfs + "/class/infiniband/mlx5_1/ports/1/counters/link_downed": "7", at.Sysfs + "/class/infiniband/mlx5_1/ports/1/counters/symbol_error": "0",
		at.Sysfs + "/class/nvme/nvme1/state": "dead", at.Proc + "/42/wchan": "nfs",
	} {
		if got := content(t, name); got != want {
			t.Errorf("%s: %q, want %q", strings.TrimPrefix(name, dir), got, want)
		}
	}
	if list := content(t, at.Proc+"/1/mounts"); !strings.Contains(list, "filer:/data /data nfs4 rw") || strings.Contains(list, "/scratch") {
		t.Errorf("mounts:\n%s", list)
	}
	must(t, ChangeHost(dir, HostChange{Stuck: map[int]Stuck{}}))
	if _, err := os.Stat(at.Proc + "/42"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a process that has ended: %v", err)
	}
	before := content(t, filepath.Join(dir, "state.json"))
	var e *ChangeError
	err := ChangeHost(dir, HostChange{Ports: map[string]PortChange{"mlx5_9": {}}, Disks: map[string]DiskChange{"sda": {}}, Mounts: map[string]MountChange{"/new": {}}, Taint: new(uint64(1))})
	if !errors.As(err, &e) || len(e.Faults) != 3 || content(t, filepath.Join(dir, "state.json")) != before {
		t.Errorf("got %v; nothing should be changed", err)
	}
}

// A file system that hangs never answers who asks, until it is let go.
func TestAFileSystemThatHangs(t *testing.T) {
	dir := newNode(t, "count: 1")
	name := filepath.Join(In(dir).Calls, "statfs-%2Fhome")
	set := func(hang bool) {
		must(t, ChangeHost(dir, HostChange{Mounts: map[string]MountChange{"/home": {Hang: &hang}}}))
	}
	set(true)
	set(true) // again changes nothing
	back := make(chan string)
	go func() {
		b, _ := os.ReadFile(name)
		back <- string(b)
	}()
	select {
	case b := <-back:
		t.Fatalf("it answered %q", b)
	case <-time.After(100 * time.Millisecond):
	}
	set(false)
	select {
	case b := <-back:
		if b != "" {
			t.Errorf("let go with %q", b)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("not let go")
	}
	if got := content(t, name); !strings.HasPrefix(got, "bsize=4096") {
		t.Errorf("afterwards: %q", got)
	}
}

func TestARebootHealsTheHost(t *testing.T) {
	dir := newNode(t, "count: 1")
	change := HostChange{
		Ports: map[string]PortChange{"mlx5_0": {Down: new(true), Counters: map[string]uint64{"link_downed": 9}}}, Nets: map[string]PortChange{"eth0": {Disabled: new(true)}},
		Taint: new(uint64(16)), Modules: map[string]Module{"mc0/dimm0": {Uncorrected: 3}}, Stuck: map[int]Stuck{7: {}}, Mounts: map[string]MountChange{"/scratch": {ReadOnly: new(true)}},
		Disks: map[string]DiskChange{"nvme0": {State: new("dead")}}, Memory: new(uint64(1 << 40)), Unsynced: new(true),
	}
	must(t, ChangeHost(dir, change))
	must(t, Set(dir, -1, map[string]string{"persists": "true"}))
	must(t, Reboot(dir))
	h := state(t, dir).Host
	if p := h.Ports["mlx5_0"]; !p.Down || p.Counters["link_downed"] != 0 || h.Taint != 12289 || len(h.Stuck) != 0 || h.Modules["mc0/dimm0"].Uncorrected != 0 || h.Disks["nvme0"].State != "dead" || h.Unsynced {
		t.Errorf("with faults that persist: %+v", h)
	}
	must(t, Set(dir, -1, map[string]string{"persists": "false"}))
	must(t, Reboot(dir))
	h = state(t, dir).Host
	if h.Ports["mlx5_0"].Down || h.Nets["eth0"].Disabled || !h.Nets["eth1"].Down || h.Mounts["/scratch"].ReadOnly || h.Disks["nvme0"].State != "live" || h.Memory != 1<<40 {
		t.Errorf("after a boot: %+v", h)
	}
}

func TestAScenarioThatChangesWhatIsNotThere(t *testing.T) {
	_, err := ParseScenario("s.yaml", []byte("host: {ports: {mlx5_9: {down: true}}}\nevents:\n  - {after: 1s, host: {disks: {sda: {state: dead}}}}\n"))
	if err == nil || !strings.Contains(err.Error(), "s.yaml:1:1: host: ports.mlx5_9: the node has mlx5_0, ") || !strings.Contains(err.Error(), "events[0].host: disks.sda: the node has nvme0, nvme1") {
		t.Errorf("got %v", err)
	}
}
