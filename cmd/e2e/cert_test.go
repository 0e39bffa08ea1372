package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/coordinator/wire"
)

// A certificate that was handed on can be checked, also after the key was rotated; one that was changed, or that its node no
// longer holds, is told for what it is. The agent trusts both keys.
func TestCertificatesAreVerifiedOverARotation(t *testing.T) {
	s := plain(t, options{}, "gpu001")
	file := filepath.Join(s.dir, "cert.json")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cert := s.cli("cert", "show", "gpu001", "-o", "json")
	write(cert)
	if out := s.cli("cert", "verify", file); !strings.Contains(out, "valid") || strings.Contains(out, "invalid") {
		t.Errorf("a sound one: %s", out)
	}
	s.cli("cert", "rotate", "--reason", "yearly")
	if out := s.cli("cert", "verify", file); strings.Contains(out, "invalid") {
		t.Errorf("after a rotation: %s", out)
	}
	if out, err := s.CLI(s.ctx(), "cert", "rotate", "--reason", "again"); err == nil || !strings.Contains(err.Error(), "no longer be trusted") {
		t.Errorf("a rotation that would void a certificate: %v %s", err, out)
	}
	if a := s.ask("gpu001", "prolog"); a.exit != 0 {
		t.Errorf("the agent does not trust the key before: %+v", a)
	}
	write(strings.Replace(cert, `"gpu001"`, `"gpu002"`, 1))
	if out, err := s.CLI(s.ctx(), "cert", "verify", file); err == nil || !strings.Contains(err.Error(), "not what key") {
		t.Errorf("a changed one: %v %s", err, out)
	}
	write(cert)
	s.set("gpu001", 5, map[string]string{"remap_failed": "true"})
	s.awaitNode("gpu001", "its certificate revoked", func(n wire.Node) bool { return n.Certificate == nil })
	if out := s.cli("cert", "verify", file); !strings.Contains(out, "revoked") {
		t.Errorf("a revoked one: %s", out)
	}
}
