package authority

import (
	"testing"
	"time"
)

// A member's certificate opens the doors of its peers and no other: to the API its holder is nobody.
func TestMember(t *testing.T) {
	a := newAuthority(t, time.Now())
	pair, err := a.Member([]string{"ctl2", "192.0.2.2"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := parseCert(pair)
	if err != nil {
		t.Fatal(err)
	}
	if cert.Subject.CommonName != MemberName || cert.VerifyHostname("ctl2") != nil || cert.VerifyHostname("192.0.2.2") != nil || cert.VerifyHostname("ctl3") == nil {
		t.Errorf("%s for %v %v", cert.Subject.CommonName, cert.DNSNames, cert.IPAddresses)
	}
	if kind, name := Identity(cert); kind != Nobody {
		t.Errorf("the API takes it for %s %s", kind, name)
	}
	node, _ := nodeCert(t, a, MemberName)
	if cert, err := parseCert(node); err != nil || cert.Subject.CommonName == MemberName {
		t.Errorf("a node of that name is taken for a member: %v", err)
	}
	if _, err := a.Member(nil, time.Hour); err == nil {
		t.Error("made for no name")
	}
}
