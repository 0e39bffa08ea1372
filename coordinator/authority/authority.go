// Package authority is the control plane's own certificate authority and its one-time enrolment tokens.
//
// Agents and operators prove who they are with X.509 client certificates that this authority signed; they know assayd
// by the authority's certificate. A new node has neither: its token carries the authority's fingerprint, so that it
// can trust the first answer it gets, and a secret that works once.
//
// The package keeps nothing: Material and TokenRecord are values that the coordinator stores in etcd.
package authority

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// Lifetimes. The authority outlives the hardware it names; a server certificate is made anew long before it ends.
const (
	caLife = 10 * 365 * 24 * time.Hour
	// skew is how far a peer's clock may lag behind ours and still take a new certificate for valid.
	skew = time.Hour
)

// Material is an authority at rest: certificate and private key, PEM. The key is as secret as the fleet.
type Material struct {
	CertPEM []byte `json:"cert"`
	KeyPEM  []byte `json:"key"`
}

// New makes an authority with a fresh ECDSA P-256 key, valid for ten years from now. Name tells fleets apart.
func New(name string, now time.Time) (Material, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Material{}, fmt.Errorf("make authority key: %w", err)
	}
	serial, err := serialNumber()
	if err != nil {
		return Material{}, err
	}
	tmpl := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: name, Organization: []string{"assay"}, OrganizationalUnit: []string{"assay-ca"}},
		NotBefore:             now.Add(-skew),
		NotAfter:              now.Add(caLife),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		return Material{}, fmt.Errorf("sign authority certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Material{}, fmt.Errorf("encode authority key: %w", err)
	}
	return Material{CertPEM: certPEM(der), KeyPEM: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})}, nil
}

// An Authority signs. It is safe for use by several goroutines at once.
type Authority struct {
	cert *x509.Certificate
	key  crypto.Signer
	pem  []byte
	now  func() time.Time
}

// Load reads an authority from its material and checks that key and certificate belong together.
func Load(m Material) (*Authority, error) {
	cert, err := parseCert(m.CertPEM)
	if err != nil {
		return nil, fmt.Errorf("authority certificate: %w", err)
	}
	if !cert.IsCA {
		return nil, errors.New("authority certificate: not a certificate authority")
	}
	block, _ := pem.Decode(m.KeyPEM)
	if block == nil {
		return nil, errors.New("authority key: not PEM")
	}
	k, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("authority key: %w", err)
	}
	key, ok := k.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("authority key: %T, want ECDSA", k)
	}
	if !key.PublicKey.Equal(cert.PublicKey) {
		return nil, errors.New("authority key does not belong to its certificate")
	}
	return &Authority{cert: cert, key: key, pem: certPEM(cert.Raw), now: time.Now}, nil
}

// CertPEM is the authority's certificate, which every peer trusts.
func (a *Authority) CertPEM() []byte { return a.pem }

// Fingerprint is the SHA-256 of the authority's certificate in DER, in hex, as a token carries it.
func (a *Authority) Fingerprint() string { return fingerprint(a.cert) }

func fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:])
}

// NewSigningKey makes the ed25519 key that node certificates (package certificate, not X.509) are signed with. The id
// is the start of the public key's hash, so that one id never names two keys.
func NewSigningKey() (id string, pub ed25519.PublicKey, priv ed25519.PrivateKey, err error) {
	pub, priv, err = ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", nil, nil, fmt.Errorf("make signing key: %w", err)
	}
	sum := sha256.Sum256(pub)
	return "k" + hex.EncodeToString(sum[:8]), pub, priv, nil
}

// serialNumber draws 127 random bits, as RFC 5280 and the CA/Browser Forum rules allow: positive, at most 20 octets.
func serialNumber() (*big.Int, error) {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("draw a serial number: %w", err)
	}
	return n, nil
}

func certPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func parseCert(data []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("not a PEM certificate")
	}
	return x509.ParseCertificate(block.Bytes)
}
