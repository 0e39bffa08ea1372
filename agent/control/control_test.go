package control

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/agent/spool"
	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// A link is a client that runs against planes.
type link struct {
	*Client
	agent   *fakeAgent
	spool   *spool.Spool
	results *fakeResults
	gangs   *fakeGangs
	stop    func()
}

func connect(t *testing.T, s *site, planes ...*plane) *link {
	t.Helper()
	var urls []string
	for _, p := range planes {
		urls = append(urls, p.URL)
	}
	c, err := New(Config{URLs: urls, TLS: s.identity("n1"), Log: discard(), Jitter: func(time.Duration) time.Duration { return 5 * time.Millisecond }})
	if err != nil {
		t.Fatal(err)
	}
	sp, err := spool.Open(t.TempDir(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	l := &link{c, &fakeAgent{}, sp, &fakeResults{more: make(chan struct{}, 1)}, &fakeGangs{more: make(chan struct{}, 1)}, nil}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { c.Run(ctx, l.agent, l.spool, l.results, l.gangs); close(done) }()
	l.stop = func() { cancel(); <-done }
	t.Cleanup(l.stop)
	return l
}

func (p *plane) lastBeat() wire.Heartbeat {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.beats) == 0 {
		return wire.Heartbeat{}
	}
	return p.beats[len(p.beats)-1]
}

func TestDesiredStateArrives(t *testing.T) {
	s := newSite(t)
	p := s.plane()
	l := connect(t, s, p)
	p.desired <- wire.Desired{Version: 3, Term: 1, Node: "n1"}
	eventually(t, "connected", l.Connected)
	p.rawLines <- "\n" // keeps the connection warm, says nothing
	p.desired <- wire.Desired{Version: 4, Term: 1, Node: "n1", State: "certified"}
	eventually(t, "two versions", func() bool { return fmt.Sprint(l.agent.versions()) == "[3 4]" })
	eventually(t, "heartbeats", func() bool { return p.lastBeat().BootID == "boot-1" })
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.peers {
		if p.peers[i] != "node:n1" || p.protos[i] != "HTTP/2.0" {
			t.Fatalf("request of %q over %s", p.peers[i], p.protos[i])
		}
	}
}

func TestStopIsAnnounced(t *testing.T) {
	s := newSite(t)
	p := s.plane()
	l := connect(t, s, p)
	eventually(t, "a heartbeat", func() bool { return p.lastBeat().Node == "n1" })
	l.stop()
	if h := p.lastBeat(); !h.Stopping || h.Node != "n1" {
		t.Fatalf("last heartbeat %+v", h)
	}
}

func TestAFollowerNamesItsLeader(t *testing.T) {
	s := newSite(t)
	leader, follower := s.plane(), s.plane()
	follower.set(func(p *plane) { p.leader = leader.URL })
	l := connect(t, s, follower)
	leader.desired <- wire.Desired{Version: 1, Term: 7}
	eventually(t, "desired state of the leader", func() bool { return len(l.agent.versions()) == 1 })
	// The leader dies; the follower leads now.
	leader.set(func(p *plane) { p.leader = follower.URL; close(p.hangUp); p.hangUp = make(chan struct{}) })
	follower.set(func(p *plane) { p.leader = "" })
	follower.desired <- wire.Desired{Version: 2, Term: 8}
	eventually(t, "desired state of the new leader", func() bool { return fmt.Sprint(l.agent.versions()) == "[1 2]" })
}

func TestALeaderThatIsGoneIsLeft(t *testing.T) {
	s := newSite(t)
	first, second := s.plane(), s.plane()
	l := connect(t, s, first, second)
	first.desired <- wire.Desired{Version: 1, Term: 1}
	eventually(t, "the first", func() bool { return len(l.agent.versions()) == 1 })
	first.Listener.Close()
	first.CloseClientConnections()
	second.desired <- wire.Desired{Version: 2, Term: 2}
	eventually(t, "the second", func() bool { return fmt.Sprint(l.agent.versions()) == "[1 2]" })
}

func TestAnOldLeaderIsRefused(t *testing.T) {
	s := newSite(t)
	old, now := s.plane(), s.plane()
	l := connect(t, s, now, old)
	now.desired <- wire.Desired{Version: 10, Term: 5}
	eventually(t, "the leader's", func() bool { return len(l.agent.versions()) == 1 })
	// The leader goes away for a moment, and one that was stopped for long and believes it leads takes the call.
	now.set(func(p *plane) { p.leader = old.URL; close(p.hangUp); p.hangUp = make(chan struct{}) })
	old.desired <- wire.Desired{Version: 99, Term: 4}
	eventually(t, "a call on the old one", func() bool { old.mu.Lock(); defer old.mu.Unlock(); return old.streams > 0 && len(old.desired) == 0 })
	now.set(func(p *plane) { p.leader = "" })
	now.desired <- wire.Desired{Version: 11, Term: 5}
	eventually(t, "the leader again", func() bool { return fmt.Sprint(l.agent.versions()) == "[10 11]" })
}

func TestAdmit(t *testing.T) {
	for _, c := range []struct {
		name    string
		term    int64
		version uint64
		ok      bool
	}{
		{"newer version", 5, 11, true},
		{"the same again, after a reconnect", 5, 10, true},
		{"older version", 5, 9, false},
		{"lower term, however new", 4, 99, false},
		{"higher term", 6, 10, true},
		{"higher term, older version", 6, 9, false},
	} {
		err := Admit(wire.Desired{Term: c.term, Version: c.version}, 5, 10)
		var refused *RefusedError
		if (err == nil) != c.ok || err != nil && !errors.As(err, &refused) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestJunkOnTheStreamEndsIt(t *testing.T) {
	s := newSite(t)
	p := s.plane()
	l := connect(t, s, p)
	p.rawLines <- `{"version": "x"` + "\n"
	eventually(t, "another stream", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.streams > 1 })
	p.desired <- wire.Desired{Version: 1, Term: 1}
	eventually(t, "desired state", func() bool { return len(l.agent.versions()) == 1 })
}

func report(id string, v checks.Verdict) checks.Report {
	return checks.Report{ID: id, Node: "n1", Why: checks.WhyBackground, Verdict: v}
}

func (p *plane) reportIDs() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var ids []string
	for _, r := range p.reports {
		ids = append(ids, r.ID)
	}
	return strings.Join(ids, " ")
}

func TestReportsArriveInOrderAfterAnOutage(t *testing.T) {
	s := newSite(t)
	p := s.plane()
	p.set(func(p *plane) { p.fail = http.StatusServiceUnavailable })
	l := connect(t, s, p)
	for i := range 5 {
		if err := l.spool.Put(report(fmt.Sprintf("f%d", i), checks.Fail)); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(30 * time.Millisecond)
	if got := p.reportIDs(); got != "" || l.spool.Stats().Reports != 5 {
		t.Fatalf("during the outage: %q, %d waiting", got, l.spool.Stats().Reports)
	}
	p.set(func(p *plane) { p.fail = 0 })
	eventually(t, "all reports", func() bool { return p.reportIDs() == "f0 f1 f2 f3 f4" })
	eventually(t, "an empty spool", func() bool { return l.spool.Stats().Reports == 0 })
}

// A report that the control plane will never take must not hold up those behind it.
func TestAPoisonedReportIsDropped(t *testing.T) {
	s := newSite(t)
	p := s.plane()
	p.set(func(p *plane) { p.fail = http.StatusUnprocessableEntity })
	l := connect(t, s, p)
	if err := l.spool.Put(report("bad", checks.Fail)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "dropped", func() bool { return l.spool.Stats().Reports == 0 })
	p.set(func(p *plane) { p.fail = 0 })
	if err := l.spool.Put(report("good", checks.Fail)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the one behind it", func() bool { return p.reportIDs() == "good" })
}

func TestResultsAreSentUntilTheyArrive(t *testing.T) {
	s := newSite(t)
	p := s.plane()
	p.set(func(p *plane) { p.fail = http.StatusBadGateway })
	l := connect(t, s, p)
	l.results.mu.Lock()
	l.results.waits = []wire.EffectResult{{ID: "e1", Outcome: "done"}}
	l.results.mu.Unlock()
	l.results.more <- struct{}{}
	time.Sleep(30 * time.Millisecond)
	p.set(func(p *plane) { p.fail = 0 })
	eventually(t, "the result", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return len(p.results) == 1 && p.results[0].ID == "e1" })
	eventually(t, "acknowledged", func() bool { l.results.mu.Lock(); defer l.results.mu.Unlock(); return len(l.results.waits) == 0 })
}

// How launches stand is told until it is known; what the control plane refuses for good is not told for ever; and after a
// connection everything is told again.
func TestLaunchesAreTold(t *testing.T) {
	s := newSite(t)
	p := s.plane()
	p.set(func(p *plane) { p.fail = http.StatusBadGateway })
	l := connect(t, s, p)
	l.gangs.mu.Lock()
	l.gangs.waits = []wire.GangStatus{{Launch: "12.1", Node: "n1", Phase: wire.GangReady}}
	l.gangs.mu.Unlock()
	l.gangs.more <- struct{}{}
	time.Sleep(30 * time.Millisecond)
	if waits, _ := l.gangs.left(); waits != 1 {
		t.Fatal("a status was dropped while the control plane was away")
	}
	p.set(func(p *plane) { p.fail = 0 })
	eventually(t, "the status", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return len(p.gangs) == 1 && p.gangs[0].Launch == "12.1" })
	eventually(t, "acknowledged", func() bool { waits, _ := l.gangs.left(); return waits == 0 })
	p.desired <- wire.Desired{Version: 1, Term: 1, Node: "n1"}
	eventually(t, "all told again to who answers", func() bool { _, repeats := l.gangs.left(); return repeats > 0 })

	p.set(func(p *plane) { p.fail = http.StatusNotFound })
	l.gangs.mu.Lock()
	l.gangs.waits = []wire.GangStatus{{Launch: "9.1", Node: "n1", Phase: wire.GangExited}}
	l.gangs.mu.Unlock()
	l.gangs.more <- struct{}{}
	eventually(t, "dropped", func() bool { waits, _ := l.gangs.left(); return waits == 0 })
}

func TestPermit(t *testing.T) {
	s := newSite(t)
	p := s.plane()
	p.set(func(p *plane) {
		p.permit = func(a wire.PermitAsk) wire.PermitAnswer {
			return wire.PermitAnswer{Granted: a.OwnGPU, Reason: "assay:Q-1"}
		}
	})
	l := connect(t, s, p)
	ans, err := l.Permit(t.Context(), wire.PermitAsk{Node: "n1", OwnGPU: true})
	if err != nil || !ans.Granted || ans.Reason != "assay:Q-1" {
		t.Fatalf("%+v, %v", ans, err)
	}
	// A control plane that is down for a moment is asked again; one that stays down costs no more than the deadline.
	p.set(func(p *plane) { p.fail = http.StatusServiceUnavailable })
	time.AfterFunc(30*time.Millisecond, func() { p.set(func(p *plane) { p.fail = 0 }) })
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if ans, err := l.Permit(ctx, wire.PermitAsk{}); err != nil || ans.Granted {
		t.Fatalf("after a moment: %+v, %v", ans, err)
	}
	p.set(func(p *plane) { p.fail = http.StatusServiceUnavailable })
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := l.Permit(ctx, wire.PermitAsk{}); err == nil || time.Since(start) > time.Second {
		t.Fatalf("%v after %s", err, time.Since(start))
	}
}

// A control host that joined after the node was enrolled is found when the leader that told of it is gone.
func TestAControlHostThatJoinedLaterIsFound(t *testing.T) {
	s := newSite(t)
	first, second := s.plane(), s.plane()
	l := connect(t, s, first)
	told := make(chan []string, 4)
	l.cfg.Learned = func(urls []string) error { told <- urls; return nil }
	first.desired <- wire.Desired{Version: 1, Term: 1, Node: "n1", Control: []string{first.URL, second.URL + "/", "http://192.0.2.1"}}
	if urls := <-told; fmt.Sprint(urls) != fmt.Sprint([]string{first.URL, second.URL}) {
		t.Errorf("learned %q", urls)
	}
	first.desired <- wire.Desired{Version: 2, Term: 1, Node: "n1", Control: []string{second.URL, first.URL}}
	first.desired <- wire.Desired{Version: 3, Term: 1, Node: "n1"} // of an older leader, which names nobody
	eventually(t, "three versions", func() bool { return len(l.agent.versions()) == 3 })
	if len(told) > 0 {
		t.Errorf("the same hosts are kept again: %q", <-told)
	}
	first.CloseClientConnections()
	first.Close()
	second.desired <- wire.Desired{Version: 4, Term: 2, Node: "n1"}
	eventually(t, "the second's desired state", func() bool { return len(l.agent.versions()) == 4 })
}

func TestAStrangeAuthorityIsNotTrusted(t *testing.T) {
	s, other := newSite(t), newSite(t)
	p := other.plane()
	c, err := New(Config{URLs: []string{p.URL}, TLS: s.identity("n1"), Log: discard()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := c.Permit(ctx, wire.PermitAsk{}); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Fatalf("%v: want the server's certificate refused", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.asks) != 0 {
		t.Fatal("the ask was sent to a server nobody vouches for")
	}
}

func TestBackoffIsBounded(t *testing.T) {
	var mosts []time.Duration
	c := &Client{back: make(chan struct{}), cfg: Config{MaxWait: time.Second, Jitter: func(m time.Duration) time.Duration { mosts = append(mosts, m); return 0 }}}
	b := c.backoff()
	for range 4 {
		b.wait(t.Context())
	}
	b.reset()
	b.wait(t.Context())
	if got := fmt.Sprint(mosts); got != "[250ms 500ms 1s 1s 250ms]" {
		t.Fatalf("bounds %s", got)
	}
	for range 1000 {
		if d := fullJitter(time.Second); d < 0 || d > time.Second {
			t.Fatalf("jitter %s", d)
		}
	}
}

// What an outage has made of a wait must not hold up a fault's report once the stream stands.
func TestAWaitEndsWhenTheControlPlaneIsBack(t *testing.T) {
	var most time.Duration
	c := &Client{back: make(chan struct{}), cfg: Config{MaxWait: time.Minute, Jitter: func(m time.Duration) time.Duration { most = m; return time.Hour }}}
	b := c.backoff()
	b.most = 8 * time.Second
	waited := make(chan bool)
	go func() { waited <- b.wait(t.Context()) }()
	time.Sleep(5 * time.Millisecond)
	c.stands()
	if !<-waited || most != 16*time.Second {
		t.Fatalf("the wait of at most %s ended badly", most)
	}
	// It came back between the try that failed and the wait.
	c.stands()
	if !b.wait(t.Context()) || most != firstWait {
		t.Fatalf("bound %s after the control plane was back", most)
	}
	// One who has been answered since waits for the next time.
	c.stands()
	b.reset()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if b.wait(ctx) {
		t.Fatal("the wait ended for a return of before")
	}
}
