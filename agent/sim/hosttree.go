package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// A tree is files to be, by path below a node's directory: their text, or where they point to as symbolic links. A fifo's
// reader waits for ever.
type tree struct {
	files, links map[string]string
	fifos        map[string]bool
}

func (t tree) file(format string, args ...any) func(text string) {
	name := fmt.Sprintf(format, args...)
	return func(text string) { t.files[name] = text + "\n" }
}

// hostRoots are the folders that hold nothing but what hostTree says.
var hostRoots = []string{"sysfs/class/infiniband", "sysfs/class/net", "sysfs/class/nvme", "sysfs/devices/system", "proc", "calls"}

// tree is what sysfs, procfs and system calls show of the host.
func (h Host) tree() tree {
	t := tree{map[string]string{}, map[string]string{}, map[string]bool{}}
	for name, p := range h.Ports {
		if !p.Missing {
			p.infiniband(t, "sysfs/class/infiniband/"+name)
		}
	}
	for name, p := range h.Nets {
		if !p.Missing {
			p.ethernet(t, "sysfs/class/net/"+name)
		}
	}
	t.file("sysfs/class/net/lo/operstate")("unknown")
	for name, d := range h.Disks {
		if !d.Missing {
			d.write(t, "sysfs/class/nvme/"+name, name)
		}
	}
	for name, m := range h.Modules {
		at := "sysfs/devices/system/edac/mc/" + name
		t.file("%s/dimm_label", at)("CPU_" + strings.ToUpper(strings.ReplaceAll(name, "/", "_")))
		t.file("%s/dimm_ce_count", at)(fmt.Sprint(m.Corrected))
		t.file("%s/dimm_ue_count", at)(fmt.Sprint(m.Uncorrected))
	}
	t.file("sysfs/devices/system/cpu/online")(fmt.Sprintf("0-%d", h.CPUs-1))
	t.file("sysfs/devices/system/clocksource/clocksource0/current_clocksource")(h.Clock)
	t.file("proc/meminfo")(fmt.Sprintf("MemTotal:       %d kB\nMemFree:        %d kB", h.Memory>>10, h.Memory>>11))
	t.file("proc/sys/kernel/tainted")(fmt.Sprint(h.Taint))
	h.processes(t)
	h.mounts(t)
	status := 0x2001 // STA_PLL and STA_NANO
	if h.Unsynced {
		status |= 0x40
	}
	t.file("calls/adjtimex")(fmt.Sprintf("state=0 status=%d maxerror=1500", status))
	return t
}

func (p Port) infiniband(t tree, at string) {
	state, phys := "4: ACTIVE", "5: LinkUp"
	switch {
	case p.Disabled:
		state, phys = "1: DOWN", "3: Disabled"
	case p.Down:
		state, phys = "1: DOWN", "2: Polling"
	}
	t.links[at+"/device"] = "../../../bus/pci/devices/" + p.PCI
	t.file("%s/ports/1/state", at)(state)
	t.file("%s/ports/1/phys_state", at)(phys)
	t.file("%s/ports/1/link_layer", at)("InfiniBand")
	t.file("%s/ports/1/rate", at)(fmt.Sprintf("%d Gb/sec (4X %s)", p.Rate, map[int]string{100: "EDR", 200: "HDR", 400: "NDR", 800: "XDR"}[p.Rate]))
	for name, n := range p.Counters {
		t.file("%s/ports/1/counters/%s", at, name)(fmt.Sprint(n))
	}
}

func (p Port) ethernet(t tree, at string) {
	state, carrier, flags := "up", "1", "0x1003"
	if p.Down || p.Disabled {
		state, carrier = "down", "0"
	}
	if p.Disabled {
		flags = "0x1002"
	}
	t.links[at+"/device"] = "../../../bus/pci/devices/" + p.PCI
	t.file("%s/type", at)("1")
	t.file("%s/operstate", at)(state)
	t.file("%s/carrier", at)(carrier)
	t.file("%s/flags", at)(flags)
	t.file("%s/speed", at)(fmt.Sprint(1000 * p.Rate))
	for name, n := range p.Counters {
		t.file("%s/%s", at, name)(fmt.Sprint(n))
	}
}

func (d Disk) write(t tree, at, name string) {
	t.links[at+"/device"] = "../../../bus/pci/devices/" + d.PCI
	t.file("%s/transport", at)("pcie")
	t.file("%s/model", at)("Simulated NVMe 7.68TB")
	t.file("%s/serial", at)("SIM-" + name)
	t.file("%s/state", at)(d.State)
	t.file("%s/%sn1/size", at, name)("15002931888")
	ro := "0"
	if d.ReadOnly {
		ro = "1"
	}
	t.file("%s/%sn1/ro", at, name)(ro)
	t.file("%s/hwmon1/temp1_input", at)(fmt.Sprint(1000 * d.Temperature))
	t.file("%s/hwmon1/temp1_crit", at)("84850")
	health := fmt.Sprintf("critical_warning=%d available_spare=%d spare_threshold=10 percentage_used=%d media_errors=%d", d.Warning, 100-d.Lost, d.Used, d.MediaErrors)
	if d.NoHealth {
		health = ""
	}
	t.file("calls/smart-%s", name)(health)
}

// processes shows the first process and those that are stuck.
func (h Host) processes(t tree) {
	stat := func(pid int, name, state string) {
		t.file("proc/%d/stat", pid)(fmt.Sprintf("%d (%s) %s 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 %d", pid, name, state, 100+pid))
	}
	stat(1, "systemd", "S")
	for i := range h.Switches {
		t.file("proc/driver/nvidia-nvswitch/devices/0000:%02x:00.0/information", 5+i)("Device name: nvidia-nvswitch")
	}
	if h.Switches > 0 && !h.NoFM {
		stat(812, "nv-fabricmanage", "S")
	}
	for pid, s := range h.Stuck {
		stat(pid, s.Name, "D")
		t.file("proc/%d/wchan", pid)(s.Wait)
		pending := 0
		if s.Killed {
			pending = 1 << 8
		}
		t.file("proc/%d/status", pid)(fmt.Sprintf("Name:\t%s\nState:\tD (disk sleep)\nSigPnd:\t%016x\nShdPnd:\t%016x", s.Name, 0, pending))
		if s.GPU {
			t.links[fmt.Sprintf("proc/%d/fd/7", pid)] = "/dev/nvidia0"
		}
	}
}

func (h Host) mounts(t tree) {
	list := "proc /proc proc rw,nosuid 0 0\nsysfs /sys sysfs rw,nosuid 0 0\n"
	for _, point := range keys(h.Mounts) {
		m := h.Mounts[point]
		if m.Missing {
			continue
		}
		mode := "rw"
		if m.ReadOnly {
			mode = "ro"
		}
		list += fmt.Sprintf("%s %s %s %s,relatime 0 0\n", m.Device, strings.ReplaceAll(point, " ", `\040`), m.Type, mode)
		name := "calls/statfs-" + url.PathEscape(point)
		if m.Hang {
			t.fifos[name] = true
			continue
		}
		blocks := m.Bytes / 4096
		free := uint64(float64(blocks) * (1 - m.Used))
		t.file("%s", name)(fmt.Sprintf("bsize=4096 blocks=%d bavail=%d files=%d ffree=%d", blocks, free, blocks/4, blocks/5))
	}
	t.file("proc/1/mounts")(strings.TrimSuffix(list, "\n"))
}

// writeHost makes the host's folders hold its tree, no more and no less.
func (s State) writeHost(dir string) error {
	t := s.Host.tree()
	for _, root := range hostRoots {
		if err := t.prune(dir, root); err != nil {
			return err
		}
	}
	for name, text := range t.files {
		path := filepath.Join(dir, name)
		if was, err := readPlain(path); err == nil && was == text {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		release(path)
		if err := replace(path, []byte(text)); err != nil {
			return err
		}
	}
	for name, to := range t.links {
		path := filepath.Join(dir, name)
		if was, err := os.Readlink(path); err == nil && was == to {
			continue
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.Symlink(to, path)); err != nil {
			return err
		}
	}
	for name := range t.fifos {
		path := filepath.Join(dir, name)
		if st, err := os.Lstat(path); err == nil && st.Mode()&fs.ModeNamedPipe != 0 {
			continue
		}
		if err := os.RemoveAll(path); err != nil {
			return err
		}
		if err := syscall.Mkfifo(path, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// readPlain reads a regular file; anything else is as good as absent.
func readPlain(path string) (string, error) {
	if st, err := os.Lstat(path); err != nil || !st.Mode().IsRegular() {
		return "", fs.ErrNotExist
	}
	b, err := os.ReadFile(path)
	return string(b), err
}

// release lets go whoever waits at a fifo: it reads an end of file.
func release(path string) {
	if st, err := os.Lstat(path); err != nil || st.Mode()&fs.ModeNamedPipe == 0 {
		return
	}
	if f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
		f.Close()
	}
}

// prune removes what is below root and not of the tree, and folders that are empty then. Folders go last.
func (t tree) prune(dir, root string) error {
	var folders []string
	err := filepath.WalkDir(filepath.Join(dir, root), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		_, file := t.files[rel]
		_, link := t.links[rel]
		switch {
		case d.IsDir():
			folders = append(folders, path)
		case !file && !link && !t.fifos[rel]:
			release(path)
			return os.Remove(path)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := len(folders) - 1; i >= 0; i-- {
		_ = os.Remove(folders[i]) // a folder that holds something stays
	}
	return nil
}
