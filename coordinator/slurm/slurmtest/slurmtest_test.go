package slurmtest_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/coordinator/slurm"
	"github.com/assay-gpu/assay/coordinator/slurm/slurmtest"
)

const ours = "assay:Q-7F3K xid 79 GPU 3 off the bus"

// script writes an executable shell script and returns its path.
func script(t *testing.T, body string) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), "hook")
	if err := os.WriteFile(p, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestReboot holds the package comment's account of a reboot, from the drain to the next job.
func TestReboot(t *testing.T) {
	slurmtest.Require(t)
	hooks := t.TempDir()
	rebooted := make(chan string, 1)
	c := slurmtest.Start(t, slurmtest.Options{
		Nodes: 2, GPUs: 2,
		Prolog:   script(t, "set > "+hooks+"/prolog.$SLURMD_NODENAME"),
		OnReboot: func(node string) { rebooted <- node },
	})
	before := c.Node("gpu1")
	if before.GPUs != 2 || before.State != "IDLE" || before.BootTime.IsZero() {
		t.Fatalf("fresh node: %+v", before)
	}

	c.Run("scontrol", "update", "nodename=gpu1", "state=drain", "reason="+ours)
	drained := c.Node("gpu1")
	c.Run("scontrol", "reboot", "gpu1")
	select {
	case node := <-rebooted:
		if node != "gpu1" {
			t.Errorf("%s was rebooted", node)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("RebootProgram did not run")
	}
	back := c.WaitNode("gpu1", "back", 20*time.Second, func(n slurm.Node) bool {
		return n.State == "IDLE" && !n.Has(slurm.FlagRebootIssued) && n.BootTime.After(before.BootTime)
	})
	if !slices.Equal(back.Flags, []string{slurm.FlagDrain}) {
		t.Errorf("after the boot its flags are %q, want the drain alone", back.Flags)
	}
	if back.Reason != ours+" : reboot issued" || slurm.BareReason(back.Reason) != ours {
		t.Errorf("after the boot its reason is %q", back.Reason)
	}
	if back.ReasonTime.Before(drained.ReasonTime) {
		t.Errorf("the reason is of %v now, was of %v", back.ReasonTime, drained.ReasonTime)
	}

	c.Run("scontrol", "update", "nodename=gpu1", "state=resume")
	id := c.Submit("exit 0", "--nodelist=gpu1", "--gres=gpu:2")
	c.WaitJob(id, "COMPLETED", 20*time.Second)

	env, err := os.ReadFile(filepath.Join(hooks, "prolog.gpu1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"SLURMD_NODENAME='gpu1'", "SLURM_JOB_ID='" + id + "'", "SLURM_JOB_GPUS='0,1'", "SLURM_JOB_RESTART_COUNT='0'", "SLURM_SCRIPT_CONTEXT='prolog_slurmd'"} {
		if !strings.Contains(string(env), want+"\n") {
			t.Errorf("the prolog's environment lacks %s:\n%s", want, env)
		}
	}
	if strings.Contains(string(env), "ASSAY_SLURMTEST") {
		t.Error("the prolog has slurmd's environment")
	}
}

// TestRestartIsNoBoot: without -b a restarted slurmd brings the old boot time, and Slurm goes on waiting for the reboot.
func TestRestartIsNoBoot(t *testing.T) {
	slurmtest.Require(t)
	ran := filepath.Join(t.TempDir(), "ran")
	c := slurmtest.Start(t, slurmtest.Options{Nodes: 1, Leaf: -1, RebootProgram: script(t, "echo $SLURMD_NODENAME $ASSAY_SLURMTEST >> "+ran)})
	c.Run("scontrol", "update", "nodename=gpu1", "state=drain", "reason="+ours)
	c.Run("scontrol", "reboot", "gpu1")
	issued := func(n slurm.Node) bool {
		return n.State == "DOWN" && n.Has(slurm.FlagRebootIssued) && n.Has(slurm.FlagDrain)
	}
	c.WaitNode("gpu1", "rebooting", 10*time.Second, issued)
	// The state is set before the program runs.
	var got []byte
	for deadline := time.Now().Add(10 * time.Second); len(got) == 0 && time.Now().Before(deadline); time.Sleep(30 * time.Millisecond) {
		got, _ = os.ReadFile(ran)
	}
	if want := "gpu1 " + c.Dir + "\n"; string(got) != want {
		t.Fatalf("RebootProgram saw %q, want %q: slurmd's environment", got, want)
	}
	c.StopSlurmd("gpu1")
	c.StartSlurmd("gpu1")
	time.Sleep(2 * time.Second) // it registers within a second
	if n := c.Node("gpu1"); !issued(n) {
		t.Errorf("a restart passed for a boot: %s", slurm.StateText(n))
	}
	c.StopSlurmd("gpu1")
	c.StartSlurmd("gpu1", "-b")
	c.WaitNode("gpu1", "back", 10*time.Second, func(n slurm.Node) bool { return n.State == "IDLE" })
	if again, err := os.ReadFile(ran); err != nil || string(again) != string(got) {
		t.Errorf("RebootProgram ran again: %q, %v", again, err)
	}
}

// TestCloseLeavesNothing: a job that ignores SIGTERM and a hook that sleeps die with the cluster.
func TestCloseLeavesNothing(t *testing.T) {
	slurmtest.Require(t)
	c := slurmtest.Start(t, slurmtest.Options{Nodes: 1, Leaf: -1})
	id := c.Submit("trap '' TERM; sleep 600 & wait; sleep 600")
	c.WaitJob(id, "RUNNING", 10*time.Second)
	dir := c.Dir
	c.Close()
	c.Close()
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", dir, err)
	}
	procs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, p := range procs {
		if env, err := os.ReadFile(p); err == nil && strings.Contains(string(env), dir+"\x00") {
			t.Errorf("%s still runs", p)
		}
	}
}
