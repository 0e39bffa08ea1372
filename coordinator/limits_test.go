package coordinator

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/slurm"
	"github.com/assay-gpu/assay/coordinator/store"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// certify enrols a node and certifies it by a passing prolog.
func (s *site) certify(node string) wire.Node {
	s.t.Helper()
	s.enrol(node, true)
	s.report(checks.Report{ID: "prolog " + node, Node: node, Why: checks.WhyProlog, Suite: checks.Quick, Verdict: checks.Pass, Tested: []string{"inventory"}})
	return s.until(node, "certified", healthy)
}

// A switch board that dies tells of a hundred links at once: the node is drained all the same.
func TestReportOfManyFaults(t *testing.T) {
	s := startSite(t, newPlant("gpu001"), "/many/", nil)
	s.certify("gpu001")
	r := checks.Report{ID: "flood", Node: "gpu001", Why: checks.WhyBackground, Verdict: checks.Fail}
	for i := range 200 {
		f := fellOff
		f.Code, f.BootID = 1000+i, s.bootID("gpu001")
		r.Findings = append(r.Findings, f)
	}
	s.report(r)
	n := s.until("gpu001", "out", func(n wire.Node) bool { return n.Certificate == nil && n.Case != "" })
	c, err := s.coord.Case(context.Background(), n.Case)
	if err != nil {
		t.Fatal(err)
	}
	said := false
	for _, h := range c.Timeline {
		said = said || strings.HasPrefix(h.Event, "more_faults")
	}
	h, err := s.coord.NodeHistory(context.Background(), "gpu001")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range h {
		said = said || e.Event == fmt.Sprintf("more_faults count=%d", 200-faultsMost)
	}
	if !said {
		t.Error("history does not say that there were more faults")
	}
}

// A driver that changed without a reboot ends the certificate and a passing prolog in the same report earns the next.
func TestCertificateEndsAndIsEarnedInOneReport(t *testing.T) {
	s := startSite(t, newPlant("gpu001"), "/driver/", nil)
	first := s.certify("gpu001")
	r := checks.Report{ID: "second", Node: "gpu001", BootID: s.bootID("gpu001"), Why: checks.WhyProlog, Suite: checks.Quick, Verdict: checks.Pass,
		Tested: []string{"inventory"}, Inventory: s.inventory("gpu001")}
	r.Inventory.Driver = "575.10"
	if _, err := s.coord.Report(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	n := s.until("gpu001", "certified anew", func(n wire.Node) bool { return n.Certificate != nil && n.Certificate.Serial > first.Certificate.Serial })
	if n.Certificate.Driver != "575.10" {
		t.Errorf("certificate is for driver %s", n.Certificate.Driver)
	}
	if e, err := s.reader().Get(context.Background(), keyCerts+"gpu001"); err != nil || e.ModRevision == 0 {
		t.Errorf("certificate in etcd: %v, %v", e.ModRevision, err)
	}
}

func TestLastOfEach(t *testing.T) {
	got := lastOfEach([]store.Op{{Key: "a", Delete: true}, {Key: "b"}, {Key: "a", Value: []byte("x")}})
	if len(got) != 2 || got[0].Key != "b" || got[1].Key != "a" || got[1].Delete {
		t.Errorf("got %+v, want b and then a's put", got)
	}
}

// A permit needs a drain that stands: where Slurm refuses ours, the prolog may not exit 1.
func TestPermitNeedsAStandingDrain(t *testing.T) {
	p := newPlant("gpu001")
	p.refuse = &slurm.RefusedError{Verb: "drain", Target: "gpu001", Msg: "Invalid user"}
	s := startSite(t, p, "/permit/", nil)
	s.certify("gpu001")
	r := checks.Report{ID: "bad", Node: "gpu001", BootID: s.bootID("gpu001"), Why: checks.WhyProlog, Suite: checks.Quick, Verdict: checks.Fail,
		Findings: []checks.Finding{fellOff}, Inventory: s.inventory("gpu001"), Job: &checks.Job{ID: "7"}}
	a, err := s.coord.Permit(context.Background(), wire.PermitAsk{Node: "gpu001", BootID: r.BootID, Job: *r.Job, Report: r})
	if err == nil && a.Granted {
		t.Errorf("granted with %q, and Slurm saw %v", a.Reason, s.changes())
	}
}

// More held jobs and old refusals than one transaction takes are worked off over several reads.
func TestManyRefusals(t *testing.T) {
	s := startSite(t, newPlant("gpu001"), "/refusals/", nil)
	s.certify("gpu001")
	l := s.coord.lead.Load()
	for i := range 300 {
		err := l.do(context.Background(), func(t *tx) error {
			at := t.now
			if i >= 100 {
				at = at.Add(-2 * refusalsKept)
			}
			id := fmt.Sprint(i)
			t.refusals[id] = &refusal{Job: id, Node: "gpu001", At: at}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	s.mu.Lock()
	for i := range 100 {
		s.jobs = append(s.jobs, slurm.Job{ID: fmt.Sprint(i), State: "PENDING", Reason: "launch failed requeued held", Restarts: 1})
	}
	s.mu.Unlock()
	deadline := time.Now().Add(20 * time.Second)
	for {
		released := 0
		for _, c := range s.changes() {
			if strings.HasPrefix(c, "release ") {
				released++
			}
		}
		l.mu.RLock()
		left := len(l.st.refusals)
		l.mu.RUnlock()
		if released == 100 && left == 100 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of 100 released, %d of 300 refusals left, want 100", released, left)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Closed cases are kept for a time and up to a number; an open one for ever.
func TestOldCases(t *testing.T) {
	cases := map[string]wire.Case{
		"Q-OPEN": {ID: "Q-OPEN", Opened: noon.Add(-9000 * time.Hour)},
		"Q-OLD":  {ID: "Q-OLD", Closed: noon.Add(-casesKept - time.Hour)},
		"Q-NEW":  {ID: "Q-NEW", Closed: noon.Add(-time.Hour)},
	}
	if got := oldCases(cases, noon); len(got) != 1 || got[0] != "Q-OLD" {
		t.Errorf("old cases %v, want Q-OLD", got)
	}
	for i := range casesKeptMost + 5 {
		id := fmt.Sprintf("Q-%05d", i)
		cases[id] = wire.Case{ID: id, Closed: noon.Add(time.Duration(i-10_000) * time.Second)}
	}
	got := oldCases(cases, noon)
	if len(got) != 7 || got[0] != "Q-OLD" || got[1] != "Q-00000" {
		t.Errorf("old cases %v, want Q-OLD and the six oldest of the rest", got)
	}
}

// A power cycle that an earlier leader was about to order is not ordered again while the node may still be booting from it,
// and ordered again when it cannot be: that leader may have died before it asked.
func TestPowerCycleOfALeaderThatDied(t *testing.T) {
	created := noon
	for _, tt := range []struct {
		name string
		mark string
		at   time.Duration // after it was recorded; its time is 45 minutes
		want bool
	}{
		{"not ordered yet", "", 0, true},
		{"just now", noon.Format(time.RFC3339), time.Second, false},
		{"a third of its time", noon.Format(time.RFC3339), 15 * time.Minute, false},
		{"more than a third of its time", noon.Format(time.RFC3339), 15*time.Minute + time.Second, true},
		{"again, a while ago", noon.Add(16 * time.Minute).Format(time.RFC3339), 30 * time.Minute, false},
		{"its time is over", noon.Format(time.RFC3339), 45 * time.Minute, false},
		{"at no time that can be read", "before", 30 * time.Minute, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := pending{Effect: wire.Effect{Kind: lifecycle.EffectPowerCycle, Created: created, Deadline: created.Add(45 * time.Minute)}}
			if tt.mark != "" {
				e.Args = map[string]string{argOrdered: tt.mark}
			}
			if got := mayOrder(e, noon.Add(tt.at)); got != tt.want {
				t.Errorf("may order: %v, want %v", got, tt.want)
			}
		})
	}
}

// An order is marked in the store before it is given, and given once.
func TestPowerCycleIsMarkedFirst(t *testing.T) {
	s := startSite(t, newPlant("gpu001"), "/power/", nil)
	s.certify("gpu001")
	l := s.coord.lead.Load()
	marks := make(chan string, 8)
	l.cfg.Power = powerFunc(func() { // nobody looks at it before there is an effect
		for _, e := range l.pendingOf(lifecycle.EffectPowerCycle) {
			marks <- e.Args[argOrdered]
		}
	})
	s.try("make a power cycle due", func(ctx context.Context) error {
		return l.do(ctx, func(t *tx) error {
			n, _ := t.node("gpu001")
			n.State, n.Case = lifecycle.Remediating, &lifecycle.Case{ID: "Q-AAAA", Rung: lifecycle.RungPowerCycle}
			t.nodes[n.Name] = n
			t.effect(lifecycle.Effect{Kind: lifecycle.EffectPowerCycle, Node: n.Name, Deadline: t.now.Add(time.Hour)})
			return nil
		})
	})
	if mark := <-marks; mark == "" {
		t.Error("ordered, and the store does not know it")
	}
	s.until("gpu001", "without a pending order", func(n wire.Node) bool { return len(n.Effects) == 0 })
	if len(marks) > 0 {
		t.Errorf("ordered %d times", 1+len(marks))
	}
}

type powerFunc func()

func (f powerFunc) Cycle(context.Context, string) error { f(); return nil }
