package control

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// A plane is a small control plane: it streams what it is given, keeps what it is sent, and may be a follower.
type plane struct {
	*httptest.Server
	mu       sync.Mutex
	leader   string // not empty: answers 421 with it
	fail     int    // not 0: answers every request but the stream with this status
	peers    []string
	protos   []string
	beats    []wire.Heartbeat
	reports  []checks.Report
	results  []wire.EffectResult
	gangs    []wire.GangStatus
	asks     []wire.PermitAsk
	permit   func(wire.PermitAsk) wire.PermitAnswer
	streams  int
	desired  chan wire.Desired
	hangUp   chan struct{} // closing it ends the streams
	rawLines chan string
}

// site is an authority with planes and the identity of a node.
type site struct {
	t  *testing.T
	ca *authority.Authority
}

func newSite(t *testing.T) *site {
	t.Helper()
	m, err := authority.New("test", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	ca, err := authority.Load(m)
	if err != nil {
		t.Fatal(err)
	}
	return &site{t, ca}
}

func (s *site) plane() *plane {
	s.t.Helper()
	p := &plane{desired: make(chan wire.Desired, 8), hangUp: make(chan struct{}), rawLines: make(chan string, 8)}
	cfg, err := s.ca.ServerTLS([]string{"127.0.0.1"}, time.Hour)
	if err != nil {
		s.t.Fatal(err)
	}
	// httptest would put a certificate of its own in front of one that is only to be asked for.
	cert, err := cfg.GetCertificate(&tls.ClientHelloInfo{})
	if err != nil {
		s.t.Fatal(err)
	}
	cfg.Certificates, cfg.GetCertificate = []tls.Certificate{*cert}, nil
	p.Server = httptest.NewUnstartedServer(p)
	p.Server.EnableHTTP2 = true
	p.Server.TLS = cfg
	p.Server.Config.ErrorLog = log.New(io.Discard, "", 0) // a test's own broken handshakes
	p.Server.StartTLS()
	s.t.Cleanup(func() {
		p.CloseClientConnections()
		p.Close()
	})
	return p
}

// identity is the node's TLS configuration.
func (s *site) identity(node string) *tls.Config {
	s.t.Helper()
	csr, key, err := authority.NewRequest("node:" + node)
	if err != nil {
		s.t.Fatal(err)
	}
	cert, err := s.ca.SignNode(csr, node, time.Hour)
	if err != nil {
		s.t.Fatal(err)
	}
	cfg, err := authority.ClientTLS(s.ca.CertPEM(), cert, key)
	if err != nil {
		s.t.Fatal(err)
	}
	return cfg
}

func (p *plane) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	peer := ""
	if len(r.TLS.PeerCertificates) > 0 {
		peer = r.TLS.PeerCertificates[0].Subject.CommonName
	}
	p.mu.Lock()
	p.peers, p.protos = append(p.peers, peer), append(p.protos, r.Proto)
	leader, fail := p.leader, p.fail
	p.mu.Unlock()
	switch {
	case peer == "":
		problem(w, http.StatusForbidden, wire.Problem{Title: "no client certificate"})
		return
	case leader != "":
		problem(w, http.StatusMisdirectedRequest, wire.Problem{Title: "not the leader", Leader: leader})
		return
	case fail != 0 && r.URL.Path != wire.PathStream:
		problem(w, fail, wire.Problem{Title: "told to fail"})
		return
	}
	switch r.URL.Path {
	case wire.PathStream:
		p.stream(w, r)
	case wire.PathHeartbeat:
		take(p, w, r, &p.beats, nil)
	case wire.PathReports:
		take(p, w, r, &p.reports, func(v checks.Report) any { return wire.ReportAnswer{ID: v.ID} })
	case wire.PathEffects:
		take(p, w, r, &p.results, nil)
	case wire.PathGangs:
		take(p, w, r, &p.gangs, nil)
	case wire.PathPermit:
		take(p, w, r, &p.asks, func(v wire.PermitAsk) any { return p.permit(v) })
	default:
		http.NotFound(w, r)
	}
}

// take decodes a body into the list at into and answers.
func take[T any](p *plane, w http.ResponseWriter, r *http.Request, into *[]T, answer func(T) any) {
	var v T
	if err := json.NewDecoder(r.Body).Decode(&v); err != nil {
		problem(w, http.StatusBadRequest, wire.Problem{Title: err.Error()})
		return
	}
	p.mu.Lock()
	*into = append(*into, v)
	p.mu.Unlock()
	if answer == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	_ = json.NewEncoder(w).Encode(answer(v))
}

func problem(w http.ResponseWriter, status int, p wire.Problem) {
	p.Status = status
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(p)
}

func (p *plane) stream(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.streams++
	hangUp := p.hangUp
	p.mu.Unlock()
	f := w.(http.Flusher)
	f.Flush()
	for {
		select {
		case d := <-p.desired:
			_ = json.NewEncoder(w).Encode(d)
		case l := <-p.rawLines:
			_, _ = w.Write([]byte(l))
		case <-hangUp:
			return
		case <-r.Context().Done():
			return
		}
		f.Flush()
	}
}

func (p *plane) set(f func(*plane)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(p)
}

// fakeAgent takes desired states as the agent does.
type fakeAgent struct {
	mu    sync.Mutex
	taken []wire.Desired
	heard int
}

func (a *fakeAgent) Fence(context.Context) (int64, uint64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.taken) == 0 {
		return 0, 0, nil
	}
	d := a.taken[len(a.taken)-1]
	return d.Term, d.Version, nil
}

func (a *fakeAgent) Desire(_ context.Context, d wire.Desired) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.taken = append(a.taken, d)
	return nil
}

func (a *fakeAgent) Heard() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.heard++
}

func (a *fakeAgent) Heartbeat(context.Context) (wire.Heartbeat, error) {
	return wire.Heartbeat{Node: "n1", BootID: "boot-1"}, nil
}

func (a *fakeAgent) HeartbeatEvery() time.Duration { return 50 * time.Millisecond }

func (a *fakeAgent) versions() (out []uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, d := range a.taken {
		out = append(out, d.Version)
	}
	return out
}

// fakeResults holds results until they are acknowledged.
type fakeResults struct {
	mu    sync.Mutex
	waits []wire.EffectResult
	more  chan struct{}
}

func (f *fakeResults) NextResult(ctx context.Context) (wire.EffectResult, error) {
	for {
		f.mu.Lock()
		if len(f.waits) > 0 {
			defer f.mu.Unlock()
			return f.waits[0], nil
		}
		f.mu.Unlock()
		select {
		case <-f.more:
		case <-ctx.Done():
			return wire.EffectResult{}, ctx.Err()
		}
	}
}

func (f *fakeResults) ResultSent(string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waits = f.waits[1:]
}

// fakeGangs has statuses to tell, and counts how often it was asked to tell all again.
type fakeGangs struct {
	mu      sync.Mutex
	waits   []wire.GangStatus
	repeats int
	more    chan struct{}
}

func (f *fakeGangs) NextStatus(ctx context.Context) (wire.GangStatus, error) {
	for {
		f.mu.Lock()
		if len(f.waits) > 0 {
			defer f.mu.Unlock()
			return f.waits[0], nil
		}
		f.mu.Unlock()
		select {
		case <-f.more:
		case <-ctx.Done():
			return wire.GangStatus{}, ctx.Err()
		}
	}
}

func (f *fakeGangs) StatusSent(wire.GangStatus) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waits = f.waits[1:]
}

func (f *fakeGangs) Repeat() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.repeats++
}

func (f *fakeGangs) left() (waits, repeats int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.waits), f.repeats
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// eventually waits for ok to hold.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("not within 10 s: %s", what)
}
