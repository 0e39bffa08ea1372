package nvml

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// OwnCgroup names a cgroup v2 folder for the children, below this process's own where systemd has delegated that
// (Delegate=yes in the unit); empty where it has not.
func OwnCgroup() string {
	self, err1 := os.ReadFile("/proc/self/cgroup")
	mounts, err2 := os.ReadFile("/proc/self/mountinfo")
	if err1 != nil || err2 != nil {
		return ""
	}
	dir := cgroupDir(string(self), string(mounts))
	if dir == "" || !delegated(dir) {
		return ""
	}
	return filepath.Join(dir, "probe")
}

// cgroupDir is the folder of the cgroup v2 named in /proc/self/cgroup, by the mounts in /proc/self/mountinfo.
func cgroupDir(self, mounts string) string {
	path, found := "", false
	for line := range strings.Lines(self) {
		if p, ok := strings.CutPrefix(strings.TrimSpace(line), "0::/"); ok {
			path, found = p, true
		}
	}
	if !found {
		return ""
	}
	for line := range strings.Lines(mounts) {
		mount, fs, ok := strings.Cut(line, " - ")
		if f := strings.Fields(mount); ok && len(f) > 4 && strings.HasPrefix(fs, "cgroup2 ") {
			return filepath.Join(f[4], path)
		}
	}
	return ""
}

// delegated reports whether systemd marked the cgroup as its user's to divide. Source: systemd, docs/CGROUP_DELEGATION.md.
func delegated(dir string) bool {
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		var b [8]byte
		if n, err := unix.Getxattr(dir, name, b[:]); err == nil && string(b[:n]) == "1" {
			return true
		}
	}
	return false
}
