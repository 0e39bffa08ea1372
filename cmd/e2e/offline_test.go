package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/coordinator/slurm"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// (f) With assayd down for the whole job, healthy nodes still pass on their certificates; the epilog's reports wait on disk
// and are delivered when assayd is back.
func TestJobWhileControlPlaneIsDown(t *testing.T) {
	// Agents read at their start and then an hour later: what breaks under the job is found by its epilog alone.
	s := start(t, options{agent: []string{"--interval", "1h"}})
	s.adopt()
	before := map[string]int{}
	for _, n := range s.cluster.Nodes {
		before[n] = s.hookCount(n, "prolog", "fast_pass")
		s.awaitSpool(n, 0)
	}
	certs := s.nodes()

	s.Control("assayd").Kill(syscall.SIGKILL)
	job := s.submit("sleep 3", "-N8", "--exclusive", "--gres=gpu:8")
	s.cluster.WaitJob(job, "RUNNING", limit)
	s.set("gpu006", 4, map[string]string{"volatile_uncorrected": "1"})
	s.cluster.WaitJob(job, "COMPLETED", limit)
	for _, n := range s.cluster.Nodes {
		s.cluster.WaitNode(n, "idle", limit, idle)
		if after := s.hookCount(n, "prolog", "fast_pass"); after != before[n]+1 {
			t.Errorf("prologs on %s that passed on the certificate alone: %d, then %d; want one more", n, before[n], after)
		}
		r, ok := s.spooled(n, job)
		if !ok || r.Why != checks.WhyEpilog || (r.Verdict == checks.Fail) != (n == "gpu006") {
			t.Errorf("%s keeps %+v of job %s; want its epilog's report, a fault on gpu006 only", n, r, job)
		}
	}

	if err := s.StartControl(s.ctx(), "assayd", nil, nil); err != nil {
		t.Fatal(err)
	}
	for _, n := range s.cluster.Nodes {
		s.awaitSpool(n, 0)
	}
	out := s.awaitNode("gpu006", "suspect", func(n wire.Node) bool { return n.Case != "" })
	c := s.caseOf(out.Case)
	if c.Cause != "ecc" || len(c.Findings) == 0 || c.Findings[0].Subject.GPUIndex == nil || *c.Findings[0].Subject.GPUIndex != 4 {
		t.Errorf("case %+v; want the epilog's finding: ecc on GPU 4", c)
	}
	if h := s.text("gpu006"); !strings.Contains(h, "job=(id="+job+" ") {
		t.Errorf("history of gpu006 does not name job %s:\n%s", job, h)
	}
	for name, n := range s.nodes() {
		if name == "gpu006" {
			continue
		}
		if !healthy(n) || n.Certificate.Serial != certs[name].Certificate.Serial {
			t.Errorf("%s is %s with certificate %+v; want the one it had, and nothing to do", name, n.State, n.Certificate)
		}
		if got := s.cluster.Node(name); got.Drained() {
			t.Errorf("%s is drained: %s", name, got.Reason)
		}
	}
}

// spooled is the report of a job that a node's agent keeps on disk.
func (s *site) spooled(node, job string) (found checks.Report, ok bool) {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(s.StateDir(node), "spool", "*.json"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // sent in the meantime
		}
		var r checks.Report
		if err := json.Unmarshal(b, &r); err != nil {
			s.t.Errorf("%s: %v", f, err)
		}
		if r.Job != nil && r.Job.ID == job {
			found, ok = r, true
		}
	}
	return found, ok
}

// awaitSpool waits until so many reports wait on a node's disk.
func (s *site) awaitSpool(node string, want int) {
	s.t.Helper()
	var files []string
	for until := time.Now().Add(limit); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		if files, _ = filepath.Glob(filepath.Join(s.StateDir(node), "spool", "*.json")); len(files) == want {
			return
		}
	}
	s.t.Fatalf("%d reports wait on %s, want %d", len(files), node, want)
}

// idle is in service with no job on it.
func idle(n slurm.Node) bool {
	return n.State == "IDLE" && !n.Drained() && !n.Has(slurm.FlagCompleting)
}
