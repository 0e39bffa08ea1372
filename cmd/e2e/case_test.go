package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/assay-gpu/assay/agent/sim"
	"github.com/assay-gpu/assay/coordinator/store/etcdtest"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// two is a plain site with two control hosts on one etcd: "assayd" leads, "assayd2" waits.
func two(t *testing.T, o options, nodes ...string) *site {
	t.Helper()
	etcd := etcdtest.Start(t)
	o.control = append(o.control, "--etcd-endpoints", etcd.Endpoints[0])
	s := unenrolled(t, o, nodes...)
	s.Control("assayd").Kill(syscall.SIGKILL) // it knows nothing of the other yet
	var peers []string
	for _, n := range []string{"assayd", "assayd2"} {
		url, err := s.ControlURL(n)
		if err != nil {
			t.Fatal(err)
		}
		peers = append(peers, url)
	}
	for _, n := range []string{"assayd", "assayd2"} {
		if err := s.StartControl(s.ctx(), n, []string{"--peers", strings.Join(peers, ",")}, nil); err != nil {
			t.Fatal(err)
		}
		s.Ask("assayd")
		s.await("assayd to lead", func(map[string]wire.Node) bool { return true })
	}
	for _, n := range nodes {
		s.startAgent(n)
	}
	s.certify(nodes...)
	return s
}

// A fault's evidence is on both control hosts before the node is rebooted, can be fetched and judged again, and the case says
// what people did. Its timeline outlives history.
func TestCaseKeepsItsEvidenceOnTwoHosts(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a whole site")
	}
	report := filepath.Join(t.TempDir(), "report")
	if err := os.WriteFile(report, []byte("#!/bin/sh\necho the driver says >\"$1\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := two(t, options{agent: []string{"--report-command", report + " {file}"}}, "gpu001", "gpu002")
	if err := sim.XID(s.Hardware("gpu001"), 3, 79, ""); err != nil {
		t.Fatal(err)
	}
	n := s.awaitNode("gpu001", "a case", func(n wire.Node) bool { return n.Case != "" })
	var k wire.Case
	s.until("evidence", func() bool {
		s.show(&k, "case", "show", n.Case)
		return k.Gathered == "complete" || k.Gathered == "partial"
	})
	if k.Gathered != "complete" || len(k.OnNode) > 0 {
		t.Fatalf("evidence is %s, on the node alone: %v; %s", k.Gathered, k.OnNode, s.text("gpu001"))
	}
	for _, name := range []string{"kernel.log", "snapshot.json", "policy.json", "nvidia-bug-report.log"} {
		sum := k.Evidence[name]
		if sum == "" {
			t.Errorf("no %s: %v", name, k.Evidence)
			continue
		}
		for _, host := range []string{"assayd", "assayd2"} {
			if _, err := os.Stat(filepath.Join(s.dir, host, "evidence", sum[:2], sum)); err != nil {
				t.Errorf("%s on %s: %v", name, host, err)
			}
		}
	}
	// The leader's copies are lost: they come from the other host.
	if err := os.RemoveAll(filepath.Join(s.dir, "assayd", "evidence", k.Evidence["kernel.log"][:2])); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(s.dir, "fetched")
	if out, err := s.CLI(s.ctx(), "case", "show", k.ID, "--fetch", dir); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	out, err := exec.Command(s.Bin("assay-agent"), "check", "--from", dir).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "79") {
		t.Errorf("judged again: %v\n%s", err, out)
	}

	for _, args := range [][]string{
		{"case", "take", k.ID, "--reason", "I look at the riser"},
		{"case", "note", k.ID, "the same slot as in March"},
		{"case", "take", k.ID, "--back", "--reason", "riser swapped"},
	} {
		if out, err := s.CLI(s.ctx(), args...); err != nil {
			t.Fatalf("%v: %v %s", args, err, out)
		}
	}
	s.awaitNode("gpu001", "back in service", healthy)
	s.show(&k, "case", "show", k.ID)
	if k.Closed.IsZero() || !timeline(k, "note text=", "the same slot") || !timeline(k, "verb=take", "riser") || !timeline(k, "hard_fault", "code=79") {
		t.Errorf("closed %v, timeline %+v", k.Closed, k.Timeline)
	}
	if out, err := s.CLI(s.ctx(), "case", "extend", k.ID, "--for", "1h", "--reason", "x"); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("extend a closed case: %v %s", err, out)
	}
}

func timeline(k wire.Case, words ...string) bool {
	return slices.ContainsFunc(k.Timeline, func(h wire.HistoryEntry) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(h.Event, w) })
	})
}
