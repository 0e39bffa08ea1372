package authority

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"net"
	"strings"
	"testing"
	"time"
)

func newAuthority(t *testing.T, now time.Time) *Authority {
	t.Helper()
	m, err := New("test", now)
	if err != nil {
		t.Fatal(err)
	}
	a, err := Load(m)
	if err != nil {
		t.Fatal(err)
	}
	a.now = func() time.Time { return now }
	return a
}

func nodeCert(t *testing.T, a *Authority, node string) (cert, key []byte) {
	t.Helper()
	csr, key, err := NewRequest("somebody-else")
	if err != nil {
		t.Fatal(err)
	}
	if cert, err = a.SignNode(csr, node, time.Hour); err != nil {
		t.Fatal(err)
	}
	return cert, key
}

func TestLoadRefusesForeignKey(t *testing.T) {
	now := time.Now()
	one, err := New("one", now)
	if err != nil {
		t.Fatal(err)
	}
	two, err := New("two", now)
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]Material{
		"key of another":     {CertPEM: one.CertPEM, KeyPEM: two.KeyPEM},
		"no certificate":     {KeyPEM: one.KeyPEM},
		"no key":             {CertPEM: one.CertPEM},
		"key is certificate": {CertPEM: one.CertPEM, KeyPEM: one.CertPEM},
	} {
		if _, err := Load(m); err == nil {
			t.Errorf("%s: loaded", name)
		}
	}
	cert, key := nodeCert(t, newAuthority(t, now), "gpu001")
	if _, err := Load(Material{CertPEM: cert, KeyPEM: key}); err == nil {
		t.Error("a node's certificate was loaded as an authority")
	}
}

func TestSignNodeIgnoresTheRequestsSubject(t *testing.T) {
	a := newAuthority(t, time.Now())
	pemCert, _ := nodeCert(t, a, "gpu001")
	cert, err := parseCert(pemCert)
	if err != nil {
		t.Fatal(err)
	}
	if kind, name := Identity(cert); kind != Node || name != "gpu001" {
		t.Errorf("identity = %q %q, want node gpu001", kind, name)
	}
	if got := cert.Subject.OrganizationalUnit; len(got) != 1 || got[0] != "assay-agent" {
		t.Errorf("OU = %v, want assay-agent", got)
	}
	if cert.IsCA || len(cert.DNSNames)+len(cert.IPAddresses) != 0 {
		t.Error("a node's certificate may sign or serve")
	}
	if len(cert.ExtKeyUsage) != 1 || cert.ExtKeyUsage[0] != x509.ExtKeyUsageClientAuth {
		t.Errorf("extended key usage = %v, want client authentication alone", cert.ExtKeyUsage)
	}
}

func TestSignOperator(t *testing.T) {
	a := newAuthority(t, time.Now())
	csr, _, err := NewRequest("x")
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range Roles {
		out, err := a.SignOperator(csr, "alice", role, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		cert, err := parseCert(out)
		if err != nil {
			t.Fatal(err)
		}
		if kind, name := Identity(cert); kind != Operator || name != "alice" || RoleOf(cert) != role {
			t.Errorf("identity = %q %q %q, want operator alice, %s", kind, name, RoleOf(cert), role)
		}
	}
	for _, role := range []Role{RoleNone, "king"} {
		if _, err := a.SignOperator(csr, "alice", role, time.Hour); err == nil {
			t.Errorf("signed for the role %q", role)
		}
	}
}

// Whoever held an operator's certificate before there were roles is an operator now, and a node is nobody.
func TestRoles(t *testing.T) {
	of := func(cn, unit string) Role {
		return RoleOf(&x509.Certificate{Subject: pkix.Name{CommonName: cn, OrganizationalUnit: []string{unit}}})
	}
	for _, c := range []struct {
		cn, unit string
		want     Role
	}{
		{"operator:alice", "assay-operator", RoleOperator},
		{"operator:alice", "assay-admin", RoleAdmin},
		{"operator:alice", "assay-agent", RoleNone},
		{"node:gpu001", "assay-admin", RoleNone},
		{"node:gpu001", "assay-agent", RoleNone},
	} {
		if got := of(c.cn, c.unit); got != c.want {
			t.Errorf("%s of %s: role %q, want %q", c.cn, c.unit, got, c.want)
		}
	}
	order := append([]Role{RoleNone}, Roles...)
	for i, have := range order {
		for j, need := range order {
			if got, want := have.Covers(need), need != RoleNone && i >= j; got != want {
				t.Errorf("%q covers %q: %t", have, need, got)
			}
		}
	}
}

func TestSignRefuses(t *testing.T) {
	a := newAuthority(t, time.Now())
	good, _, err := NewRequest("x")
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(good)
	forged := bytes.Clone(block.Bytes)
	forged[len(forged)-1] ^= 1 // the last byte of the signature
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	rsaReq, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "x"}}, rsaKey)
	if err != nil {
		t.Fatal(err)
	}
	asPEM := func(der []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	}
	for _, c := range []struct {
		name, node string
		csr        []byte
	}{
		{"not PEM", "gpu001", []byte("hello")},
		{"a certificate", "gpu001", a.CertPEM()},
		{"forged signature", "gpu001", asPEM(forged)},
		{"RSA key", "gpu001", asPEM(rsaReq)},
		{"empty name", "", good},
		{"name with a colon", "operator:root", good},
		{"name with a line break", "gpu001\n", good},
		{"name too long for a common name", strings.Repeat("g", 56), good},
	} {
		_, err := a.SignNode(c.csr, c.node, time.Hour)
		var re *RequestError
		if !errors.As(err, &re) || re.Status() != 400 {
			t.Errorf("%s: error = %v, want a RequestError", c.name, err)
		}
	}
}

func TestCertificateNeverOutlivesItsAuthority(t *testing.T) {
	made := time.Now()
	a := newAuthority(t, made)
	a.now = func() time.Time { return made.Add(caLife - time.Hour) }
	pemCert, _ := nodeCert(t, a, "gpu001")
	cert, err := parseCert(pemCert)
	if err != nil {
		t.Fatal(err)
	}
	csr, _, _ := NewRequest("x")
	long, err := a.SignNode(csr, "gpu001", 48*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	last, err := parseCert(long)
	if err != nil {
		t.Fatal(err)
	}
	if !last.NotAfter.Equal(a.cert.NotAfter) || cert.NotAfter.After(a.cert.NotAfter) {
		t.Errorf("ends %v and %v, authority %v", cert.NotAfter, last.NotAfter, a.cert.NotAfter)
	}
}

func TestIdentityNeedsNameAndUnit(t *testing.T) {
	for _, c := range []struct{ cn, unit string }{
		{"node:gpu001", "assay-operator"}, {"operator:root", "assay-agent"}, {"operator:root", ""}, {"gpu001", "assay-agent"},
		{"node:", "assay-agent"}, {"node:a b", "assay-agent"}, {"assayd", "assayd"},
	} {
		cert := &x509.Certificate{Subject: pkix.Name{CommonName: c.cn, OrganizationalUnit: []string{c.unit}}}
		if kind, name := Identity(cert); kind != Nobody || name != "" {
			t.Errorf("CN %q OU %q: %q %q, want nobody", c.cn, c.unit, kind, name)
		}
	}
	if kind, _ := Identity(nil); kind != Nobody {
		t.Error("no certificate is somebody")
	}
}

// handshake lets a client talk to a server and returns what each end said.
func handshake(t *testing.T, server, client *tls.Config) (peer *x509.Certificate, clientErr, serverErr error) {
	t.Helper()
	c, s := net.Pipe()
	deadline := time.Now().Add(10 * time.Second)
	c.SetDeadline(deadline)
	s.SetDeadline(deadline)
	done := make(chan error, 1)
	srv := tls.Server(s, server)
	go func() {
		err := srv.Handshake()
		if err == nil {
			_, err = srv.Write([]byte("x"))
		}
		s.Close()
		done <- err
	}()
	cl := tls.Client(c, client)
	clientErr = cl.Handshake()
	if clientErr == nil { // in TLS 1.3 the server's refusal of a client certificate comes with the first read
		_, clientErr = cl.Read(make([]byte, 1))
	}
	c.Close()
	serverErr = <-done
	if certs := srv.ConnectionState().PeerCertificates; len(certs) > 0 {
		peer = certs[0]
	}
	return peer, clientErr, serverErr
}

func TestMutualTLS(t *testing.T) {
	now := time.Now()
	a, other := newAuthority(t, now), newAuthority(t, now)
	server, err := a.ServerTLS([]string{"control1", "127.0.0.1"}, 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	cert, key := nodeCert(t, a, "gpu001")
	client, err := ClientTLS(a.CertPEM(), cert, key)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"control1", "127.0.0.1"} {
		client.ServerName = name
		peer, cerr, serr := handshake(t, server, client)
		if cerr != nil || serr != nil {
			t.Fatalf("%s: client %v, server %v", name, cerr, serr)
		}
		if kind, node := Identity(peer); kind != Node || node != "gpu001" {
			t.Errorf("server saw %q %q", kind, node)
		}
	}
	client.ServerName = "control2"
	if _, cerr, _ := handshake(t, server, client); cerr == nil {
		t.Error("a server of another name was trusted")
	}
	strangerCert, strangerKey := nodeCert(t, other, "gpu001")
	stranger, err := ClientTLS(a.CertPEM(), strangerCert, strangerKey)
	if err != nil {
		t.Fatal(err)
	}
	stranger.ServerName = "control1"
	if _, _, serr := handshake(t, server, stranger); serr == nil {
		t.Error("a certificate of another authority was let in")
	}
	old := client.Clone()
	old.ServerName, old.MinVersion, old.MaxVersion = "control1", tls.VersionTLS12, tls.VersionTLS12
	if _, _, serr := handshake(t, server, old); serr == nil {
		t.Error("TLS 1.2 was let in")
	}
}

func TestPinnedTLS(t *testing.T) {
	now := time.Now()
	a, other := newAuthority(t, now), newAuthority(t, now)
	server, err := a.ServerTLS([]string{"control1", "127.0.0.1"}, 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	pinned, err := PinnedTLS(a.Fingerprint())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"control1", "127.0.0.1"} {
		pinned.ServerName = name
		if _, cerr, serr := handshake(t, server, pinned); cerr != nil || serr != nil {
			t.Errorf("%s: client %v, server %v", name, cerr, serr)
		}
	}
	pinned.ServerName = "control2"
	var pe *PinError
	if _, cerr, _ := handshake(t, server, pinned); !errors.As(cerr, &pe) {
		t.Errorf("another name: %v, want a PinError", cerr)
	}
	wrong, err := PinnedTLS(other.Fingerprint())
	if err != nil {
		t.Fatal(err)
	}
	wrong.ServerName = "control1"
	if _, cerr, _ := handshake(t, server, wrong); !errors.As(cerr, &pe) {
		t.Errorf("another authority: %v, want a PinError", cerr)
	}
	// An impostor presents the real authority's certificate, which is public, behind a leaf of its own making.
	forged, err := other.Server([]string{"control1"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	forged.Certificate[1] = a.cert.Raw
	pinned.ServerName = "control1"
	if _, cerr, _ := handshake(t, &tls.Config{Certificates: []tls.Certificate{forged}}, pinned); !errors.As(cerr, &pe) {
		t.Errorf("impostor: %v, want a PinError", cerr)
	}
	// A node's identity is signed by the right authority, but it may not serve.
	cert, key := nodeCert(t, a, "gpu001")
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	pair.Certificate = append(pair.Certificate, a.cert.Raw)
	pinned.ServerName = "127.0.0.1"
	if _, cerr, _ := handshake(t, &tls.Config{Certificates: []tls.Certificate{pair}}, pinned); !errors.As(cerr, &pe) {
		t.Errorf("a node as server: %v, want a PinError", cerr)
	}
	if _, err := PinnedTLS("beef"); err == nil {
		t.Error("a short fingerprint was taken")
	}
}

func TestServerCertificateIsMadeAnewInTime(t *testing.T) {
	now := time.Now()
	a := newAuthority(t, now)
	cfg, err := a.ServerTLS([]string{"control1"}, 30*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	get := func(after time.Duration) string {
		a.now = func() time.Time { return now.Add(after) }
		c, err := cfg.GetCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		return c.Leaf.SerialNumber.String()
	}
	first := get(0)
	if get(19*time.Hour) != first {
		t.Error("made anew before two thirds of its life were over")
	}
	second := get(21 * time.Hour)
	if second == first {
		t.Error("not made anew after two thirds of its life")
	}
	if get(22*time.Hour) != second {
		t.Error("made anew twice")
	}
}

func TestSigningKeyIDs(t *testing.T) {
	id1, pub, priv, err := NewSigningKey()
	if err != nil {
		t.Fatal(err)
	}
	id2, _, _, err := NewSigningKey()
	if err != nil {
		t.Fatal(err)
	}
	if id1 == id2 || id1 == "" {
		t.Errorf("ids %q and %q", id1, id2)
	}
	if !pub.Equal(priv.Public()) {
		t.Error("public and private key differ")
	}
}
