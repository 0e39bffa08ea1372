package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// A backup made before a fault is restored after it. The faulty node holds no certificate and gets none; the others get new
// ones with higher serials; nothing acts until somebody says so, and then the fault is dealt with.
func TestRestoreOfABackupOlderThanAFault(t *testing.T) {
	s := plain(t, options{}, "gpu001", "gpu002")
	before := s.nodes()
	file := filepath.Join(s.dir, "backup.gz")
	assayd := func(args ...string) (string, error) {
		out, err := exec.Command(s.Bin("assayd"), append(args, "--state-dir", filepath.Join(s.dir, "assayd"))...).CombinedOutput()
		return string(out), err
	}
	if out, err := assayd("backup", file); err != nil || !strings.Contains(out, " keys") {
		t.Fatalf("backup beside the running assayd: %v %s", err, out)
	}
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the keys are in it: %v, %v", st.Mode(), err)
	}
	s.set("gpu002", 3, map[string]string{"remap_failed": "true"}) // which nothing mends
	s.awaitNode("gpu002", "its certificate revoked", func(n wire.Node) bool { return n.Certificate == nil })
	if out, err := assayd("restore", file); err == nil {
		t.Errorf("restored under a running assayd: %s", out)
	}
	s.Control("assayd").Kill(syscall.SIGKILL)
	if out, err := assayd("restore", file); err == nil || !strings.Contains(out, "holds data") {
		t.Errorf("restored over what was there: %v %s", err, out)
	}
	if err := os.Rename(filepath.Join(s.dir, "assayd", "etcd"), filepath.Join(s.dir, "assayd", "etcd.old")); err != nil {
		t.Fatal(err)
	}
	if out, err := assayd("restore", "--check", file); err != nil || !strings.Contains(out, "2 nodes") {
		t.Errorf("check: %v %s", err, out)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(s.dir, "cut.gz")
	if err := os.WriteFile(cut, whole[:len(whole)-20], 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := assayd("restore", cut); err == nil {
		t.Errorf("restored from half a backup: %s", out)
	}
	if out, err := assayd("restore", file); err != nil || !strings.Contains(out, "void: 2 certificates") {
		t.Fatalf("restore: %v %s", err, out)
	}

	if err := s.StartControl(s.ctx(), "assayd", nil, nil); err != nil {
		t.Fatal(err)
	}
	n := s.awaitNode("gpu001", "a new certificate", func(n wire.Node) bool { return n.Certificate != nil })
	if n.Certificate.Serial <= before["gpu001"].Certificate.Serial+1000 {
		t.Errorf("serial %d after %d", n.Certificate.Serial, before["gpu001"].Certificate.Serial)
	}
	if n := s.nodes()["gpu002"]; n.Certificate != nil {
		t.Errorf("the faulty node holds certificate %d", n.Certificate.Serial)
	}
	if p := s.policy(); p.Mode != policy.Observe {
		t.Errorf("policy is %s after a restore", p.Mode)
	}
	if g := s.guard(); g.Restored.IsZero() {
		t.Error("guard show does not tell of the restore")
	}
	s.until("every node to have reported", func() bool {
		_, err := s.CLI(s.ctx(), "guard", "reset", "--reason", "all nodes are back")
		return err == nil || !strings.Contains(err.Error(), "not every node has reported")
	})
	if p := s.policy(); p.Mode != policy.Act {
		t.Errorf("policy is %s after the reset", p.Mode)
	}
	if out, err := s.CLI(s.ctx(), "guard", "reset", "--reason", "again"); err == nil {
		t.Errorf("reset twice: %s", out)
	}
	s.awaitNode("gpu002", "out of service", func(n wire.Node) bool { return n.State == "quarantined" && n.Certificate == nil })
	var trips struct {
		Trips []string `json:"trips"`
	}
	if err := json.Unmarshal([]byte(s.cli("guard", "show", "-o", "json")), &trips); err != nil || len(trips.Trips) == 0 {
		t.Errorf("history of the guard: %v, %v", trips, err)
	}
}
