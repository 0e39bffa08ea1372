package packaging

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// systemd itself says that the units are sound. The programs stand in as files that can be executed.
func TestUnitsVerify(t *testing.T) {
	verify := tool(t, "systemd-analyze")
	dir := t.TempDir()
	var units []string
	for _, unit := range []string{"assay-agent.service", "assayd.service"} {
		data, err := os.ReadFile("systemd/" + unit)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(data), "/usr/bin/", dir+"/")
		// Documents and the user come with the installation.
		text = strings.ReplaceAll(text, "User=assay\nGroup=assay\n", "")
		path := filepath.Join(dir, unit)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		program := strings.TrimSuffix(unit, ".service")
		if err := os.WriteFile(filepath.Join(dir, program), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		units = append(units, path)
	}
	jobs, err := os.ReadFile("systemd/jobs.conf")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "assay-agent.service.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "assay-agent.service.d", "jobs.conf"), jobs, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Log(verify)
	out := run(t, "systemd-analyze", append([]string{"verify", "--man=no", "--recursive-errors=no"}, units...)...)
	if strings.TrimSpace(out) != "" {
		t.Errorf("systemd-analyze verify says:\n%s", out)
	}
}

// What the units promise and the code relies on.
func TestUnitsKeepTheirPromises(t *testing.T) {
	for unit, lines := range map[string][]string{
		// KillMode: children hung in the driver go with the group. StateDirectory: 0700 holds the node's key.
		// tmpfiles.d, not RuntimeDirectory=, makes /run/assay: the list of blocked GPUs must outlive a restart.
		"assay-agent.service": {"Type=notify", "WatchdogSec=30s", "Restart=always", "Delegate=yes", "KillMode=mixed", "StateDirectory=assay/agent", "StateDirectoryMode=0700", "StartLimitIntervalSec=0", "Before=slurmd.service"},
		"assayd.service":      {"Type=notify", "WatchdogSec=30s", "Restart=always", "StateDirectory=assay/assayd", "StateDirectoryMode=0700", "LimitNOFILE=262144", "StartLimitIntervalSec=0"},
	} {
		data, err := os.ReadFile("systemd/" + unit)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			if !strings.Contains("\n"+string(data), "\n"+line+"\n") {
				t.Errorf("%s lacks %s", unit, line)
			}
		}
		if strings.Contains(string(data), "\nRuntimeDirectory=") {
			t.Errorf("%s: RuntimeDirectory= would empty /run/assay at each stop", unit)
		}
	}
	users, err := filepath.Abs("systemd/sysusers.conf")
	if err != nil {
		t.Fatal(err)
	}
	if out := run(t, "systemd-sysusers", "--dry-run", users); strings.Contains(out, "ignoring") {
		t.Errorf("systemd-sysusers says:\n%s", out)
	}
}
