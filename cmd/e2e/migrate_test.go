package e2e

import (
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/assay-gpu/assay/coordinator/store/etcdtest"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// The store moves from the embedded etcd to an external one while the agents run. Certificates hold on, with their serials, and
// the agents take what the new store's leader wants of them.
func TestMigrateToAnExternalEtcd(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a whole site")
	}
	etcd := etcdtest.Start(t)
	s := plain(t, options{}, "gpu001", "gpu002")
	before := s.nodes()
	migrate := func() (string, error) {
		out, err := exec.Command(s.Bin("assayd"), "migrate", "--state-dir", filepath.Join(s.dir, "assayd"), "--etcd-endpoints", etcd.Endpoints[0]).CombinedOutput()
		return string(out), err
	}
	s.Control("assayd").Kill(syscall.SIGKILL)
	if out, err := migrate(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if out, err := migrate(); err == nil {
		t.Errorf("moved over what was there: %s", out)
	}
	if err := s.StartControl(s.ctx(), "assayd", []string{"--etcd-endpoints", etcd.Endpoints[0]}, nil); err != nil {
		t.Fatal(err)
	}
	s.await("both nodes certified as before", func(ns map[string]wire.Node) bool {
		for name, was := range before {
			if n := ns[name]; n.Certificate == nil || n.Certificate.Serial != was.Certificate.Serial {
				return false
			}
		}
		return true
	})
	s.set("gpu002", 3, map[string]string{"remap_failed": "true"})
	s.awaitNode("gpu002", "out of service, by its agent's report", func(n wire.Node) bool { return n.State == "quarantined" && n.Certificate == nil })
	var k wire.Case
	s.until("evidence, which the agent was told to gather", func() bool {
		s.show(&k, "case", "show", s.nodes()["gpu002"].Case)
		return k.Gathered == "complete"
	})
}
