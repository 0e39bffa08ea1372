package coordinator

import (
	"sync"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/coordinator/wire"
	"github.com/assay-gpu/assay/scheduler"
)

// A gang that loses a node has the first claim on another, from the moment its ranks are being ended: a job that comes
// meanwhile and would fit there waits. Those that stay keep their rank.
func TestAGangThatLostANodeGoesFirst(t *testing.T) {
	s := gangSite(t, "gpu001", "gpu002", "gpu003")
	var mu sync.Mutex
	slow := true
	playRanks(s, []string{"gpu001", "gpu002", "gpu003"}, func(o wire.GangOrder, node string) []wire.GangStatus {
		mu.Lock()
		defer mu.Unlock()
		if o.Phase == wire.GangStop && slow {
			return nil // its ranks take their time
		}
		return patient(o, node)
	})
	j := s.submit(wire.JobAsk{Name: "train", Requeue: true, Gang: scheduler.Gang{Nodes: 2, Limit: time.Hour}})
	run := s.await(j.ID, "its start", inState(jobRunning))
	if run.Nodes != "gpu[001-002]" {
		t.Fatalf("runs on %s", run.Nodes)
	}
	s.report(checks.Report{ID: "fault", Node: "gpu001", Why: checks.WhyBackground, Verdict: checks.Fail, Findings: []checks.Finding{{
		Check: "xid", Code: 79, Verdict: checks.Fail, Hard: true, Action: checks.Reboot, Reason: "fell off the bus", Subject: checks.Subject{Kind: checks.KindGPU, Node: "gpu001", GPUUUID: "GPU-gpu001-3"},
	}}})
	if err := s.coord.GangStatus(t.Context(), wire.GangStatus{Launch: run.Launch, Node: "gpu001", Phase: wire.GangExited, Lost: true, Reason: "GPU 3 fell off the bus"}); err != nil {
		t.Fatal(err)
	}
	s.await(j.ID, "its end", inState(jobEnding))
	other := s.submit(wire.JobAsk{Name: "quick", Gang: scheduler.Gang{Nodes: 1, Limit: time.Minute}})
	s.await(other.ID, "a reason", func(j wire.Job) bool { return j.State == jobPending && j.Reason != "" })
	if err := s.coord.GangStatus(t.Context(), wire.GangStatus{Launch: run.Launch, Node: "gpu002", Phase: wire.GangExited}); err != nil {
		t.Fatal(err)
	}
	again := s.await(j.ID, "its second start", func(j wire.Job) bool { return j.State == jobRunning && j.Launches == 2 })
	if again.Nodes != "gpu[003,002]" && again.Nodes != "gpu003,gpu002" {
		t.Errorf("runs on %s, want gpu003 in the place of gpu001, and gpu002 in its own", again.Nodes)
	}
	if o, err := s.coord.Job(t.Context(), other.ID); err != nil || o.State != jobPending {
		t.Errorf("the job that came meanwhile is %s, %v: want it to wait", o.State, err)
	}
	mu.Lock()
	slow = false
	mu.Unlock()
}
