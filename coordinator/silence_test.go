package coordinator

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// beatAll sends heartbeats for the nodes every 100 ms until the returned function is called; names in quiet are left out.
func (s *site) beatAll(nodes []string, quiet map[string]bool) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for pause(ctx, 100*time.Millisecond) {
			for _, n := range nodes {
				if !quiet[n] {
					_ = s.coord.Heartbeat(ctx, wire.Heartbeat{Node: n, BootID: s.bootID(n)})
				}
			}
		}
	}()
	return func() { cancel(); <-done }
}

// certifiedFleet enrols nodes and certifies them, with a heartbeat timeout short enough for a test.
func certifiedFleet(t *testing.T, prefix string, count int) (*site, []string) {
	t.Helper()
	var nodes []string
	for i := range count {
		nodes = append(nodes, fmt.Sprintf("gpu%03d", i+1))
	}
	s := startSite(t, newPlant(nodes...), prefix, nil)
	s.try("policy", func(ctx context.Context) error {
		p, err := s.coord.Policy(ctx)
		if err != nil {
			return err
		}
		p.Lifecycle.HeartbeatTimeout = policy.Duration(time.Second)
		_, err = s.coord.SetPolicy(ctx, "test", p)
		return err
	})
	for _, n := range nodes {
		s.enrol(n, true)
		s.report(checks.Report{ID: "prolog " + n, Node: n, Why: checks.WhyProlog, Suite: checks.Quick, Verdict: checks.Pass, Tested: []string{"inventory"}})
	}
	return s, nodes
}

func TestOneSilentNodeIsLostAndComesBack(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for heartbeats to be missed")
	}
	s, nodes := certifiedFleet(t, "/silent/", 8)
	stop := s.beatAll(nodes, map[string]bool{"gpu004": true})
	n := s.until("gpu004", "lost", func(n wire.Node) bool { return n.Lost })
	if n.State != "certified" || n.Certificate == nil {
		t.Errorf("lost node is %s, certificate %v: silence revokes nothing", n.State, n.Certificate)
	}
	for _, other := range nodes {
		if o := s.until(other, "known", func(wire.Node) bool { return true }); o.Lost && other != "gpu004" {
			t.Errorf("%s is lost and was not silent", other)
		}
	}
	stop()
	defer s.beatAll(nodes, nil)()
	s.until("gpu004", "back", healthy)
}

func TestManySilentAtOnceIsOnePageAndNoAction(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for heartbeats to be missed")
	}
	s, nodes := certifiedFleet(t, "/mass/", 8)
	defer s.beatAll(nodes, map[string]bool{"gpu001": true, "gpu002": true, "gpu003": true, "gpu004": true})()
	deadline := time.Now().Add(10 * time.Second)
	for len(s.pagesSent()) == 0 && time.Now().Before(deadline) {
		time.Sleep(20 * time.Millisecond)
	}
	time.Sleep(2500 * time.Millisecond) // two more looks at the clock
	if pages := s.pagesSent(); len(pages) != 1 || pages[0] != "mass_silence " {
		t.Errorf("pages %q, want one of mass silence", pages)
	}
	for _, n := range nodes {
		if got := s.until(n, "known", func(wire.Node) bool { return true }); got.Lost || got.State != "certified" {
			t.Errorf("%s is %s, lost %v: nothing may be done", n, got.State, got.Lost)
		}
	}
	if got := s.changes(); len(got) != 0 {
		t.Errorf("Slurm saw %v", got)
	}
}

func (p *plant) pagesSent() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.pages...)
}
