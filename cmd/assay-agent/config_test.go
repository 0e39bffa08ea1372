package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// load reads a configuration as `run` would.
func load(t *testing.T, file string, args ...string) (config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &cobra.Command{Use: "run"}
	f := hardwareFlags(c)
	f.daemonFlags()
	if err := c.ParseFlags(append([]string{"--config", path}, args...)); err != nil {
		t.Fatal(err)
	}
	return f.load()
}

func TestFlagsStandAboveTheFile(t *testing.T) {
	t.Setenv("SLURMD_NODENAME", "from-slurm")
	c, err := load(t, "run_dir: /run/file\nmetrics_listen: 127.0.0.1:9420\ninterval: 10s\n", "--run-dir", "/run/flag", "--kmsg", "/tmp/kmsg", "--interval", "5s")
	if err != nil {
		t.Fatal(err)
	}
	if c.RunDir != "/run/flag" || c.MetricsListen != "127.0.0.1:9420" || c.Interval.D() != 5*time.Second || c.Kmsg != "/tmp/kmsg" || c.StateDir != "/var/lib/assay/agent" {
		t.Fatalf("%+v", c)
	}
	if c.Node != "from-slurm" || c.nodeGiven {
		t.Fatalf("node %q, given %v: want slurmd's name, which gives the socket no name", c.Node, c.nodeGiven)
	}
	c, err = load(t, "node: gpu007\n")
	if err != nil || c.Node != "gpu007" || !c.nodeGiven {
		t.Fatalf("%+v, %v", c, err)
	}
}

func TestEveryFaultOfTheFileHasItsLine(t *testing.T) {
	_, err := load(t, "node: a b\nxyz: 3\nmetrics_listen: zz\nrun_dir: rel\n", "--log-level", "loud", "--run-dir", "rel2")
	if err == nil {
		t.Fatal("taken")
	}
	for _, want := range []string{`agent.yaml:1:7: node "a b": want`, "agent.yaml:2:1: xyz: unknown key", `agent.yaml:3:17: metrics-listen "zz"`, "\nlog-level \"loud\"", "\nrun-dir \"rel2\""} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nwants %q", err, want)
		}
	}
}

// Both folders are held by one agent at a time, and the one is lost at every boot: one folder cannot be both.
func TestRunAndStateAreTwoFolders(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, state := range []string{dir, dir + "/", dir + "/x/..", link} {
		if _, err := load(t, "", "--run-dir", dir, "--state-dir", state); err == nil || !strings.Contains(err.Error(), "state-dir") || !strings.Contains(err.Error(), "another folder than run-dir") {
			t.Errorf("--state-dir %s: %v", state, err)
		}
	}
	if _, err := load(t, "", "--run-dir", dir, "--state-dir", dir+"/state"); err != nil {
		t.Error(err)
	}
}

func TestASimulatedNodeIsReadFromItsFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "state.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ASSAY_SIM_DIR", "")
	c, err := load(t, "", "--sim", dir, "--sysfs", "/sys")
	if err != nil {
		t.Fatal(err)
	}
	if c.Kmsg != dir+"/kmsg" || c.BootID != dir+"/boot_id" || c.NVMLLibrary != dir+"/libnvidia-ml.so.1" || c.Sysfs != "/sys" || os.Getenv("ASSAY_SIM_DIR") != dir {
		t.Fatalf("%+v, ASSAY_SIM_DIR %q", c, os.Getenv("ASSAY_SIM_DIR"))
	}
}

// On a workstation, a simulated fault that asks for a reboot must not reboot the workstation.
func TestASimulatedNodeIsRepairedInItsFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "state.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ASSAY_SIM_DIR", "")
	for _, file := range []string{"", "reboot_command: systemctl reboot\nreset_command: nvidia-smi --gpu-reset -i {uuid}\n"} {
		c, err := load(t, file, "--sim", dir)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(c.RebootCommand, " sim reboot") || !strings.HasSuffix(c.ResetCommand, " sim reset --gpu {uuid}") {
			t.Fatalf("file %q: reboot %q, reset %q", file, c.RebootCommand, c.ResetCommand)
		}
	}
	c, err := load(t, "", "--sim", dir, "--reboot-command", "true")
	if err != nil || c.RebootCommand != "true" {
		t.Fatalf("%q, %v: a flag stands above it", c.RebootCommand, err)
	}
	c, err = load(t, "")
	if err != nil || c.RebootCommand != "systemctl reboot" {
		t.Fatalf("%q, %v: a real node is rebooted for real", c.RebootCommand, err)
	}
}

func TestSocketPath(t *testing.T) {
	t.Setenv("SLURMD_NODENAME", "")
	run := t.TempDir()
	if err := os.WriteFile(filepath.Join(run, "gpu001.sock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ socket, node, slurm, want string }{
		{"/x.sock", "gpu001", "", "/x.sock"},
		{"", "gpu001", "", run + "/gpu001.sock"},
		{"", "gpu002", "", run + "/agent.sock"},
		{"", "", "gpu001", run + "/gpu001.sock"},
		{"", "", "../../etc/gpu001", run + "/agent.sock"},
		{"", "", "", run + "/agent.sock"},
	} {
		t.Setenv("SLURMD_NODENAME", c.slurm)
		if got := socketPath(run, c.socket, c.node); got != c.want {
			t.Errorf("socket %q node %q slurm %q: %s, want %s", c.socket, c.node, c.slurm, got, c.want)
		}
	}
}
