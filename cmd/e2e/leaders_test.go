package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/assay-gpu/assay/agent/sim"
	"github.com/assay-gpu/assay/coordinator/slurm"
	"github.com/assay-gpu/assay/coordinator/store/etcdtest"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// lease is assayd's default.
const lease = 4 * time.Second

// A pair is a site with two control hosts on an etcd of its own. "assayd" leads, "assayd2" waits. Each calls scontrol through
// a script that writes down what it is asked.
type pair struct {
	*site
	tools string // directory of the scripts, their logs, and what slows them
}

// newPair starts it with an adopted fleet. env is the first leader's.
func newPair(t *testing.T, deadline time.Duration, env ...string) *pair {
	t.Helper()
	etcd := etcdtest.Start(t)
	s := start(t, byProlog(options{
		// The same fault on four nodes is no storm here.
		policy:  policyOf{guard: "  fleet_hour_share: 1\n  fleet_day_share: 1\n  reason_hour_share: 1\n  leaf_hour_share: 1\n  storm_nodes: 8\n"},
		control: []string{"--etcd-endpoints", etcd.Endpoints[0], "--slurm-deadline", deadline.String()},
	}))
	p := &pair{s, t.TempDir()}
	p.Control("assayd").Kill(syscall.SIGKILL) // it knows nothing of the other yet
	p.startControl("assayd", env)
	p.await("the first to lead", func(map[string]wire.Node) bool { return true })
	p.startControl("assayd2", nil)
	p.adopt()
	return p
}

// startControl starts one of the two, which knows the other and has a scontrol of its own.
func (p *pair) startControl(name string, env []string) {
	p.t.Helper()
	var peers []string
	for _, n := range []string{"assayd", "assayd2"} {
		url, err := p.ControlURL(n)
		if err != nil {
			p.t.Fatal(err)
		}
		peers = append(peers, url)
	}
	// The call waits while the file "slow" is there: long enough that its caller can be stopped meanwhile.
	script := fmt.Sprintf("#!/bin/sh\necho \"$*\" >>%s\ncase \"$*\" in *state=drain*) [ ! -e %s/slow ] || sleep 2 ;; esac\nexec scontrol \"$@\"\n",
		p.calls(name), p.tools)
	file := filepath.Join(p.tools, "scontrol."+name)
	if err := os.WriteFile(file, []byte(script), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := p.StartControl(p.ctx(), name, []string{"--peers", strings.Join(peers, ","), "--scontrol", file}, env); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pair) calls(name string) string { return filepath.Join(p.tools, "calls."+name) }

// changes are the calls of one's scontrol that change something, in order.
func (p *pair) changes(name string) []string {
	p.t.Helper()
	b, err := os.ReadFile(p.calls(name))
	if err != nil {
		p.t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(b)) {
		if !strings.HasPrefix(line, "show ") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

func (p *pair) fall(node string) {
	p.t.Helper()
	if err := sim.FallOffBus(p.Hardware(node), 3); err != nil {
		p.t.Fatal(err)
	}
}

// toldOnce wants exactly one drain, one reboot and one resume of the node in slurmctld's log.
func (p *pair) toldOnce(node string) {
	p.t.Helper()
	for what, line := range map[string]string{
		"drains": "update_node: node " + node + " reason set to: assay:", "reboots": "reboot request queued for nodes " + node + "$",
		"resumes": "update_node: node " + node + " state set to IDLE",
	} {
		if n := len(regexp.MustCompile("(?m)"+line).FindAllString(p.cluster.SlurmctldLog(), -1)); n != 1 {
			p.t.Errorf("%s: %d %s in slurmctld's log, want 1\n%s", node, n, what, strings.Join(p.updates(node), "\n"))
		}
	}
}

// back waits until the nodes are certified anew since the serials before, and in service.
func (p *pair) back(before map[string]wire.Node, names ...string) {
	p.t.Helper()
	for _, name := range names {
		p.awaitNode(name, "back in service", func(n wire.Node) bool {
			return healthy(n) && n.Certificate.Serial > before[name].Certificate.Serial && n.Slurm != nil && !strings.Contains(n.Slurm.State, slurm.FlagDrain)
		})
	}
}

// (h) The leader is stopped for a minute while its scontrol is at work; the other leads, and the agents follow it. When the
// first goes on, it believes for a moment that it leads and has a drain to make: it makes none.
func TestStoppedLeaderActsNoMore(t *testing.T) {
	p := newPair(t, 3*time.Second)
	before := p.nodes()
	slow := filepath.Join(p.tools, "slow")
	if err := os.WriteFile(slow, nil, 0o644); err != nil {
		t.Fatal(err)
	}

	p.fall("gpu001")
	p.awaitNode("gpu001", "in the hands of scontrol", func(wire.Node) bool { return len(p.changes("assayd")) == 1 })
	p.fall("gpu002") // behind it, in the leader's memory when it goes on
	p.awaitNode("gpu002", "draining", state("draining"))
	leader := p.Control("assayd")
	leader.Signal(syscall.SIGSTOP)
	stopped := time.Now()
	if n := p.cluster.Node("gpu001"); n.Drained() {
		t.Fatal("scontrol had ended before its leader was stopped")
	}
	if err := os.Remove(slow); err != nil {
		t.Fatal(err)
	}
	p.cluster.WaitNode("gpu001", "drained by the child of a stopped leader", 3*time.Second, slurm.Node.Drained)

	p.Ask("assayd2")
	p.fall("gpu003") // nobody has heard of this one
	p.back(before, "gpu001", "gpu002", "gpu003")
	t.Logf("all three are back after %v", time.Since(stopped).Round(time.Second))

	time.Sleep(time.Until(stopped.Add(time.Minute)))
	did, log := p.changes("assayd"), len(p.cluster.SlurmctldLog())
	leader.Signal(syscall.SIGCONT)
	time.Sleep(lease + 3*time.Second + time.Second) // it has had the time that any leader waits, and more
	if now := p.changes("assayd"); len(did) != 1 || len(now) != 1 {
		t.Errorf("the first leader's changes in Slurm: %q until it went on, then %q; want the one drain that it began", did, now)
	}
	for _, line := range strings.Split(p.cluster.SlurmctldLog()[log:], "\n") {
		if strings.Contains(line, "update_node:") || strings.Contains(line, "reboot request") {
			t.Errorf("slurmctld was told, after the first leader went on: %s", line)
		}
	}
	if !leader.Running() {
		t.Fatal("the first leader ended")
	}

	p.fall("gpu004")
	p.back(before, "gpu004")
	for _, n := range []string{"gpu001", "gpu002", "gpu003", "gpu004"} {
		p.toldOnce(n)
	}
	if now := p.changes("assayd"); len(now) != 1 {
		t.Errorf("as a follower the first leader did %q", now[1:])
	}
}

// Of two control hosts the leader dies right after its scontrol has drained a node, which etcd does not know yet. The other
// leads and commits within one lease. What is to be done in Slurm waits one lease and one scontrol deadline more. Each drain
// is made once.
func TestLeaderDies(t *testing.T) {
	const deadline = 2 * time.Second
	p := newPair(t, deadline, "ASSAY_KILLPOINT=slurm/drain/after")
	before := p.nodes()
	leader := p.Control("assayd")

	p.fall("gpu001")
	p.fall("gpu002") // another case, so another call: it is not made by this leader
	select {
	case <-leader.Done():
	case <-time.After(limit):
		t.Fatal("the leader came to no drain")
	}
	died := time.Now()
	p.Ask("assayd2")
	for {
		if _, err := p.CLI(p.ctx(), "node", "enroll", "gpu009"); err == nil { // a token is a commit
			break
		} else if time.Since(died) > limit {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	led := time.Since(died)
	t.Logf("the other leads and has committed %v after the death", led.Round(10*time.Millisecond))
	if led > lease {
		t.Errorf("the other led after %v, want at most one lease, %v", led, lease)
	}

	var drained []string
	for _, n := range []string{"gpu001", "gpu002"} {
		if p.cluster.Node(n).Drained() {
			drained = append(drained, n)
		}
	}
	if len(drained) != 1 {
		t.Fatalf("drained while nobody may act: %v, want the one that the dead leader drained", drained)
	}
	other := map[string]string{"gpu001": "gpu002", "gpu002": "gpu001"}[drained[0]]
	p.cluster.WaitNode(other, "drained", limit, slurm.Node.Drained)
	acted := time.Since(died)
	t.Logf("its first drain came %v after the death", acted.Round(10*time.Millisecond))
	if wait := lease + deadline; acted < wait || acted > led+wait+2*time.Second {
		t.Errorf("the first drain came %v after the death, want one lease and one deadline, %v, after the other led at %v", acted, wait, led)
	}
	p.back(before, "gpu001", "gpu002")
	p.toldOnce("gpu001")
	p.toldOnce("gpu002")
}
