package api_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/api"
	"github.com/assay-gpu/assay/coordinator/api/apitest"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// A handler is the API without a listener. It believes in any identity, as behind a verified handshake.
type handler struct {
	t     testing.TB
	plane *apitest.Plane
	h     http.Handler
	log   *bytes.Buffer
}

func newHandler(t testing.TB, change func(*api.Backend)) *handler {
	t.Helper()
	p, err := apitest.New(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	p.Add(wire.Node{Name: "gpu001", State: "certified"})
	b := p.Backend()
	if change != nil {
		change(&b)
	}
	h := &handler{t: t, plane: p, log: &bytes.Buffer{}}
	s := api.New(b, api.NewMetrics("test", p.Snapshot), slog.New(slog.NewTextHandler(&lockedWriter{w: h.log}, nil)))
	s.Unlimited()
	h.h = s.Handler()
	return h
}

func (h *handler) as(kind, name, method, path, body string) (int, []byte, http.Header) {
	req := httptest.NewRequest(method, "https://assayd"+path, strings.NewReader(body))
	req.TLS = &tls.ConnectionState{}
	if kind != "" {
		unit := map[string]string{"node": "assay-agent", "operator": "assay-admin"}[kind]
		cert := &x509.Certificate{Subject: pkix.Name{CommonName: kind + ":" + name, OrganizationalUnit: []string{unit}}}
		req.TLS.VerifiedChains = [][]*x509.Certificate{{cert}}
	}
	w := httptest.NewRecorder()
	h.h.ServeHTTP(w, req)
	return w.Code, w.Body.Bytes(), w.Header()
}

// FuzzBodies sends any body to every endpoint that reads one: the answer is a result or a refusal, never a fault.
func FuzzBodies(f *testing.F) {
	endpoints := []struct{ kind, method, path string }{
		{"node", "POST", wire.PathHeartbeat}, {"node", "POST", wire.PathReports}, {"node", "POST", wire.PathPermit}, {"node", "POST", wire.PathEffects},
		{"", "POST", wire.PathEnroll}, {"operator", "POST", wire.PathEnrolment}, {"operator", "POST", wire.PathOperators},
		{"operator", "PUT", wire.PathPolicy}, {"operator", "POST", wire.PathNodes + "/gpu001/drain"}, {"operator", "POST", wire.PathNodes + "/gpu001/hold"},
		{"operator", "POST", wire.PathGuard + "/freeze"},
	}
	pol, err := json.Marshal(policy.Default())
	if err != nil {
		f.Fatal(err)
	}
	for i := range endpoints {
		for _, s := range []string{
			`{"node":"gpu001","id":"r","verdict":"fail","findings":[{"check":"xid","code":79,"verdict":"fail","action":"reboot","subject":{"kind":"gpu"}}]}`,
			`{"node":"gpu001","report":{"id":"r","node":"gpu001"}}`, `{"id":"e","node":"gpu001","outcome":"done"}`, `{"nodes":["gpu001"],"ttl":"1h"}`,
			`{"name":"alice","csr":"AAAA"}`, `{"reason":"x","until":"2026-11-29T20:00:00Z"}`, string(pol), ``, `null`, `[[[[`, "\xff\xfe", `{"node":"gpu001","at":"0000"}`,
		} {
			f.Add(uint8(i), s)
		}
	}
	h := newHandler(f, nil)
	f.Fuzz(func(t *testing.T, which uint8, body string) {
		e := endpoints[int(which)%len(endpoints)]
		status, out, head := h.as(e.kind, "gpu001", e.method, e.path, body)
		check(t, e.method+" "+e.path, status, out, head)
	})
}

// FuzzQueries sends any path and query to the reading endpoints.
func FuzzQueries(f *testing.F) {
	for _, s := range []string{wire.PathNodes + "?names=gpu[001-003]", wire.PathNodes + "/gpu001/history", wire.PathNodes + "/gpu001/explain", wire.PathEvents + "?last=3",
		wire.PathEvents + "?after=0000000000000001", wire.PathCases + "?open=1", wire.PathCases + "/Q-7F3K", wire.PathCerts + "/gpu001", wire.PathFleet, wire.PathGuard, "//v1/../fleet", "/v1/nodes/%00"} {
		f.Add(s)
	}
	h := newHandler(f, nil)
	f.Fuzz(func(t *testing.T, path string) {
		if !strings.HasPrefix(path, "/") || len(path) > 4096 {
			return
		}
		u, err := url.ParseRequestURI("https://assayd" + path)
		if err != nil || u.Query().Get("follow") != "" || u.Path == "/metrics" || u.Host != "assayd" || strings.ContainsAny(path, " \t\r\n") {
			return // no request line, or one that waits for news
		}
		status, out, head := h.as("operator", "alice", "GET", path, "")
		if status == http.StatusMovedPermanently || status == http.StatusTemporaryRedirect {
			return // to the cleaned path
		}
		check(t, path, status, out, head)
	})
}

func check(t *testing.T, what string, status int, body []byte, head http.Header) {
	t.Helper()
	switch {
	case status >= 500:
		t.Errorf("%s: %d %s", what, status, body)
	case status >= 400:
		var p wire.Problem
		if head.Get("Content-Type") != "application/problem+json" || json.Unmarshal(body, &p) != nil || p.Status != status {
			t.Errorf("%s: %d without a problem: %s", what, status, body)
		}
	}
}
