package identity

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// site is an authority and what answers for it.
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

// serve starts a server with the site's certificate.
func (s *site) serve(h http.HandlerFunc) string {
	s.t.Helper()
	cfg, err := s.ca.ServerTLS([]string{"127.0.0.1"}, time.Hour)
	if err != nil {
		s.t.Fatal(err)
	}
	cert, err := cfg.GetCertificate(&tls.ClientHelloInfo{})
	if err != nil {
		s.t.Fatal(err)
	}
	cfg.Certificates, cfg.GetCertificate = []tls.Certificate{*cert}, nil
	srv := httptest.NewUnstartedServer(h)
	srv.TLS, srv.Config.ErrorLog = cfg, log.New(io.Discard, "", 0)
	srv.StartTLS()
	s.t.Cleanup(srv.Close)
	return srv.URL
}

// enrols answers enrolment as assayd does.
func (s *site) enrols(record *authority.TokenRecord, urls ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var ask wire.Enroll
		if err := json.NewDecoder(r.Body).Decode(&ask); err != nil || r.URL.Path != wire.PathEnroll {
			http.Error(w, "bad", http.StatusBadRequest)
			return
		}
		if err := authority.Check(*record, ask.Secret, time.Now()); err != nil {
			w.WriteHeader(http.StatusForbidden)
			_ = json.NewEncoder(w).Encode(wire.Problem{Title: err.Error(), Hint: "make a new one"})
			return
		}
		cert, err := s.ca.SignNode(ask.CSR, ask.Node, time.Hour)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		record.SecretHash = "used"
		_ = json.NewEncoder(w).Encode(wire.Enrolled{Certificate: cert, CA: s.ca.CertPEM(), URLs: urls})
	}
}

func TestEnroll(t *testing.T) {
	s, dir := newSite(t), t.TempDir()
	if _, err := Load(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("before: %v", err)
	}
	var record authority.TokenRecord
	leader := s.serve(s.enrols(&record, "https://127.0.0.1:1", "https://127.0.0.1:2"))
	follower := s.serve(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusMisdirectedRequest)
		_ = json.NewEncoder(w).Encode(wire.Problem{Leader: leader})
	})
	text, rec, err := s.ca.NewToken([]string{"https://127.0.0.1:1", follower}, "gpu001", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	record = rec
	id, err := Enroll(t.Context(), dir, text+"\n")
	if err != nil {
		t.Fatal(err)
	}
	if id.Node != "gpu001" || len(id.URLs) != 2 || len(id.TLS.Certificates) != 1 || time.Until(id.Ends) > time.Hour || time.Until(id.Ends) < time.Minute {
		t.Fatalf("identity %+v", id)
	}
	for _, f := range []string{fileKey, fileCert, fileCA, fileControl} {
		st, err := os.Stat(filepath.Join(dir, "identity", f))
		if err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f, st, err)
		}
	}
	// A control host that joins later is known after a restart too.
	if err := Learn(dir, []string{"https://ctl2:7420", "https://ctl1:7420"}); err != nil {
		t.Fatal(err)
	}
	if id, err := Load(dir); err != nil || len(id.URLs) != 2 || id.URLs[0] != "https://ctl2:7420" || id.Node != "gpu001" {
		t.Fatalf("after learning: %+v, %v", id, err)
	}
	// A token works once; what is there stays.
	var hinted interface{ Hint() string }
	if _, err := Enroll(t.Context(), dir, text); err == nil || !strings.Contains(err.Error(), "403") || !errors.As(err, &hinted) {
		t.Fatalf("second use: %v", err)
	}
	if id, err := Load(dir); err != nil || id.Node != "gpu001" {
		t.Fatalf("after a refused second use: %+v, %v", id, err)
	}
}

func TestEnrollSendsNothingToAStranger(t *testing.T) {
	s, stranger := newSite(t), newSite(t)
	asked := false
	url := stranger.serve(func(http.ResponseWriter, *http.Request) { asked = true })
	text, _, err := s.ca.NewToken([]string{url}, "gpu001", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	var pin *authority.PinError
	if _, err := Enroll(t.Context(), t.TempDir(), text); !errors.As(err, &pin) || asked {
		t.Fatalf("%v, asked %v", err, asked)
	}
}

func TestEnrollRefusesJunk(t *testing.T) {
	s, dir := newSite(t), t.TempDir()
	if _, err := Enroll(t.Context(), dir, "assay1.junk"); err == nil {
		t.Fatal("a mangled token was taken")
	}
	for name, h := range map[string]http.HandlerFunc{
		"no JSON": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") },
		"another authority": func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(wire.Enrolled{CA: newSite(t).ca.CertPEM()})
		},
		"no certificate": func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(wire.Enrolled{CA: s.ca.CertPEM()})
		},
		"a server that fails": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
	} {
		text, _, err := s.ca.NewToken([]string{s.serve(h)}, "gpu001", time.Now(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Enroll(t.Context(), dir, text); err == nil {
			t.Errorf("%s: enrolled", name)
		}
		if _, err := Load(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: left an identity: %v", name, err)
		}
	}
}

func TestADamagedIdentitySaysSo(t *testing.T) {
	s, dir := newSite(t), t.TempDir()
	var record authority.TokenRecord
	text, rec, err := s.ca.NewToken([]string{s.serve(s.enrols(&record))}, "gpu001", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	record = rec
	if _, err := Enroll(context.Background(), dir, text); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "identity", fileKey), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	var broken *BrokenError
	if _, err := Load(dir); !errors.As(err, &broken) || errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("Load: %v", err)
	}
}
