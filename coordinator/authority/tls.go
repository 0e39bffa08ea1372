package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ServerTLS is the configuration of an API listener: TLS 1.3, a client certificate verified if one is given, and a
// server certificate for sans that is made anew when two thirds of ttl are over.
func (a *Authority) ServerTLS(sans []string, ttl time.Duration) (*tls.Config, error) {
	first, err := a.Server(sans, ttl)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	var mu sync.Mutex
	current := &first
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		ClientAuth: tls.VerifyClientCertIfGiven,
		ClientCAs:  pool,
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			mu.Lock()
			defer mu.Unlock()
			if current.Leaf.NotAfter.Sub(a.now()) > ttl/3 {
				return current, nil
			}
			next, err := a.Server(sans, ttl)
			if err != nil {
				return current, nil // the old one may still hold; the next handshake tries again
			}
			current = &next
			return current, nil
		},
	}, nil
}

// ClientTLS is the configuration of an agent or operator that has its identity: PEM authority, certificate and key.
func ClientTLS(ca, cert, key []byte) (*tls.Config, error) {
	authority, err := parseCert(ca)
	if err != nil {
		return nil, fmt.Errorf("authority certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("client identity: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(authority)
	return &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}}, nil
}

// PeerTLS is the configuration of a control host that calls another: it has the authority's key, and so vouches for itself.
// Name is this host's among its peers.
func (a *Authority) PeerTLS(name string, ttl time.Duration) (*tls.Config, error) {
	if !ValidName(name) {
		return nil, &RequestError{fmt.Sprintf("%q cannot name a control host: letters, digits, dot, dash and underscore, at most 55", name)}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	der, err := a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: string(Control) + ":" + name, OrganizationalUnit: []string{controlUnit}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, key.Public(), ttl)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool, NextProtos: []string{"h2", "http/1.1"},
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, nil
}

// A PinError says that a server is not the one a token names.
type PinError struct{ Want, Why string }

func (e *PinError) Error() string { return "the server is not the one the token names: " + e.Why }

// Hint says what to check.
func (e *PinError) Hint() string {
	return "make a new token on the control host with `assay node enroll`, and check that nothing intercepts the connection"
}

// PinnedTLS is the configuration for enrolment: the server must present a chain that holds the authority with this
// fingerprint, and a server certificate that the authority signed for the name called.
func PinnedTLS(fp string) (*tls.Config, error) {
	if raw, err := hex.DecodeString(fp); err != nil || len(raw) != 32 {
		return nil, errors.New("fingerprint of the authority: want 64 hex digits")
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: []string{"h2", "http/1.1"},
		// The usual verification needs the authority's certificate, which only the handshake brings. VerifyConnection
		// does the same work with the one certificate that has the right fingerprint as the only root.
		InsecureSkipVerify: true,
		VerifyConnection:   func(cs tls.ConnectionState) error { return verifyPinned(cs, fp) },
	}, nil
}

func verifyPinned(cs tls.ConnectionState, fp string) error {
	if len(cs.PeerCertificates) == 0 {
		return &PinError{fp, "it presented no certificate"}
	}
	roots := x509.NewCertPool()
	found := false
	for _, c := range cs.PeerCertificates[1:] {
		if fingerprint(c) == fp {
			roots.AddCert(c)
			found = true
		}
	}
	if !found {
		return &PinError{fp, "its authority has another fingerprint"}
	}
	// ServerName is empty when an IP address was called; the authority signs server certificates for assayd alone, so
	// the pinned root and the server usage are enough then.
	_, err := cs.PeerCertificates[0].Verify(x509.VerifyOptions{
		Roots: roots, DNSName: cs.ServerName, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return &PinError{fp, err.Error()}
	}
	return nil
}

// NewRequest makes a fresh ECDSA P-256 key and a certificate request for it, both PEM: what an enrolling node or
// operator sends, and what it keeps.
func NewRequest(name string) (csrPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make key: %w", err)
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}, key)
	if err != nil {
		return nil, nil, fmt.Errorf("make certificate request: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("encode key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: csr}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}
