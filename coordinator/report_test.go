package coordinator

import (
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// An agent that never got its answer sends its report again: to the next leader, and when the fault has long been mended.
// It counts once.
func TestReportIsHeardOnceOverLeaders(t *testing.T) {
	s := startSite(t, newPlant("gpu001"), "/heard/", nil)
	// A reset mends it, not a boot: the boot id would tell that the report is of the past.
	f := fellOff
	f.Code, f.Action, f.BootID = 95, checks.ResetGPU, s.bootID("gpu001")
	fault := checks.Report{ID: "fault", Node: "gpu001", BootID: f.BootID, Why: checks.WhyBackground, Verdict: checks.Fail, Findings: []checks.Finding{f}}
	s.enrol("gpu001", true)
	s.agent("gpu001")
	s.report(checks.Report{ID: "prolog", Node: "gpu001", Why: checks.WhyProlog, Suite: checks.Quick, Verdict: checks.Pass, Tested: []string{"inventory"}})
	first := s.until("gpu001", "certified", healthy)
	s.report(fault)
	mended := s.until("gpu001", "certified again", func(n wire.Node) bool { return healthy(n) && n.Certificate.Serial > first.Certificate.Serial })
	s.stop()

	next := startSite(t, s.plant, "/heard/", nil)
	next.report(fault)
	if n := next.until("gpu001", "certified still", healthy); n.Certificate.Serial != mended.Certificate.Serial {
		t.Errorf("certificate %d, want %d: an old report was taken for a new fault", n.Certificate.Serial, mended.Certificate.Serial)
	}
	another := fault
	another.ID = "fault 2"
	next.agent("gpu001")
	next.report(another)
	next.until("gpu001", "certified a third time", func(n wire.Node) bool { return healthy(n) && n.Certificate.Serial > mended.Certificate.Serial })
}

func TestReportsStoredAreBounded(t *testing.T) {
	s := newState()
	var last checks.Report
	for i := range 3 * reportsStored {
		tx := s.begin(env{}, noon)
		last = checks.Report{ID: string(rune('a' + i)), Node: "n"}
		if tx.heard(last) {
			t.Fatalf("report %d was heard before it came", i)
		}
		tx.hear(last)
		tx.publish(uint64(i))
	}
	if got := len(s.reported["n"]); got != reportsStored || !s.begin(env{}, noon).heard(last) {
		t.Errorf("%d ids kept, want %d with the last", got, reportsStored)
	}
}

// A job whose prolog exits 1 without our answer is known all the same, from the prolog's report: it is released as any other.
func TestTurnedAwayWithoutAnAnswer(t *testing.T) {
	job := checks.Job{ID: "7", Restarts: 1}
	hard := fellOff
	soft := checks.Finding{Check: "ecc", Verdict: checks.Fail, Action: checks.Drain}
	report := func(why checks.Why, f checks.Finding) checks.Report {
		return checks.Report{ID: "r", Node: "n", Why: why, Verdict: checks.Fail, Job: &job, Findings: []checks.Finding{f}}
	}
	for _, tt := range []struct {
		name    string
		drained bool
		had     map[string]refusal
		r       checks.Report
		want    map[string]refusal
	}{
		{"hard, on a node that we take", true, nil, report(checks.WhyProlog, hard), map[string]refusal{"7": {Job: "7", Node: "n", Restarts: 1, At: noon}}},
		{"after a release before", true, map[string]refusal{"7": {Job: "7", Node: "m", Releases: 1}}, report(checks.WhyProlog, hard),
			map[string]refusal{"7": {Job: "7", Node: "n", Restarts: 1, Releases: 1, At: noon}}},
		{"told again after its release", true, map[string]refusal{"7": {Job: "7", Restarts: 2, Releases: 1}}, report(checks.WhyProlog, hard),
			map[string]refusal{"7": {Job: "7", Restarts: 2, Releases: 1}}},
		{"held back: the prolog passes", false, nil, report(checks.WhyProlog, hard), nil},
		{"soft: without an answer the prolog passes", true, nil, report(checks.WhyProlog, soft), nil},
		{"an epilog turns nobody away", true, nil, report(checks.WhyEpilog, hard), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newState()
			s.setNode(lifecycle.Node{Name: "n", State: lifecycle.Draining, DrainedByUs: tt.drained})
			for id, r := range tt.had {
				s.refusals[id] = r
			}
			tx := s.begin(env{}, noon)
			tx.turnedAway(tt.r)
			tx.publish(1)
			if len(s.refusals) != len(tt.want) || s.refusals["7"] != tt.want["7"] {
				t.Errorf("refusals %+v, want %+v", s.refusals, tt.want)
			}
		})
	}
}
