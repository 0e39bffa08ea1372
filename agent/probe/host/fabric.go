package host

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/fabric"
)

const (
	// switchesAt has a folder for each NVSwitch. Source: open-gpu-kernel-modules, kernel-open/nvidia/procfs_nvswitch.c.
	switchesAt = "proc/driver/nvidia-nvswitch/devices"
	// managerName is nv-fabricmanager as the kernel keeps it, cut to 15 bytes.
	managerName = "nv-fabricmanage"
	// managerPort is its port 6666 in the form of /proc/net/tcp, and listening the state beside it.
	managerPort, listening = ":1A0A", "0A"
)

// managerOf looks whether the fabric manager runs, where there are NVSwitches: by the process seen last, then all of them,
// then its port. *last is its pid, 0 for none.
func managerOf(r *recorder, last *int) fabric.Manager {
	switches, err := r.List(switchesAt)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fabric.Manager{Have: checks.NotSupported}
	case err != nil:
		return fabric.Manager{Err: "nvswitch: " + err.Error()}
	}
	out := fabric.Manager{Have: checks.Read}
	for _, s := range switches {
		if checks.PCIAddress(s) != "" {
			r.got[switchesAt+"/"+s] = "" // so that it is there again; what is below says nothing here
			out.Switches++
		}
	}
	if out.Switches == 0 {
		return fabric.Manager{Have: checks.NotSupported}
	}
	if *last != 0 && isManager(r, *last) {
		out.Running = true
		return out
	}
	*last = 0
	entries, err := r.List("proc")
	if err != nil {
		return fabric.Manager{Err: "proc: " + err.Error()}
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e); err == nil && isManager(r, pid) {
			*last, out.Running = pid, true
			return out
		}
	}
	out.Running = portListens(r)
	return out
}

func isManager(r *recorder, pid int) bool {
	name := "proc/" + strconv.Itoa(pid) + "/stat"
	text, err := r.quiet(name)
	if err != nil || !strings.Contains(text, "("+managerName+") ") {
		return false
	}
	r.got[name] = text
	return true
}

// portListens looks for the port in the tables of TCP; a container may hide the process.
func portListens(r *recorder) bool {
	for _, name := range []string{"proc/net/tcp", "proc/net/tcp6"} {
		text, _ := r.quiet(name)
		for line := range strings.Lines(text) {
			if f := strings.Fields(line); len(f) > 3 && strings.HasSuffix(f[1], managerPort) && f[3] == listening {
				r.got[name] = line
				return true
			}
		}
	}
	return false
}
