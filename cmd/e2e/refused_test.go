package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/coordinator/slurm"
	"github.com/assay-gpu/assay/coordinator/slurm/slurmtest"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// byProlog makes prologs the only ones to look: agents read at their start and then an hour later, and a snapshot counts
// for a second, so that what breaks right before a job is found by the job's own prolog.
func byProlog(o options) options {
	o.agent = append(o.agent, "--interval", "1h")
	o.policy.more += "hooks:\n  snapshot_age: 1s\n"
	return o
}

// (c) In a 4-node batch job one prolog finds a row remap table full: our reason survives the hook's exit 1, the job runs on
// other nodes within a minute with no human command, and its seven neighbours are undrained.
func TestPrologRefusesAGang(t *testing.T) {
	for _, tt := range []struct {
		name       string
		parameters string
		held       bool // Slurm holds the job, so that it is for assay to release it
	}{
		{"Slurm holds the job", "", true},
		{"nohold_on_prolog_fail", "nohold_on_prolog_fail", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := start(t, byProlog(options{cluster: slurmtest.Options{SchedulerParameters: tt.parameters}}))
			s.adopt()
			certs := s.nodes()
			his := s.submit("true", "--begin=now+1hour")
			s.cluster.Run("scontrol", "hold", his)

			// Half the fleet is busy for a while, so that the job begins on the half with the faulty node.
			busy := s.submit("sleep 4", "-w", "gpu[005-008]", "--exclusive", "--gres=gpu:8")
			s.cluster.WaitJob(busy, "RUNNING", limit)
			time.Sleep(1100 * time.Millisecond) // the snapshots of adoption's prologs are too old by then
			s.set("gpu002", 5, map[string]string{"remap_failed": "true"})
			job, submitted := s.submit("sleep 1", "-N4", "--exclusive", "--gres=gpu:8"), time.Now()

			out := s.awaitNode("gpu002", "refused", func(n wire.Node) bool { return n.Case != "" && s.hookCount("gpu002", "prolog", "refused") == 1 })
			s.cluster.WaitJob(job, "COMPLETED", time.Minute-time.Since(submitted))

			bad := s.cluster.Node("gpu002")
			if !bad.Drained() || !strings.HasPrefix(bad.Reason, "assay:"+out.Case+" ") || !strings.Contains(bad.Reason, "row") || !strings.Contains(bad.Reason, "GPU 5") {
				t.Errorf("gpu002 is %s, reason %q; want it drained for our case, the row remapper and GPU 5", slurm.StateText(bad), bad.Reason)
			}
			if log := s.cluster.SlurmdLog("gpu002"); !strings.Contains(log, "prolog failed: rc:1 output:assay: assay:"+out.Case+" ") {
				t.Errorf("slurmd's log does not say why the hook exited 1:\n%s", log)
			}
			if log := s.cluster.SlurmctldLog(); !strings.Contains(log, "Prolog launch failure, JobId="+job) || strings.Contains(log, "Prolog error") {
				t.Error(`slurmctld's log: want the launch failure in it, and "Prolog error" nowhere`)
			}
			if c := s.caseOf(out.Case); c.Cause != "rowremap" || !c.Closed.IsZero() {
				t.Errorf("case %+v; want an open one of rowremap", c)
			}
			now := s.nodes()
			for _, name := range s.cluster.Nodes {
				if name == "gpu002" {
					continue
				}
				if n := s.cluster.Node(name); n.Drained() || n.Reason != "" {
					t.Errorf("%s is %s, reason %q", name, slurm.StateText(n), n.Reason)
				}
				if us := s.updates(name); len(us) > 0 {
					t.Errorf("%s was touched: %v", name, us)
				}
				if !healthy(now[name]) || now[name].Certificate.Serial != certs[name].Certificate.Serial {
					t.Errorf("%s no longer holds its certificate: %+v", name, now[name])
				}
			}

			if got, want := s.releases("gpu002", job), map[bool]int{true: 1}[tt.held]; got != want {
				t.Errorf("released %d times by us, want %d\n%s", got, want, s.text("gpu002"))
			}
			if got := s.cluster.Job(his); got != "PENDING JobHeldAdmin" {
				t.Errorf("a job that a person held before is %s", got)
			}
		})
	}
}

// A job that assay turned away and released, and that a person then holds, is his: it is not released again.
func TestPersonHoldsARefusedJob(t *testing.T) {
	s := start(t, byProlog(options{}))
	s.adopt()
	time.Sleep(1100 * time.Millisecond)
	s.set("gpu003", 1, map[string]string{"remap_failed": "true"})
	job := s.submit("true", "-w", "gpu003", "--exclusive", "--gres=gpu:8") // nowhere else, so it waits after its release
	s.awaitNode("gpu003", "refused, and the job released", func(n wire.Node) bool {
		return n.Case != "" && s.releases("gpu003", job) == 1 && !strings.Contains(s.cluster.Job(job), "held")
	})
	s.cluster.Run("scontrol", "hold", job)
	for until := time.Now().Add(5 * time.Second); time.Now().Before(until); time.Sleep(250 * time.Millisecond) { // ten reads of Slurm
		if got := s.cluster.Job(job); got != "PENDING JobHeldAdmin" {
			t.Fatalf("the job is %s", got)
		}
	}
	if got := s.releases("gpu003", job); got != 1 {
		t.Errorf("released %d times", got)
	}
}

// releases is how often assay released the job after a refusal on the node.
func (s *site) releases(node, job string) int {
	s.t.Helper()
	n := 0
	for _, e := range s.hist(node) {
		if strings.HasPrefix(e.Event, "release job="+job+" ") {
			n++
		}
	}
	return n
}

// nodes are all nodes, by name.
func (s *site) nodes() map[string]wire.Node {
	s.t.Helper()
	ns, err := s.Nodes(s.ctx())
	if err != nil {
		s.t.Fatal(err)
	}
	return ns
}
