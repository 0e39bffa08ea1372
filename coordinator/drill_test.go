package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/certificate"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// beatOnce says once that the agent lives and holds the node's certificate.
func (s *site) beatOnce(ctx context.Context, node string) {
	ns, err := s.coord.Nodes(ctx, []string{node})
	if err != nil || ns[0].Certificate == nil {
		return
	}
	_ = s.coord.Heartbeat(ctx, wire.Heartbeat{Node: node, BootID: s.bootID(node), Driver: "550.54.15", CertSerial: ns[0].Certificate.Serial})
}

// driller plays the part of an agent in drills: it makes the fault up, and beats.
func (s *site) driller(node string) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	s.t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for pause(ctx, 50*time.Millisecond) {
			s.beatOnce(ctx, node)
			wait, stop := context.WithTimeout(ctx, time.Second)
			d, err := s.coord.Desired(wait, node, 0)
			stop()
			if err != nil {
				continue
			}
			for _, e := range d.Effects {
				if e.Kind != lifecycle.EffectDrill {
					continue
				}
				f := fellOff
				f.Subject.GPUUUID, f.Drill, f.Reason = e.Args["gpu"], e.Args["drill"], "drill "+e.Args["drill"]+": "+f.Reason
				_, _ = s.coord.Report(ctx, checks.Report{
					ID: "drill " + e.ID, Node: node, BootID: s.bootID(node), Why: checks.WhyBackground, Verdict: checks.Fail, Findings: []checks.Finding{f}, Inventory: s.inventory(node),
				})
				_ = s.coord.EffectResult(ctx, wire.EffectResult{ID: e.ID, Node: node, BootID: s.bootID(node), Outcome: "done"})
			}
		}
	}()
}

// drilled waits for the end of a drill that was begun at or after since.
func (s *site) drilled(since time.Time) wire.Drill {
	s.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		d, err := s.coord.Drill(context.Background())
		if err == nil && !d.Ended.IsZero() && !d.Started.Before(since) {
			return d
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("no end: %+v, %v", d, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func stepNames(d wire.Drill) []string {
	var names []string
	for _, s := range d.Steps {
		names = append(names, s.Name)
	}
	return names
}

func (s *site) drillPages() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.pages), func(p string) bool { return !strings.HasPrefix(p, "drill") })
}

// A drill goes the whole way to the pager and back; the node's record is as it was, and Slurm heard nothing.
func TestADrillComesBack(t *testing.T) {
	s := startSite(t, newPlant("gpu001"), "/drill/", nil)
	s.certify("gpu001")
	s.driller("gpu001")
	before := s.until("gpu001", "certified", healthy)
	gpu := 3
	began, err := s.coord.StartDrill(t.Context(), "alice", wire.DrillAsk{Node: "gpu001", GPU: &gpu, Reason: "new pager"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.coord.StartDrill(t.Context(), "bob", wire.DrillAsk{Node: "gpu001"}); err == nil || !strings.Contains(err.Error(), began.ID) {
		t.Errorf("a second drill at once: %v", err)
	}
	d := s.drilled(began.Started)
	names := stepNames(d)
	if d.Outcome != wire.DrillPassed || d.Why != "" || d.LastPassed != d.Ended || d.GPU != 3 || d.By != "alice" {
		t.Fatalf("%+v", d)
	}
	for _, want := range []string{drillOrdered, drillMade, drillDetected, drillDecided, drillPaged, drillReturned} {
		if !slices.Contains(names, want) {
			t.Errorf("steps %v lack %s", names, want)
		}
	}
	decided := d.Steps[slices.Index(names, drillDecided)].Detail
	text := strings.Join(decided, "\n")
	for _, want := range []string{"would: certified -> draining", "would: revoke ", "would: open case ", "would: effect "} {
		if !strings.Contains(text, want) {
			t.Errorf("decided %q lacks %q", decided, want)
		}
	}
	after := s.until("gpu001", "as before", healthy)
	if after.Certificate.Serial != before.Certificate.Serial || !after.Since.Equal(before.Since) || len(s.changes()) != 0 {
		t.Errorf("before %+v\nafter %+v\nSlurm %v", before, after, s.changes())
	}
	if got := s.drillPages(); !slices.Equal(got, []string{"drill gpu001"}) {
		t.Errorf("pages %v", got)
	}
	if cs, err := s.coord.Cases(t.Context(), false); err != nil || len(cs) != 0 {
		t.Errorf("cases %v, %v", cs, err)
	}
	if left, _, err := s.reader().List(t.Context(), keyEffects); err != nil || len(left) != 0 {
		t.Errorf("%d effects left, %v", len(left), err)
	}
	snap := s.coord.snapshot()
	if snap.DrillFailed || snap.DrillPassed.IsZero() {
		t.Errorf("metrics %+v", snap)
	}
}

// Without an agent that answers nothing comes back: the drill fails at its deadline, a person is paged, the metric stands. A
// new leader knows of it.
func TestADrillThatDoesNotComeBackFails(t *testing.T) {
	p := newPlant("gpu001")
	s := startSite(t, p, "/drillfail/", nil)
	s.certify("gpu001")
	began, err := s.coord.StartDrill(t.Context(), "alice", wire.DrillAsk{Node: "gpu001", Within: policy.Duration(1500 * time.Millisecond)})
	if err != nil {
		t.Fatal(err)
	}
	d := s.drilled(began.Started)
	if d.Outcome != wire.DrillFailed || !strings.Contains(d.Why, `"made" did not come`) && !strings.Contains(d.Why, "no answer") || !d.LastPassed.IsZero() {
		t.Fatalf("%+v", d)
	}
	s.until("gpu001", "well", healthy)
	deadline := time.Now().Add(10 * time.Second)
	for !slices.Contains(s.drillPages(), "drill_failed gpu001") {
		if time.Now().After(deadline) {
			t.Fatalf("pages %v", s.drillPages())
		}
		time.Sleep(20 * time.Millisecond)
	}
	if !s.coord.snapshot().DrillFailed {
		t.Error("the metric does not tell")
	}
	s.stop()
	next := startSite(t, p, "/drillfail/", nil)
	next.try("read", func(ctx context.Context) error {
		got, err := next.coord.Drill(ctx)
		if err == nil && (got.ID != d.ID || got.Outcome != wire.DrillFailed) {
			return fmt.Errorf("after a restart: %+v", got)
		}
		return err
	})
}

// With the risk accepted the node is really drained, with a reason that says what for, and comes back through a screen.
func TestADrillThatDrains(t *testing.T) {
	s := startSite(t, newPlant("gpu001"), "/drilldrain/", nil)
	s.certify("gpu001")
	s.agentOnlyScreens("gpu001")
	s.driller("gpu001")
	before := s.until("gpu001", "certified", healthy)
	began, err := s.coord.StartDrill(t.Context(), "alice", wire.DrillAsk{Node: "gpu001", AcceptRisk: wire.RiskDrain, Within: policy.Duration(25 * time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	d := s.drilled(began.Started)
	if d.Outcome != wire.DrillPassed || !slices.Contains(stepNames(d), drillDrained) || !slices.Contains(stepNames(d), drillResumed) {
		t.Fatalf("%+v", d)
	}
	if got := s.changes(); !slices.Equal(got, []string{"drain gpu001", "resume gpu001"}) {
		t.Errorf("Slurm saw %v", got)
	}
	drained := d.Steps[slices.Index(stepNames(d), drillDrained)]
	if !strings.Contains(strings.Join(drained.Detail, " "), "drill "+d.ID+" of alice") {
		t.Errorf("the reason does not tell of the drill: %v", drained.Detail)
	}
	after := s.until("gpu001", "back", healthy)
	if after.Certificate.Serial <= before.Certificate.Serial {
		t.Error("it came back without a fresh certificate")
	}
}

// agentOnlyScreens answers screens and evidence, and leaves drills to the driller.
func (s *site) agentOnlyScreens(node string) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	s.t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for pause(ctx, 50*time.Millisecond) {
			wait, stop := context.WithTimeout(ctx, time.Second)
			d, err := s.coord.Desired(wait, node, 0)
			stop()
			if err != nil {
				continue
			}
			for _, e := range d.Effects {
				if e.Kind != lifecycle.EffectDrill {
					s.carry(ctx, node, e)
				}
			}
		}
	}()
}

// Drills that policy asks for go round the fleet; a fleet with no node to hold one on has a failed drill.
func TestDrillsInTurn(t *testing.T) {
	now := noon
	s := newState()
	s.counters.Time = now
	p := policy.Default()
	p.Mode, p.Drill.Every = policy.Act, policy.Duration(24*time.Hour)
	s.policy = p
	for _, name := range []string{"gpu001", "gpu002", "gpu003"} {
		s.setNode(certifiedNode(name, now))
	}
	lost := certifiedNode("gpu002", now)
	lost.Lost = true
	s.setNode(lost)
	l := &lead{st: s}
	var nodes []string
	for day := range 4 {
		at := now.Add(time.Duration(day) * 25 * time.Hour)
		for name, n := range s.nodes {
			n.Certificate.Expires = at.Add(time.Hour)
			s.nodes[name] = n
		}
		work := l.drillWork(at)
		if len(work) != 1 {
			t.Fatalf("day %d: %d pieces of work", day, len(work))
		}
		x := s.begin(drillEnv(), at)
		if err := work[0](x); err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, x.drill.Node)
		x.drillOver("")
		x.publish(uint64(day + 1))
		if again := l.drillWork(at.Add(time.Hour)); len(again) != 0 {
			t.Errorf("day %d: another drill within the day", day)
		}
	}
	if want := []string{"gpu001", "gpu003", "gpu001", "gpu003"}; !slices.Equal(nodes, want) {
		t.Errorf("drills on %v, want %v", nodes, want)
	}
	clear(s.nodes)
	work := l.drillWork(now.Add(200 * time.Hour))
	x := s.begin(drillEnv(), now.Add(200*time.Hour))
	if err := work[0](x); err != nil {
		t.Fatal(err)
	}
	if x.drill.Outcome != wire.DrillFailed || !strings.Contains(x.drill.Why, "no node is certified") {
		t.Errorf("%+v", x.drill)
	}
}

// What a node in trouble would show is no drill.
func TestADrillNeedsANodeInService(t *testing.T) {
	now := noon
	for name, change := range map[string]func(*lifecycle.Node){
		"it is draining":       func(n *lifecycle.Node) { n.State = lifecycle.Draining },
		"it is lost":           func(n *lifecycle.Node) { n.Lost = true },
		"the hold of":          func(n *lifecycle.Node) { n.Holds = []lifecycle.Hold{{Owner: "alice"}} },
		"case Q-1 is open":     func(n *lifecycle.Node) { n.Case = &lifecycle.Case{ID: "Q-1"} },
		"no valid certificate": func(n *lifecycle.Node) { n.Certificate = nil },
		"a job runs":           func(n *lifecycle.Node) { n.Jobs = []lifecycle.JobRef{{ID: "7"}} },
		"no such GPU":          func(n *lifecycle.Node) { n.Inventory.GPUs = nil },
	} {
		s := newState()
		n := certifiedNode("gpu001", now)
		change(&n)
		s.setNode(n)
		x := s.begin(drillEnv(), now)
		_, err := x.startDrill("alice", wire.DrillAsk{Node: "gpu001", AcceptRisk: wire.RiskDrain})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if !x.empty() {
			t.Errorf("%s: a refused drill leaves something", name)
		}
	}
	x := newState().begin(drillEnv(), now)
	var unknown *UnknownNodeError
	if _, err := x.startDrill("alice", wire.DrillAsk{Node: "gpu009"}); !errors.As(err, &unknown) {
		t.Errorf("an unknown node: %v", err)
	}
}

func drillEnv() env {
	return env{newID: func() string { return "Q-0001" }, sign: unsigned}
}

func certifiedNode(name string, now time.Time) lifecycle.Node {
	inv := checks.Inventory{Node: name, BootID: "boot", GPUs: []checks.GPU{{Node: name, UUID: "GPU-" + name + "-0"}}}
	return lifecycle.Node{
		Name: name, State: lifecycle.Certified, Since: now, BootID: "boot", Inventory: inv, Expected: inv,
		Certificate: &certificate.Certificate{Serial: 1, Node: name, Level: checks.Quick, IssuedAt: now, Expires: now.Add(time.Hour), GraceUntil: now.Add(2 * time.Hour)},
	}
}
