package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/coordinator/api"
	"github.com/assay-gpu/assay/coordinator/api/apitest"
	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// A rig is a server on real listeners over a plane in memory.
type rig struct {
	plane  *apitest.Plane
	server *api.Server
	url    string
	socket string
	log    *bytes.Buffer
}

func newRig(t testing.TB) *rig {
	t.Helper()
	p, err := apitest.New(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{plane: p, log: &bytes.Buffer{}, socket: filepath.Join(t.TempDir(), "assayd.sock")}
	r.server = api.New(p.Backend(), api.NewMetrics("test", p.Snapshot), slog.New(slog.NewTextHandler(&lockedWriter{w: r.log}, nil)))
	cfg, err := p.CA.ServerTLS([]string{"127.0.0.1", "localhost"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.url = "https://" + ln.Addr().String()
	p.SetURLs(r.url)
	un, err := api.ListenUnix(t.Context(), r.socket)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 2)
	go func() { done <- r.server.ServeTLS(ln, cfg) }()
	go func() { done <- r.server.ServeUnix(un) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := r.server.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		for range 2 {
			if err := <-done; err != nil {
				t.Errorf("serve: %v", err)
			}
		}
		if strings.Contains(r.log.String(), "not as the schema says") {
			t.Errorf("a body or an answer is not what the schema says:\n%s", r.log)
		}
	})
	return r
}

type lockedWriter struct {
	mu atomic.Int32
	w  *bytes.Buffer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	for !l.mu.CompareAndSwap(0, 1) {
		time.Sleep(time.Microsecond)
	}
	defer l.mu.Store(0)
	return l.w.Write(b)
}

// as returns an HTTP client with the identity of a node or an operator, or with none.
func (r *rig) as(t testing.TB, kind authority.Kind, name string) *http.Client {
	t.Helper()
	csr, key, err := authority.NewRequest(name)
	if err != nil {
		t.Fatal(err)
	}
	sign := r.plane.CA.SignNode
	if kind == authority.Operator {
		return r.person(t, name, authority.RoleAdmin)
	}
	cert, err := sign(csr, name, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return r.with(t, cert, key, kind)
}

// person returns an HTTP client with the certificate of a person of a role.
func (r *rig) person(t testing.TB, name string, role authority.Role) *http.Client {
	t.Helper()
	csr, key, err := authority.NewRequest(name)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := r.plane.CA.SignOperator(csr, name, role, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return r.with(t, cert, key, authority.Operator)
}

func (r *rig) with(t testing.TB, cert, key []byte, kind authority.Kind) *http.Client {
	t.Helper()
	cfg, err := authority.ClientTLS(r.plane.CA.CertPEM(), cert, key)
	if err != nil {
		t.Fatal(err)
	}
	if kind == authority.Nobody {
		cfg.Certificates = nil
	}
	tr := &http.Transport{TLSClientConfig: cfg, ForceAttemptHTTP2: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 20 * time.Second}
}

func (r *rig) unix(t testing.TB) *http.Client {
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", r.socket)
	}}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 20 * time.Second}
}

// do sends a body (a value as JSON, or a string as it is) and returns status, body and headers.
func do(t testing.TB, c *http.Client, method, url string, body any) (int, []byte, http.Header) {
	t.Helper()
	var rd io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		rd = strings.NewReader(b)
	default:
		js, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		rd = bytes.NewReader(js)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, rd)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, out, resp.Header
}

// wantProblem checks that an answer is a Problem with the status and returns it.
func wantProblem(t testing.TB, what string, status, got int, body []byte, h http.Header) wire.Problem {
	t.Helper()
	var p wire.Problem
	if got != status || h.Get("Content-Type") != "application/problem+json" || json.Unmarshal(body, &p) != nil || p.Status != status {
		t.Errorf("%s: %d %s %q, want problem %d", what, got, h.Get("Content-Type"), body, status)
	}
	return p
}

func TestAgentMessages(t *testing.T) {
	r := newRig(t)
	r.plane.Add(wire.Node{Name: "gpu001", State: "certified"})
	node := r.as(t, authority.Node, "gpu001")

	hb := wire.Heartbeat{Node: "gpu001", BootID: "b1", PolicyVersion: 4, JobsOnNode: []string{"17"}}
	if status, body, _ := do(t, node, "POST", r.url+wire.PathHeartbeat, hb); status != 204 || len(body) != 0 {
		t.Errorf("heartbeat: %d %q, want 204", status, body)
	}
	if got, ok := r.plane.Beat("gpu001"); !ok || got.BootID != "b1" || got.PolicyVersion != 4 {
		t.Errorf("heartbeat arrived as %+v, %t", got, ok)
	}

	rep := checks.Report{ID: "r1", Node: "gpu001", Verdict: checks.Fail, Findings: []checks.Finding{{Check: "xid", Code: 79, Verdict: checks.Fail}}}
	for i, dup := range []bool{false, true} {
		status, body, _ := do(t, node, "POST", r.url+wire.PathReports, rep)
		var a wire.ReportAnswer
		if status != 200 || json.Unmarshal(body, &a) != nil || a.ID != "r1" || a.Duplicate != dup || a.State != "certified" {
			t.Errorf("report, time %d: %d %s", i+1, status, body)
		}
	}
	if n := r.plane.Reports(); n != 1 {
		t.Errorf("%d reports, want 1", n)
	}

	ask := wire.PermitAsk{Node: "gpu001", Report: rep}
	var pa wire.PermitAnswer
	if status, body, _ := do(t, node, "POST", r.url+wire.PathPermit, ask); status != 200 || json.Unmarshal(body, &pa) != nil || !pa.Granted {
		t.Errorf("permit: %d %s", status, body)
	}
	r.plane.RefusePermits()
	if status, body, _ := do(t, node, "POST", r.url+wire.PathPermit, ask); status != 200 || json.Unmarshal(body, &pa) != nil || pa.Granted || pa.Reason == "" {
		t.Errorf("permit without room: %d %s", status, body)
	}

	res := wire.EffectResult{ID: "e1", Node: "gpu001", Outcome: "done"}
	if status, body, _ := do(t, node, "POST", r.url+wire.PathEffects, res); status != 204 {
		t.Errorf("effect result: %d %s", status, body)
	}
	if got := r.plane.Results(); len(got) != 1 || got[0].ID != "e1" {
		t.Errorf("effect results: %+v", got)
	}
	res.Outcome = "perhaps"
	status, body, h := do(t, node, "POST", r.url+wire.PathEffects, res)
	wantProblem(t, "unknown outcome", 400, status, body, h)
}

func TestNodeSpeaksForItselfOnly(t *testing.T) {
	r := newRig(t)
	r.plane.Add(wire.Node{Name: "gpu001"}, wire.Node{Name: "gpu002"})
	node := r.as(t, authority.Node, "gpu002")
	about := func(name string) checks.Report { return checks.Report{ID: "r1", Node: name} }
	inventory, subject := about("gpu002"), about("gpu002")
	inventory.Inventory.GPUs = []checks.GPU{{Node: "gpu001"}}
	subject.Findings = []checks.Finding{{Subject: checks.Subject{Kind: checks.KindNode, Node: "gpu001"}}}
	for _, c := range []struct {
		name, path string
		body       any
	}{
		{"heartbeat", wire.PathHeartbeat, wire.Heartbeat{Node: "gpu001"}},
		{"heartbeat of nobody", wire.PathHeartbeat, wire.Heartbeat{}},
		{"report", wire.PathReports, about("gpu001")},
		{"report's inventory", wire.PathReports, inventory},
		{"report's finding", wire.PathReports, subject},
		{"permit", wire.PathPermit, wire.PermitAsk{Node: "gpu001", Report: about("gpu001")}},
		{"permit's report", wire.PathPermit, wire.PermitAsk{Node: "gpu002", Report: about("gpu001")}},
		{"effect result", wire.PathEffects, wire.EffectResult{ID: "e", Node: "gpu001", Outcome: "done"}},
	} {
		status, body, h := do(t, node, "POST", r.url+c.path, c.body)
		wantProblem(t, c.name, 403, status, body, h)
	}
	if _, ok := r.plane.Beat("gpu001"); ok || r.plane.Reports() != 0 {
		t.Error("a forged message arrived")
	}
}

func TestWhoMayCallWhat(t *testing.T) {
	r := newRig(t)
	r.plane.Add(wire.Node{Name: "gpu001", State: "certified"})
	node, alice, nobody := r.as(t, authority.Node, "gpu001"), r.as(t, authority.Operator, "alice"), r.as(t, authority.Nobody, "x")
	for _, c := range []struct {
		name, method, path string
		who                *http.Client
		want               int
	}{
		{"operator reads the fleet", "GET", wire.PathFleet, alice, 200},
		{"node may not read the fleet", "GET", wire.PathFleet, node, 403},
		{"node may not resume itself", "POST", wire.PathNodes + "/gpu001/resume", node, 403},
		{"operator may not beat for a node", "POST", wire.PathHeartbeat, alice, 403},
		{"operator may not read a node's stream", "GET", wire.PathStream, alice, 403},
		{"nobody may read nothing", "GET", wire.PathFleet, nobody, 401},
		{"nobody may report nothing", "POST", wire.PathReports, nobody, 401},
		{"nobody may make no token", "POST", wire.PathEnrolment, nobody, 401},
		{"metrics are open", "GET", "/metrics", nobody, 200},
		{"health is open", "GET", "/healthz", nobody, 200},
		{"readiness is open", "GET", "/readyz", nobody, 200},
	} {
		status, body, h := do(t, c.who, c.method, r.url+c.path, nil)
		if c.want == 200 {
			if status != 200 {
				t.Errorf("%s: %d %s", c.name, status, body)
			}
			continue
		}
		p := wantProblem(t, c.name, c.want, status, body, h)
		if c.want == 401 && p.Hint == "" {
			t.Errorf("%s: no hint", c.name)
		}
	}
}

func TestUnixSocketIsForRoot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Log("not root: the caller is the socket's owner")
	}
	r := newRig(t)
	r.plane.Add(wire.Node{Name: "gpu001", State: "certified"})
	local := r.unix(t)
	if status, body, _ := do(t, local, "POST", "http://assayd"+wire.PathNodes+"/gpu001/drain", wire.NodeVerb{Reason: "noise"}); status != 200 {
		t.Fatalf("drain: %d %s", status, body)
	}
	_, body, _ := do(t, local, "GET", "http://assayd"+wire.PathNodes+"/gpu001/history", nil)
	var es []wire.HistoryEntry
	if err := json.Unmarshal(body, &es); err != nil || len(es) != 1 {
		t.Fatalf("history %s: %v", body, err)
	}
	if os.Getuid() == 0 && es[0].By != "root" {
		t.Errorf("the order is by %q, want root", es[0].By)
	}
	status, body, h := do(t, local, "POST", "http://assayd"+wire.PathHeartbeat, wire.Heartbeat{Node: "gpu001"})
	wantProblem(t, "heartbeat on the socket", 403, status, body, h)
	st, err := os.Stat(r.socket)
	if err != nil {
		t.Fatal(err)
	}
	if perm := st.Mode().Perm(); perm != 0o600 {
		t.Errorf("socket mode %o, want 600", perm)
	}
}

func TestListenUnix(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	first, err := api.ListenUnix(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.ListenUnix(t.Context(), path); err == nil {
		t.Error("took a socket that another process answers on")
	}
	first.(*net.UnixListener).SetUnlinkOnClose(false)
	first.Close()
	second, err := api.ListenUnix(t.Context(), path)
	if err != nil {
		t.Fatalf("a dead socket was not replaced: %v", err)
	}
	second.Close()
	file := filepath.Join(dir, "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := api.ListenUnix(t.Context(), file); err == nil {
		t.Error("a plain file was replaced")
	}
}

func TestFollowerNamesTheLeader(t *testing.T) {
	r := newRig(t)
	r.plane.Add(wire.Node{Name: "gpu001"})
	node, alice := r.as(t, authority.Node, "gpu001"), r.as(t, authority.Operator, "alice")
	r.plane.Follow("https://control2:7420")
	for _, c := range []struct {
		who          *http.Client
		method, path string
	}{{node, "GET", wire.PathStream}, {node, "POST", wire.PathReports}, {alice, "GET", wire.PathFleet}, {alice, "GET", wire.PathEvents}, {node, "POST", wire.PathEnroll}} {
		status, body, h := do(t, c.who, c.method, r.url+c.path, nil)
		if p := wantProblem(t, c.path, 421, status, body, h); p.Leader != "https://control2:7420" {
			t.Errorf("%s: leader %q", c.path, p.Leader)
		}
	}
	if status, _, _ := do(t, alice, "GET", r.url+"/readyz", nil); status != 200 {
		t.Errorf("a follower that knows its leader: readyz %d, want 200", status)
	}
	r.plane.LoseLeader()
	status, body, h := do(t, alice, "GET", r.url+wire.PathFleet, nil)
	wantProblem(t, "no leader", 503, status, body, h)
	status, body, h = do(t, alice, "GET", r.url+"/readyz", nil)
	wantProblem(t, "readyz without a leader", 503, status, body, h)
	if status, _, _ := do(t, alice, "GET", r.url+"/healthz", nil); status != 200 {
		t.Errorf("healthz without a leader: %d, want 200", status)
	}
}

func TestBoundsAndStrictness(t *testing.T) {
	r := newRig(t)
	r.plane.Add(wire.Node{Name: "gpu001", State: "certified"})
	node, alice := r.as(t, authority.Node, "gpu001"), r.as(t, authority.Operator, "alice")
	big := func(n int) string { return `{"node":"gpu001","id":"r","x":"` + strings.Repeat("a", n) + `"}` }
	drain := wire.PathNodes + "/gpu001/drain"
	for _, c := range []struct {
		name, method, path string
		who                *http.Client
		body               string
		want               int
	}{
		{"agents may know fields we do not", "POST", wire.PathHeartbeat, node, `{"node":"gpu001","of_the_future":1}`, 204},
		{"heartbeat just inside its bound", "POST", wire.PathHeartbeat, node, big(64<<10 - 40), 204},
		{"heartbeat over its bound", "POST", wire.PathHeartbeat, node, big(64 << 10), 413},
		{"report over a heartbeat's bound", "POST", wire.PathReports, node, big(512 << 10), 200},
		{"report over its bound", "POST", wire.PathReports, node, big(1 << 20), 413},
		{"report without id", "POST", wire.PathReports, node, `{"node":"gpu001"}`, 400},
		{"report whose id breaks a log line", "POST", wire.PathReports, node, `{"node":"gpu001","id":"a\nb"}`, 400},
		{"junk", "POST", wire.PathReports, node, `{"node":`, 400},
		{"nothing", "POST", wire.PathReports, node, ``, 400},
		{"a list where a message belongs", "POST", wire.PathReports, node, `[]`, 400},
		{"operators may not", "POST", drain, alice, `{"reason":"x","typo":1}`, 400},
		{"two values", "POST", drain, alice, `{"reason":"x"}{"reason":"y"}`, 400},
		{"no reason", "POST", drain, alice, `{}`, 400},
		{"reason with a line break", "POST", drain, alice, `{"reason":"a\nb"}`, 400},
		{"reason with an escape", "POST", drain, alice, `{"reason":"a\u001b[2J"}`, 400},
		{"long reason", "POST", drain, alice, `{"reason":"` + strings.Repeat("a", 201) + `"}`, 400},
		{"unknown order", "POST", wire.PathNodes + "/gpu001/explode", alice, `{"reason":"x"}`, 404},
		{"unknown node", "POST", wire.PathNodes + "/gpu999/drain", alice, `{"reason":"x"}`, 404},
		{"impossible node", "GET", wire.PathNodes + "/a%20b", alice, ``, 400},
		{"bad hostlist", "GET", wire.PathNodes + "?names=gpu%5B1-", alice, ``, 400},
		{"unknown order to the guard", "POST", wire.PathGuard + "/melt", alice, `{"reason":"x"}`, 404},
		{"bad flag", "GET", wire.PathCases + "?open=maybe", alice, ``, 400},
		{"bad case id", "GET", wire.PathCases + "/a%0Ab", alice, ``, 400},
		{"bad count", "GET", wire.PathEvents + "?last=-1", alice, ``, 400},
		{"two beginnings", "GET", wire.PathEvents + "?last=1&after=c1", alice, ``, 400},
		{"tokens for nobody", "POST", wire.PathEnrolment, alice, `{"nodes":[]}`, 400},
		{"tokens for one node twice", "POST", wire.PathEnrolment, alice, `{"nodes":["a","a"]}`, 400},
		{"token that lives too long", "POST", wire.PathEnrolment, alice, `{"nodes":["a"],"ttl":"9000h"}`, 400},
		{"token for an impossible node", "POST", wire.PathEnrolment, alice, `{"nodes":["a/b"]}`, 400},
		{"policy with an unknown field", "PUT", wire.PathPolicy, alice, `{"nope":1}`, 400},
		{"wrong method", "DELETE", wire.PathFleet, alice, ``, 405},
		{"no such path", "GET", "/v1/nope", alice, ``, 404},
		{"root", "GET", "/", alice, ``, 404},
	} {
		status, body, h := do(t, c.who, c.method, r.url+c.path, c.body)
		if c.want < 300 {
			if status != c.want {
				t.Errorf("%s: %d %s, want %d", c.name, status, body, c.want)
			}
			continue
		}
		if p := wantProblem(t, c.name, c.want, status, body, h); p.Detail == "" {
			t.Errorf("%s: the problem says nothing", c.name)
		}
	}
}

func TestRateBound(t *testing.T) {
	r := newRig(t)
	r.plane.Add(wire.Node{Name: "gpu001"}, wire.Node{Name: "gpu002"})
	loud, quiet := r.as(t, authority.Node, "gpu001"), r.as(t, authority.Node, "gpu002")
	refused := 0
	for i := range 600 {
		status, body, h := do(t, loud, "POST", r.url+wire.PathReports, checks.Report{ID: fmt.Sprint("r", i), Node: "gpu001"})
		if status == 429 {
			refused++
			if p := wantProblem(t, "flood", 429, status, body, h); p.Hint == "" || h.Get("Retry-After") == "" {
				t.Errorf("flood: hint %q, Retry-After %q", p.Hint, h.Get("Retry-After"))
			}
			break
		}
	}
	if n := r.plane.Reports(); refused == 0 || n < 200 {
		t.Errorf("%d reports taken, %d refused; want 200 at least, then a refusal", n, refused)
	}
	if status, _, _ := do(t, quiet, "POST", r.url+wire.PathReports, checks.Report{ID: "q", Node: "gpu002"}); status != 200 {
		t.Errorf("another node pays for it: %d", status)
	}
}

func TestEnrolment(t *testing.T) {
	r := newRig(t)
	alice, nobody := r.as(t, authority.Operator, "alice"), r.as(t, authority.Nobody, "x")
	status, body, _ := do(t, alice, "POST", r.url+wire.PathEnrolment, wire.EnrolAsk{Nodes: []string{"gpu001"}, Adopt: true})
	var tokens []wire.EnrolToken
	if status != 200 || json.Unmarshal(body, &tokens) != nil || len(tokens) != 1 {
		t.Fatalf("tokens: %d %s", status, body)
	}
	tok, err := authority.ParseToken(tokens[0].Token)
	if err != nil {
		t.Fatal(err)
	}
	pinned, err := authority.PinnedTLS(tok.CA)
	if err != nil {
		t.Fatal(err)
	}
	fresh := &http.Client{Transport: &http.Transport{TLSClientConfig: pinned, ForceAttemptHTTP2: true}}
	defer fresh.CloseIdleConnections()
	csr, key, err := authority.NewRequest("gpu001")
	if err != nil {
		t.Fatal(err)
	}
	ask := wire.Enroll{Node: "gpu001", Secret: tok.Secret, CSR: csr}
	wrong := ask
	wrong.Secret = "guess"
	status, body, h := do(t, nobody, "POST", r.url+wire.PathEnroll, wrong)
	wantProblem(t, "wrong secret", 403, status, body, h)
	status, body, _ = do(t, fresh, "POST", tok.URLs[0]+wire.PathEnroll, ask)
	var got wire.Enrolled
	if status != 200 || json.Unmarshal(body, &got) != nil {
		t.Fatalf("enrol: %d %s", status, body)
	}
	status, body, h = do(t, fresh, "POST", r.url+wire.PathEnroll, ask)
	wantProblem(t, "token used twice", 403, status, body, h)
	cfg, err := authority.ClientTLS(got.CA, got.Certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	node := &http.Client{Transport: &http.Transport{TLSClientConfig: cfg, ForceAttemptHTTP2: true}}
	defer node.CloseIdleConnections()
	if status, body, _ := do(t, node, "POST", r.url+wire.PathHeartbeat, wire.Heartbeat{Node: "gpu001"}); status != 204 {
		t.Errorf("heartbeat with the new identity: %d %s", status, body)
	}
}

// A stop that comes before a listener is served is an end like any other, and leaves no socket behind.
func TestShutdownBeforeServe(t *testing.T) {
	p, err := apitest.New(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	s := api.New(p.Backend(), api.NewMetrics("test", p.Snapshot), slog.New(slog.DiscardHandler))
	socket := filepath.Join(t.TempDir(), "assayd.sock")
	ln, err := api.ListenUnix(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.ServeUnix(ln); err != nil {
		t.Errorf("ServeUnix: %v", err)
	}
	if _, err := os.Lstat(socket); err == nil {
		t.Error("the socket is still there")
	}
}
