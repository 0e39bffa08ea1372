package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"time"
)

// MemberName is the common name of every certificate that members of the embedded etcd show each other. No node, operator or
// server has it, for theirs are made here too and have other names.
const MemberName = "assayd-member"

// Member makes a fresh key and its certificate for the embedded etcd of one control host, which the others reach under the
// given DNS names and IP addresses: PEM of certificate and key, in this order, in one piece.
func (a *Authority) Member(names []string, ttl time.Duration) ([]byte, error) {
	if len(names) == 0 {
		return nil, errors.New("certificate of a member: no name to make it for")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	tmpl := &x509.Certificate{
		Subject:     pkix.Name{CommonName: MemberName, OrganizationalUnit: []string{controlUnit}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			tmpl.IPAddresses = append(tmpl.IPAddresses, ip)
		} else {
			tmpl.DNSNames = append(tmpl.DNSNames, n)
		}
	}
	der, err := a.sign(tmpl, key.Public(), ttl)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return append(certPEM(der), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})...), nil
}
