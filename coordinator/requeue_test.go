package coordinator

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/coordinator/wire"
	"github.com/assay-gpu/assay/scheduler"
	"github.com/assay-gpu/assay/scheduler/rules"
)

func (s *site) order(verb string, id int64) error {
	_, err := s.coord.OrderJob(context.Background(), "alice", verb, id, wire.JobVerb{Reason: "once more"})
	return err
}

// A job that runs is ended everywhere and starts again under its number, though it did not say --requeue; so does one that
// has ended. One that waits, or is being ended, is told so.
func TestAJobIsRequeuedByHand(t *testing.T) {
	s := gangSite(t, "gpu001", "gpu002")
	playRanks(s, []string{"gpu001", "gpu002"}, patient)
	j := s.submit(wire.JobAsk{Name: "train", Gang: scheduler.Gang{Nodes: 2, Limit: time.Hour}})
	s.await(j.ID, "its start", inState(jobRunning))
	behind := s.submit(wire.JobAsk{Name: "waits", Gang: scheduler.Gang{Nodes: 2, Limit: time.Hour}})
	if err := s.order("requeue", behind.ID); err == nil || !strings.Contains(err.Error(), "waits already") {
		t.Errorf("requeue of a job that waits: %v", err)
	}
	if err := s.order("requeue", j.ID); err != nil {
		t.Fatal(err)
	}
	again := s.await(j.ID, "its second start", func(j wire.Job) bool { return j.State == jobRunning && j.Launches == 2 })
	if again.Nodes != "gpu[001-002]" {
		t.Errorf("runs on %s", again.Nodes)
	}
	if err := s.order("cancel", j.ID); err != nil {
		t.Fatal(err)
	}
	s.await(j.ID, "its end", inState("CANCELLED"))
	s.await(behind.ID, "its turn", inState(jobRunning))
	if err := s.order("requeue", j.ID); err != nil {
		t.Fatal(err)
	}
	w := s.await(j.ID, "a reason to wait", func(j wire.Job) bool { return j.State == jobPending && j.Code != "" })
	if !w.Ended.IsZero() || w.Nodes != "" || w.Exit != 0 {
		t.Errorf("a job that waits again: %+v", w)
	}
	if err := s.order("cancel", behind.ID); err != nil {
		t.Fatal(err)
	}
	s.await(j.ID, "its third start", func(j wire.Job) bool { return j.State == jobRunning && j.Launches == 3 })
}

// What was ended for a requeue goes back into the queue under the next leader too, and goes through the door like any other.
func TestARequeueOutlivesTheLeader(t *testing.T) {
	s := gangSite(t, "gpu001")
	playRanks(s, []string{"gpu001"}, func(o wire.GangOrder, node string) []wire.GangStatus {
		if o.Phase == wire.GangStop {
			return nil
		}
		return patient(o, node)
	})
	j := s.submit(wire.JobAsk{Name: "train", Gang: scheduler.Gang{Nodes: 1, Limit: time.Hour}})
	s.await(j.ID, "its start", inState(jobRunning))
	if err := s.order("requeue", j.ID); err != nil {
		t.Fatal(err)
	}
	if err := s.order("requeue", j.ID); err == nil || !strings.Contains(err.Error(), "being ended") {
		t.Errorf("a second requeue: %v", err)
	}
	s.stop()

	next := startSiteWith(t, s.plant, t.Name()+"/", nil, func(c *Config) { c.Slurm = nil })
	next.beat("gpu001")
	playRanks(next, []string{"gpu001"}, obedient)
	next.await(j.ID, "its second run", func(j wire.Job) bool { return j.State == "COMPLETED" && j.Launches == 2 })
	next.rules(rules.File{QOS: []rules.QOS{{Name: "normal", Limits: rules.Limits{MaxSubmit: ptr(0)}}}})
	if err := next.order("requeue", j.ID); err == nil || !strings.Contains(err.Error(), "lets a user have 0 jobs") {
		t.Errorf("past a limit on submitted jobs: %v", err)
	}
}
