package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/assay-gpu/assay/coordinator/wire"
)

// A trio is a site whose control hosts, "assayd", "assayd2" and "assayd3", keep their state in an embedded etcd of three members.
type trio struct {
	*site
	peers map[string]string // etcd_peer, by name
}

var trioNames = []string{"assayd", "assayd2", "assayd3"}

// newTrio starts the first, which hears the others from the start, with two nodes.
func newTrio(t *testing.T) *trio {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a whole site")
	}
	c := &trio{peers: map[string]string{}}
	var held []net.Listener
	for _, n := range trioNames {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		held, c.peers[n] = append(held, ln), "https://"+ln.Addr().String()
	}
	for _, ln := range held {
		ln.Close()
	}
	c.site = plain(t, options{control: []string{"--etcd-peer", c.peers["assayd"]}}, "gpu001", "gpu002")
	return c
}

// flags are those of one control host.
func (c *trio) flags(name string) []string {
	c.t.Helper()
	var urls []string
	for _, n := range trioNames {
		url, err := c.ControlURL(n)
		if err != nil {
			c.t.Fatal(err)
		}
		urls = append(urls, url)
	}
	return []string{"--etcd-peer", c.peers[name], "--peers", strings.Join(urls, ",")}
}

// command is assayd's, as its config file would have it.
func (c *trio) command(ctx context.Context, name, verb string, args ...string) *exec.Cmd {
	argv := append([]string{verb, "--name", name, "--state-dir", filepath.Join(c.dir, name)}, c.flags(name)...)
	return exec.CommandContext(ctx, c.Bin("assayd"), append(argv, args...)...)
}

func (c *trio) run(name, verb string, args ...string) string {
	c.t.Helper()
	out, err := c.command(c.ctx(), name, verb, args...).CombinedOutput()
	if err != nil {
		c.t.Fatalf("assayd %s on %s: %v\n%s", verb, name, err, out)
	}
	return string(out)
}

func (c *trio) start(name string) {
	c.t.Helper()
	if err := c.StartControl(c.ctx(), name, c.flags(name), nil); err != nil {
		c.t.Fatal(err)
	}
}

// join invites a host on another and lets it join, killed on its way at three moments.
func (c *trio) join(from, name string) {
	c.t.Helper()
	file := filepath.Join(c.dir, name+".json")
	c.run(from, "invite", name, "--at", c.peers[name], "--write", file)
	for _, after := range []time.Duration{100 * time.Millisecond, 400 * time.Millisecond, 900 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(c.ctx(), after)
		out, err := c.command(ctx, name, "join", file).CombinedOutput()
		cancel()
		c.t.Logf("join, killed after %v: %v %s", after, err, out)
	}
	if out := c.run(name, "join", file); !strings.Contains(out, "has caught up") {
		c.t.Errorf("join: %s", out)
	}
	if out := c.run(from, "members"); !strings.Contains(out, name+" ") || !strings.Contains(out, "joining") {
		c.t.Errorf("members while %s joins:\n%s", name, out)
	}
	c.start(name)
	c.until(name+" votes", func() bool {
		return strings.Contains(c.run(from, "members"), fmt.Sprintf("%s  %s  votes", name, c.peers[name]))
	})
}

// Two hosts join the control plane of one while its agents run, and their agents know of them. The one that was there first dies;
// another leads, and the agents, which were enrolled with the first alone, follow it. The dead one is removed; when it comes
// back, it ends and says why.
func TestControlHostsJoin(t *testing.T) {
	c := newTrio(t)
	before := c.nodes()
	c.Control("assayd").Kill(syscall.SIGKILL)
	c.start("assayd") // now it names the others to agents
	c.join("assayd", "assayd2")
	c.join("assayd2", "assayd3")
	c.await("certificates as before", func(ns map[string]wire.Node) bool {
		for name, was := range before {
			if n := ns[name]; n.Certificate == nil || n.Certificate.Serial != was.Certificate.Serial || n.State != was.State {
				return false
			}
		}
		return true
	})

	c.Control("assayd").Kill(syscall.SIGKILL)
	died := time.Now()
	c.until("another leads", func() bool {
		for _, n := range trioNames[1:] {
			c.Ask(n)
			if _, err := c.CLI(c.ctx(), "node", "list"); err == nil {
				t.Logf("%s answers %v after the death", n, time.Since(died).Round(10*time.Millisecond))
				return true
			}
		}
		return false
	})
	c.set("gpu002", 3, map[string]string{"remap_failed": "true"})
	c.awaitNode("gpu002", "out of service, by its agent's report to the new leader", func(n wire.Node) bool { return n.State == "quarantined" && n.Certificate == nil })

	if out, err := c.command(c.ctx(), "assayd2", "leave", "assayd2").CombinedOutput(); err == nil || !strings.Contains(string(out), "is this host") {
		t.Errorf("removed itself: %v %s", err, out)
	}
	c.run("assayd2", "leave", "assayd")
	if out := c.run("assayd3", "members"); strings.Contains(out, "assayd ") || !strings.Contains(out, "assayd2 ") {
		t.Errorf("members:\n%s", out)
	}
	back, log := c.command(c.ctx(), "assayd", "serve", "--listen", "127.0.0.1:0", "--advertise", "https://127.0.0.1:1", "--socket", filepath.Join(c.dir, "gone.sock"), "--workload-manager", "none"), filepath.Join(c.dir, "gone.log")
	f, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	back.Stderr = f
	if err := back.Run(); err == nil {
		t.Error("a removed host serves")
	}
	if said, _ := os.ReadFile(log); !strings.Contains(string(said), "removed") {
		t.Errorf("a removed host says:\n%s", said)
	}
}
