package e2e

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/assay-gpu/assay/coordinator/slurm/slurmtest"
)

// (i) The bypass file lets every hook pass with agent and assayd dead, and also where a live agent would refuse or an
// agent hangs.
func TestBypassFile(t *testing.T) {
	s := start(t, byProlog(options{cluster: slurmtest.Options{HealthCheckInterval: 1}}))
	s.adopt()
	time.Sleep(1100 * time.Millisecond)
	// Without a bypass the prolog on gpu007 would refuse; an agent that hangs would hold up the hooks of gpu008 for 19 s.
	s.set("gpu007", 0, map[string]string{"remap_failed": "true"})
	s.Agent("gpu008").Signal(syscall.SIGSTOP)
	for _, n := range s.cluster.Nodes[:6] {
		s.Agent(n).Kill(syscall.SIGKILL)
	}
	s.Control("assayd").Kill(syscall.SIGKILL)

	expires := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	text := "owner: alice\nreason: agent upgrade, change 4711\nexpires: " + expires + "\n"
	if err := os.WriteFile(filepath.Join(s.etc, "bypass"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	refused := s.hookCount("gpu007", "prolog", "refused_hard")
	begun := time.Now()
	s.run("true", "-N8", "--exclusive", "--gres=gpu:8")
	for _, n := range s.cluster.Nodes {
		s.cluster.WaitNode(n, "idle", limit, idle)
	}
	if took := time.Since(begun); took > 15*time.Second {
		t.Errorf("the job took %v: its hooks waited for an agent", took)
	}
	if got := s.hookCount("gpu007", "prolog", "refused_hard"); got != refused {
		t.Error("the prolog on gpu007 asked its agent")
	}
	s.Agent("gpu007").Kill(syscall.SIGKILL)
	s.Agent("gpu008").Kill(syscall.SIGKILL)

	// The same by hand, on every node: each hook says who let it pass, and until when.
	for _, n := range s.cluster.Nodes {
		for _, hook := range []string{"prolog", "epilog", "healthcheck"} {
			exit, said := s.callHook(hook, n)
			if want := "assay: bypassed until " + expires + " by alice: agent upgrade, change 4711\n"; exit != 0 || said != want {
				t.Errorf("%s on %s: exit %d, %q; want 0, %q", hook, n, exit, said, want)
			}
		}
		log := s.cluster.SlurmdLog(n)
		for _, bad := range []string{"prolog failed", "epilog failed", "health_check failed", "health_check didn't run"} {
			if strings.Contains(log, bad) {
				t.Errorf("slurmd of %s: %s:\n%s", n, bad, log)
			}
		}
	}
	if log := s.cluster.SlurmctldLog(); strings.Contains(log, "Prolog launch failure") || strings.Contains(log, "Prolog error") || strings.Contains(log, "Epilog error") {
		t.Errorf("slurmctld heard of a failed hook:\n%s", log)
	}
}

// callHook runs a hook as slurmd of the node does, and returns its exit status and what it wrote to standard error.
func (s *site) callHook(hook, node string) (exit int, said string) {
	s.t.Helper()
	cmd := exec.Command(s.hook(hook))
	cmd.Env = []string{"SLURMD_NODENAME=" + node, "SLURM_JOB_ID=1", "SLURM_JOB_GPUS=0,1,2,3,4,5,6,7"}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	err := cmd.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		s.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), errs.String()
}
