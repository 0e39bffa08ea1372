package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/agent/sim"
	"github.com/assay-gpu/assay/coordinator/slurm"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// (b) XID 79 arrives while a job runs: the certificate is gone, the node is drained with our reason, the job goes on as the
// policy says, the node is rebooted, screened and resumed, and the next job runs on it.
func TestGPUFallsOffTheBusUnderAJob(t *testing.T) {
	s := start(t, options{})
	s.adopt()
	first := s.awaitNode("gpu003", "healthy", healthy)
	job := s.submit("sleep 8", "-w", "gpu003", "--exclusive", "--gres=gpu:8")
	s.cluster.WaitJob(job, "RUNNING", limit)

	if err := sim.FallOffBus(s.Hardware("gpu003"), 3); err != nil {
		t.Fatal(err)
	}
	out := s.awaitNode("gpu003", "draining", state("draining"))
	if out.Certificate != nil {
		t.Errorf("draining, and certificate %d still stands", out.Certificate.Serial)
	}
	drained := s.cluster.WaitNode("gpu003", "drained with our reason", limit, slurm.Node.Drained)
	if !strings.HasPrefix(drained.Reason, "assay:"+out.Case+" ") || !strings.Contains(drained.Reason, "79") || !strings.Contains(drained.Reason, "GPU 3") {
		t.Errorf("reason %q; want our case, the XID and the GPU", drained.Reason)
	}
	if got := s.cluster.Job(job); got != "RUNNING" {
		t.Errorf("job is %s; the policy says wait", got)
	}

	s.cluster.WaitJob(job, "COMPLETED", limit)
	back := s.awaitNode("gpu003", "healthy again", func(n wire.Node) bool { return healthy(n) && n.Certificate.Serial > first.Certificate.Serial })
	if back.BootID == first.BootID {
		t.Error("certified again without a reboot")
	}
	s.cluster.WaitNode("gpu003", "in service", limit, func(n slurm.Node) bool { return !n.Drained() && n.State == "IDLE" && !n.Has(slurm.FlagNotResponding) })
	s.run("true", "-w", "gpu003", "--exclusive", "--gres=gpu:8")

	h := s.hist("gpu003")
	var path []string
	for _, e := range h {
		if e.From != e.To && e.Case == out.Case {
			path = append(path, e.To)
		}
	}
	if want := []string{"draining", "quarantined", "remediating", "screening", "certified"}; !slices.Equal(path, want) {
		t.Errorf("path %v, want %v\n%s", path, want, s.text("gpu003"))
	}
	c := s.caseOf(out.Case)
	if c.Closed.IsZero() || len(c.Evidence) == 0 || c.Cause != "xid 79" {
		t.Errorf("case %+v; want it closed, of xid 79, with evidence from before the reboot", c)
	}
}

// (d) An administrator's own drain is never resumed by us, nor one whose reason he has overwritten.
func TestPeopleOwnTheirDrains(t *testing.T) {
	s := start(t, options{})
	s.adopt()

	// His own drain, on a node that assay finds nothing wrong with.
	s.cluster.Run("scontrol", "update", "nodename=gpu001", "state=drain", "reason=fan tray swap, Ann")
	s.awaitNode("gpu001", "held", func(n wire.Node) bool { return len(n.Holds) == 1 })

	// Ours, whose reason he overwrites while the case is open.
	if err := sim.FallOffBus(s.Hardware("gpu002"), 0); err != nil {
		t.Fatal(err)
	}
	s.cluster.WaitNode("gpu002", "drained by us", limit, func(n slurm.Node) bool { return strings.HasPrefix(n.Reason, "assay:") })
	s.cluster.Run("scontrol", "update", "nodename=gpu002", "reason=leave it to me, Ann")
	s.awaitNode("gpu002", "held", func(n wire.Node) bool { return len(n.Holds) == 1 })

	// A third one comes all the way back, so there was time for the other two.
	before := s.awaitNode("gpu003", "healthy", healthy)
	if err := sim.FallOffBus(s.Hardware("gpu003"), 0); err != nil {
		t.Fatal(err)
	}
	s.awaitNode("gpu003", "healthy again", func(n wire.Node) bool { return healthy(n) && n.Certificate.Serial > before.Certificate.Serial })
	s.cluster.WaitNode("gpu003", "in service", limit, func(n slurm.Node) bool { return !n.Drained() })

	for node, reason := range map[string]string{"gpu001": "fan tray swap, Ann", "gpu002": "leave it to me, Ann"} {
		if n := s.cluster.Node(node); !n.Drained() || n.Reason != reason {
			t.Errorf("%s is %s, reason %q; want it drained with %q", node, slurm.StateText(n), n.Reason, reason)
		}
	}
	// When he resumes his own, his hold ends and the node is in service as he wants it.
	s.cluster.Run("scontrol", "update", "nodename=gpu001", "state=resume")
	s.awaitNode("gpu001", "without hold", func(n wire.Node) bool { return len(n.Holds) == 0 && healthy(n) })
}
