package authority

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"time"
)

// A Kind says what a client certificate's holder is.
type Kind string

const (
	Nobody   Kind = ""
	Node     Kind = "node"
	Operator Kind = "operator"
	Control  Kind = "control" // another control host
)

// Organizational units of the certificates signed here, besides those of people (see roleUnits). A certificate of one kind is
// never taken for another.
const (
	agentUnit   = "assay-agent"
	serverUnit  = "assayd"
	controlUnit = "assayd-peer"
)

var nameRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// ValidName reports whether s may name a node or an operator: a letter or digit, then letters, digits, dot, dash and
// underscore, 63 bytes at most (a common name holds 64, less the prefix is enough for any host name label).
func ValidName(s string) bool { return nameRE.MatchString(s) && len("operator:"+s) <= 64 }

// A RequestError says why a certificate request or a name was refused.
type RequestError struct{ Why string }

func (e *RequestError) Error() string { return "certificate request refused: " + e.Why }

// Status is the HTTP status of the refusal.
func (e *RequestError) Status() int { return 400 }

// Server makes a server certificate with a fresh key, for the given DNS names and IP addresses, valid for ttl. The
// chain holds the authority too, so that an enrolling node can find the one its token names.
func (a *Authority) Server(sans []string, ttl time.Duration) (tls.Certificate, error) {
	if len(sans) == 0 {
		return tls.Certificate{}, errors.New("server certificate: no name to make it for")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make server key: %w", err)
	}
	tmpl := &x509.Certificate{
		Subject:     pkix.Name{CommonName: sans[0], OrganizationalUnit: []string{serverUnit}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if len(sans[0]) > 64 {
		tmpl.Subject.CommonName = serverUnit
	}
	for _, s := range sans {
		if ip := net.ParseIP(strings.Trim(s, "[]")); ip != nil {
			tmpl.IPAddresses = append(tmpl.IPAddresses, ip)
		} else {
			tmpl.DNSNames = append(tmpl.DNSNames, s)
		}
	}
	der, err := a.sign(tmpl, key.Public(), ttl)
	if err != nil {
		return tls.Certificate{}, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("read back server certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: key, Leaf: leaf}, nil
}

// SignNode turns a node's certificate request into its client certificate. Only the request's key counts, once its
// signature shows that the asker holds it; the name comes from the token.
func (a *Authority) SignNode(csrPEM []byte, node string, ttl time.Duration) (cert []byte, err error) {
	return a.signClient(csrPEM, Node, agentUnit, node, ttl)
}

// SignOperator turns a person's certificate request into a client certificate that carries the person's role.
func (a *Authority) SignOperator(csrPEM []byte, name string, role Role, ttl time.Duration) (cert []byte, err error) {
	if _, err := ParseRole(string(role)); err != nil {
		return nil, err
	}
	return a.signClient(csrPEM, Operator, roleUnits[role], name, ttl)
}

func (a *Authority) signClient(csrPEM []byte, kind Kind, unit, name string, ttl time.Duration) ([]byte, error) {
	if !ValidName(name) {
		return nil, &RequestError{fmt.Sprintf("%q cannot name a %s: letters, digits, dot, dash and underscore, at most 55", name, kind)}
	}
	block, _ := pem.Decode(csrPEM)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, &RequestError{"not a PEM certificate request"}
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, &RequestError{err.Error()}
	}
	switch csr.PublicKey.(type) {
	case *ecdsa.PublicKey, ed25519.PublicKey:
	default:
		return nil, &RequestError{fmt.Sprintf("key type %v: want ECDSA or Ed25519", csr.PublicKeyAlgorithm)}
	}
	if err := csr.CheckSignature(); err != nil {
		return nil, &RequestError{"its signature does not match its key"}
	}
	der, err := a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: string(kind) + ":" + name, OrganizationalUnit: []string{unit}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, csr.PublicKey, ttl)
	if err != nil {
		return nil, err
	}
	return certPEM(der), nil
}

// sign fills in serial and dates and signs. No certificate outlives its authority.
func (a *Authority) sign(tmpl *x509.Certificate, pub crypto.PublicKey, ttl time.Duration) ([]byte, error) {
	serial, err := serialNumber()
	if err != nil {
		return nil, err
	}
	now := a.now()
	tmpl.SerialNumber = serial
	tmpl.NotBefore, tmpl.NotAfter = now.Add(-skew), now.Add(ttl)
	if tmpl.NotAfter.After(a.cert.NotAfter) {
		tmpl.NotAfter = a.cert.NotAfter
	}
	tmpl.KeyUsage = x509.KeyUsageDigitalSignature
	tmpl.BasicConstraintsValid = true
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, pub, a.key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate of %s: %w", tmpl.Subject.CommonName, err)
	}
	return der, nil
}

// Identity reads who a verified client certificate belongs to; Nobody when it is not one that this package signs for
// clients. The chain must have been verified before.
func Identity(cert *x509.Certificate) (Kind, string) {
	if cert == nil || len(cert.Subject.OrganizationalUnit) != 1 {
		return Nobody, ""
	}
	kind, name, ok := strings.Cut(cert.Subject.CommonName, ":")
	if !ok || !ValidName(name) {
		return Nobody, ""
	}
	switch unit := cert.Subject.OrganizationalUnit[0]; {
	case kind == string(Node) && unit == agentUnit:
		return Node, name
	case kind == string(Operator) && roleOfUnit(unit) != RoleNone:
		return Operator, name
	case kind == string(Control) && unit == controlUnit:
		return Control, name
	}
	return Nobody, ""
}
