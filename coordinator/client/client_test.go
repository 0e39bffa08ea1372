package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/api"
	"github.com/assay-gpu/assay/coordinator/api/apitest"
	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/client"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// serve opens a plane's API on TCP and returns its URL. Planes of one test share the first one's authority.
func serve(t *testing.T, p *apitest.Plane) (string, *api.Server) {
	t.Helper()
	s := api.New(p.Backend(), api.NewMetrics("test", p.Snapshot), slog.New(slog.DiscardHandler))
	cfg, err := p.CA.ServerTLS([]string{"127.0.0.1"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.ServeTLS(ln, cfg) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	url := "https://" + ln.Addr().String()
	p.SetURLs(url)
	return url, s
}

func newPlane(t *testing.T) *apitest.Plane {
	t.Helper()
	p, err := apitest.New(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func operator(t *testing.T, p *apitest.Plane, url string) *client.Client {
	t.Helper()
	csr, key, err := authority.NewRequest("alice")
	if err != nil {
		t.Fatal(err)
	}
	cert, err := p.CA.SignOperator(csr, "alice", authority.RoleAdmin, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := authority.ClientTLS(p.CA.CertPEM(), cert, key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.TLS(url, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestEveryEndpoint(t *testing.T) {
	p := newPlane(t)
	p.Add(wire.Node{Name: "gpu001", State: "certified", GPUs: 8}, wire.Node{Name: "gpu002", State: "quarantined", Case: "Q-7F3K"})
	p.AddCase(wire.Case{ID: "Q-7F3K", Node: "gpu002", Next: "reboot"})
	url, _ := serve(t, p)
	c, ctx := operator(t, p, url), t.Context()

	if f, err := c.Fleet(ctx); err != nil || f.Nodes != 2 || f.ByState["quarantined"] != 1 {
		t.Errorf("fleet: %+v, %v", f, err)
	}
	if ns, err := c.Nodes(ctx, "gpu[001-002]"); err != nil || len(ns) != 2 || ns[1].Name != "gpu002" {
		t.Errorf("nodes: %+v, %v", ns, err)
	}
	if ns, err := c.Nodes(ctx, ""); err != nil || len(ns) != 2 {
		t.Errorf("all nodes: %+v, %v", ns, err)
	}
	if n, err := c.Node(ctx, "gpu001"); err != nil || n.GPUs != 8 {
		t.Errorf("node: %+v, %v", n, err)
	}
	verb := wire.NodeVerb{Reason: "test", AcceptRisk: "no-certificate"}
	for _, step := range []struct {
		name string
		do   func(context.Context, string, wire.NodeVerb) (wire.Node, error)
		want string
	}{{"drain", c.Drain, "draining"}, {"resume", c.Resume, "certified"}, {"hold", c.Hold, "certified"}, {"unhold", c.Unhold, "certified"}, {"retire", c.Retire, "retired"}} {
		if n, err := step.do(ctx, "gpu001", verb); err != nil || n.State != step.want || (len(n.Holds) == 1) != (step.name == "hold") {
			t.Errorf("%s: %+v, %v", step.name, n, err)
		}
	}
	if es, err := c.NodeHistory(ctx, "gpu001"); err != nil || len(es) != 5 || es[0].By != "alice" {
		t.Errorf("history: %+v, %v", es, err)
	}
	if x, err := c.Explain(ctx, "gpu002"); err != nil || x.Case == nil || x.Next != "reboot" {
		t.Errorf("explain: %+v, %v", x, err)
	}
	if cs, err := c.Cases(ctx, true); err != nil || len(cs) != 1 {
		t.Errorf("cases: %+v, %v", cs, err)
	}
	if k, err := c.Case(ctx, "Q-7F3K"); err != nil || k.Node != "gpu002" {
		t.Errorf("case: %+v, %v", k, err)
	}
	if cs, err := c.Certificates(ctx); err != nil || len(cs) != 0 {
		t.Errorf("certificates: %+v, %v", cs, err)
	}
	var refused *client.Error
	if _, err := c.Certificate(ctx, "gpu002"); !errors.As(err, &refused) || refused.Status() != 404 || refused.Hint() == "" {
		t.Errorf("certificate: %v, want 404 with a hint", err)
	}
	if g, err := c.Freeze(ctx, "test"); err != nil || !g.Frozen || g.FrozenBy != "alice" || g.FrozenWhy != "test" {
		t.Errorf("freeze: %+v, %v", g, err)
	}
	if g, err := c.Guard(ctx); err != nil || !g.Frozen {
		t.Errorf("guard: %+v, %v", g, err)
	}
	if g, err := c.Thaw(ctx, "test"); err != nil || g.Frozen {
		t.Errorf("thaw: %+v, %v", g, err)
	}
	want := policy.Default()
	want.Mode, want.RowRemap.MaxCorrectable = policy.Act, 12
	if got, err := c.SetPolicy(ctx, want); err != nil || got.Version != 1 || got.Mode != policy.Act {
		t.Errorf("set policy: %+v, %v", got, err)
	}
	if got, err := c.Policy(ctx); err != nil || got.RowRemap.MaxCorrectable != 12 || got.Agent != want.Agent || got.Lifecycle != want.Lifecycle {
		t.Errorf("policy: %+v, %v", got, err)
	}
	if ts, err := c.Enroll(ctx, wire.EnrolAsk{Nodes: []string{"gpu003"}}); err != nil || len(ts) != 1 {
		t.Errorf("enroll: %+v, %v", ts, err)
	}
	csr, _, err := authority.NewRequest("bob")
	if err != nil {
		t.Fatal(err)
	}
	if id, err := c.IssueOperator(ctx, wire.OperatorAsk{Name: "bob", CSR: csr}); err != nil || len(id.Certificate) == 0 {
		t.Errorf("operator: %v", err)
	}
}

func TestFollowsTheLeader(t *testing.T) {
	leader, follower := newPlane(t), newPlane(t)
	follower.CA = leader.CA
	leader.Add(wire.Node{Name: "gpu001", State: "certified"})
	leaderURL, _ := serve(t, leader)
	followerURL, _ := serve(t, follower)
	follower.Follow(leaderURL)
	c := operator(t, leader, followerURL)
	if f, err := c.Fleet(t.Context()); err != nil || f.Nodes != 1 {
		t.Fatalf("through the follower: %+v, %v", f, err)
	}
	// An order's body goes with it, and the leader is remembered.
	follower.LoseLeader()
	if n, err := c.Drain(t.Context(), "gpu001", wire.NodeVerb{Reason: "x"}); err != nil || n.State != "draining" {
		t.Errorf("order: %+v, %v", n, err)
	}
	// Two that each believe the other leads do not send a client round for ever.
	leader.Follow(followerURL)
	follower.Follow(leaderURL)
	var refused *client.Error
	if _, err := c.Fleet(t.Context()); !errors.As(err, &refused) || refused.Status() != 421 {
		t.Errorf("a ring of followers: %v, want 421", err)
	}
}

func TestRedirectsToElsewhereAreNotFollowed(t *testing.T) {
	for _, to := range []string{"http://127.0.0.1:1", "file:///etc/passwd", "https://", "::"} {
		p := newPlane(t)
		url, _ := serve(t, p)
		p.Follow(to)
		var refused *client.Error
		if _, err := operator(t, p, url).Fleet(t.Context()); !errors.As(err, &refused) || refused.Status() != 421 {
			t.Errorf("leader %q: %v, want the 421 itself", to, err)
		}
	}
}

func TestUnixSocketCannotFollow(t *testing.T) {
	p := newPlane(t)
	sock := filepath.Join(t.TempDir(), "s")
	stop, err := p.Open(t.Context(), sock, api.New(p.Backend(), api.NewMetrics("test", p.Snapshot), slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	defer stop(context.Background())
	p.Follow("https://control2:7420")
	c := client.Unix(sock)
	defer c.Close()
	var refused *client.Error
	if _, err := c.Fleet(t.Context()); !errors.As(err, &refused) || !strings.Contains(refused.Hint(), "--server https://control2:7420") {
		t.Errorf("%v, want a refusal whose hint names the leader", err)
	}
}

func TestSilenceIsNotRefusal(t *testing.T) {
	var gone *client.UnreachableError
	c := client.Unix(filepath.Join(t.TempDir(), "nothing"))
	if _, err := c.Fleet(t.Context()); !errors.As(err, &gone) || gone.Hint() == "" {
		t.Errorf("no socket: %v, want UnreachableError", err)
	}
	p := newPlane(t)
	url, _ := serve(t, p)
	other := newPlane(t)
	if _, err := operator(t, other, url).Fleet(t.Context()); !errors.As(err, &gone) {
		t.Errorf("a server of another authority: %v, want UnreachableError", err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Nanosecond, errors.New("no answer within a nanosecond"))
	defer cancel()
	<-ctx.Done()
	if _, err := operator(t, p, url).Fleet(ctx); !errors.As(err, &gone) || !strings.Contains(err.Error(), "within a nanosecond") {
		t.Errorf("out of time: %v, want whose time it was", err)
	}
	if _, err := client.TLS("http://x", nil); err == nil {
		t.Error("a URL in the open was taken")
	}
}

func TestAnswersThatAreNotOurs(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		check  func(error) bool
	}{
		"a proxy's error page": {502, "<html>bad gateway</html>", func(err error) bool {
			var e *client.Error
			return errors.As(err, &e) && e.Status() == 502 && strings.Contains(e.Error(), "502")
		}},
		"a broken answer": {200, `{"nodes":`, func(err error) bool {
			var e *client.UnreachableError
			return errors.As(err, &e)
		}},
		"a page": {200, `<html>`, func(err error) bool {
			var e *client.UnreachableError
			return errors.As(err, &e)
		}},
	} {
		sock := filepath.Join(t.TempDir(), "s")
		ln, err := net.Listen("unix", sock)
		if err != nil {
			t.Fatal(err)
		}
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.body)
		}))
		srv.Listener = ln
		srv.Start()
		if _, err := client.Unix(sock).Fleet(t.Context()); !c.check(err) {
			t.Errorf("%s: %v", name, err)
		}
		srv.Close()
	}
}

func TestEvents(t *testing.T) {
	p := newPlane(t)
	for i := range 3 {
		p.Record(wire.HistoryEntry{Event: fmt.Sprint("e", i)})
	}
	url, server := serve(t, p)
	c := operator(t, p, url)
	read := func(ask client.EventsAsk) (got []string) {
		for e, err := range c.Events(t.Context(), ask) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e.Event)
		}
		return got
	}
	one := 1
	if got := read(client.EventsAsk{}); strings.Join(got, " ") != "e0 e1 e2" {
		t.Errorf("all: %v", got)
	}
	if got := read(client.EventsAsk{Last: &one}); strings.Join(got, " ") != "e2" {
		t.Errorf("the last: %v", got)
	}
	if got := read(client.EventsAsk{After: "0000000000000001"}); strings.Join(got, " ") != "e1 e2" {
		t.Errorf("after the first: %v", got)
	}
	var got []string
	for e, err := range c.Events(t.Context(), client.EventsAsk{Follow: true, Last: &one}) {
		if err != nil {
			break
		}
		got = append(got, e.Event)
		switch len(got) {
		case 1:
			p.Record(wire.HistoryEntry{Event: "news"})
		case 2:
			server.Resign() // the server ends the stream, and so does the loop
		}
	}
	if strings.Join(got, " ") != "e2 news" {
		t.Errorf("following: %v", got)
	}
}

// A list of the size of a fleet comes in pages, and whole.
func TestNodesInPages(t *testing.T) {
	p := newPlane(t)
	for i := range 4100 {
		p.Add(wire.Node{Name: fmt.Sprintf("n%05d", i), State: "certified"})
	}
	url, _ := serve(t, p)
	ns, err := operator(t, p, url).Nodes(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	mine := 0
	for _, n := range ns {
		if strings.HasPrefix(n.Name, "n0") {
			if want := fmt.Sprintf("n%05d", mine); n.Name != want {
				t.Fatalf("node %d is %s, want %s", mine, n.Name, want)
			}
			mine++
		}
	}
	if mine != 4100 {
		t.Errorf("%d of 4100 nodes", mine)
	}
}
