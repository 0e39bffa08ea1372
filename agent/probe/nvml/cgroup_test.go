package nvml

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestCgroupDir(t *testing.T) {
	const unified = "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
	const hybrid = "30 23 0:27 / /sys/fs/cgroup ro - tmpfs tmpfs ro\n31 30 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n32 30 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
	for _, tt := range []struct{ name, self, mounts, want string }{
		{"unified", "0::/system.slice/assay-agent.service\n", unified, "/sys/fs/cgroup/system.slice/assay-agent.service"},
		{"hybrid", "4:cpu:/x\n1:name=systemd:/y\n0::/z\n", hybrid, "/sys/fs/cgroup/unified/z"},
		{"the root", "0::/\n", unified, "/sys/fs/cgroup"},
		{"cgroup v1 only", "4:cpu:/x\n", hybrid, ""},
		{"not mounted", "0::/x\n", "23 1 8:1 / / rw - ext4 /dev/sda1 rw\n", ""},
		{"nothing to read", "", "", ""},
	} {
		if got := cgroupDir(tt.self, tt.mounts); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	if delegated(t.TempDir()) {
		t.Error("a plain folder is taken for a delegated cgroup")
	}
}

// Where a cgroup can be made, the child runs in it; where it cannot, the child runs all the same.
func TestChildrenInACgroup(t *testing.T) {
	t.Run("cannot be made", func(t *testing.T) {
		plain := filepath.Join(t.TempDir(), "no cgroup")
		n := newNode(t, "count: 1", func(c *Config) { c.Cgroup = plain })
		if snap := n.snapshot(20 * time.Second); !snap.Init.OK || snap.GPUs[0].ECC.Have == 0 {
			t.Errorf("got %+v", snap)
		}
	})
	t.Run("can be made", func(t *testing.T) {
		self, err1 := os.ReadFile("/proc/self/cgroup")
		mounts, err2 := os.ReadFile("/proc/self/mountinfo")
		if err1 != nil || err2 != nil {
			t.Skip("no cgroups here")
		}
		dir := filepath.Join(cgroupDir(string(self), string(mounts)), "assay-test-"+strconv.Itoa(os.Getpid()))
		if !strings.HasPrefix(dir, "/") || os.Mkdir(dir, 0o755) != nil {
			t.Skipf("no cgroup v2 may be made here: %s", dir)
		}
		t.Cleanup(func() { os.Remove(dir) })
		n := newNode(t, "count: 1", func(c *Config) { c.Cgroup = dir })
		n.snapshot(20 * time.Second)
		got, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(n.main.cmd.Process.Pid), "cgroup"))
		if err != nil || !strings.Contains(string(got), filepath.Base(dir)) {
			t.Errorf("the child is in %s, %v", got, err)
		}
		n.Close()
	})
}
