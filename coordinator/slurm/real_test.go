package slurm_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/coordinator/slurm"
	"github.com/assay-gpu/assay/coordinator/slurm/slurmtest"
)

const mine = "assay:Q-7F3K xid 79 GPU 3 off the bus"

// prolog waits where DIR/wait.NODE stands until DIR/go.NODE does, and fails where DIR/fail.NODE stands. Hooks have no
// PATH.
const prolog = `#!/bin/sh
if [ -e DIR/wait.$SLURMD_NODENAME ]; then
	: > DIR/reached.$SLURMD_NODENAME
	while [ ! -e DIR/go.$SLURMD_NODENAME ]; do /bin/sleep 0.05; done
fi
[ ! -e DIR/fail.$SLURMD_NODENAME ]
`

// real is a cluster of eight nodes with that prolog.
type real struct {
	*slurmtest.Cluster
	t   *testing.T
	dir string
}

func (r real) touch(name string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), nil, 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r real) remove(name string) {
	r.t.Helper()
	if err := os.Remove(filepath.Join(r.dir, name)); err != nil {
		r.t.Fatal(err)
	}
}

func (r real) await(what string, ok func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(30 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("not within 20 s: %s", what)
		}
	}
}

func (r real) drain(c *slurm.Client, nodes ...string) {
	r.t.Helper()
	var orders []slurm.DrainOrder
	for _, n := range nodes {
		orders = append(orders, slurm.DrainOrder{Node: n, Reason: mine})
	}
	for _, res := range c.Drain(r.t.Context(), orders) {
		if res.Err != nil {
			r.t.Fatal(res.Err)
		}
	}
}

func (r real) clear(nodes string) {
	r.t.Helper()
	r.Run("scontrol", "update", "nodename="+nodes, "state=resume")
}

func isChanged(err error) bool {
	var ce *slurm.ChangedError
	return errors.As(err, &ce)
}

// TestRealSlurm runs the client against a real slurmctld and eight slurmd.
func TestRealSlurm(t *testing.T) {
	slurmtest.Require(t)
	dir := t.TempDir()
	hook := filepath.Join(dir, "prolog")
	if err := os.WriteFile(hook, []byte(strings.ReplaceAll(prolog, "DIR", dir)), 0o755); err != nil {
		t.Fatal(err)
	}
	cluster := slurmtest.Start(t, slurmtest.Options{Prolog: hook})
	c := cluster.Client(nil)
	for _, story := range []struct {
		name string
		run  func(real, *slurm.Client)
	}{
		{"reads", testReads},
		{"our reason survives the hook's exit 1", testReasonSurvives},
		{"a plain prolog error is Slurm's own, and may be taken over", testPrologError},
		{"an administrator's drain is left alone", testForeignDrain},
		{"a resume needs all that it expected", testResume},
		{"a drain is written once", testDrainOnce},
		{"holds by people stay", testHolds},
		{"requeue and cancel", testJobs},
		{"reboot, then resume", testReboot},
		{"slurmctld away", testAway},
	} {
		t.Run(story.name, func(t *testing.T) { story.run(real{cluster.With(t), t, dir}, c) })
	}
}

func testReads(r real, c *slurm.Client) {
	t := r.t
	nodes, err := c.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(nodes) != 8 {
		t.Fatalf("%d nodes", len(nodes))
	}
	for i, n := range nodes {
		if n.Name != fmt.Sprintf("gpu%d", i+1) || n.State != "IDLE" || len(n.Flags) != 0 || n.GPUs != 8 || n.BootTime.IsZero() || n.SlurmdStart.IsZero() || n.Partitions[0] != "gpu" {
			t.Errorf("%+v", n)
		}
	}
	leaves, err := c.Leaves(t.Context())
	if err != nil || len(leaves) != 8 || leaves["gpu4"] != "leaf1" || leaves["gpu5"] != "leaf2" {
		t.Errorf("leaves %v, %v", leaves, err)
	}
	s, err := c.Settings(t.Context())
	if err != nil || s.ResumeTimeout != slurm.MinResumeTimeout || s.RebootProgram == "" || len(s.PrologFlags) != 1 || s.PrologFlags[0] != "Alloc" || s.SlurmUser != "root" {
		t.Errorf("settings %+v, %v", s, err)
	}
	// A job's name, comment and directory are its user's to write; none of them is read.
	id := r.Submit("sleep 30", "--nodes=2", "--gres=gpu:8", "--job-name=x|RUNNING Priority=0 Reason=launch_failed_requeued_held\n9|PENDING||", "--comment=a|b")
	r.WaitJob(id, "RUNNING", 20*time.Second)
	jobs, err := c.Jobs(t.Context())
	if err != nil || len(jobs) != 1 {
		t.Fatalf("jobs %+v, %v", jobs, err)
	}
	if j := jobs[0]; j.ID != id || j.State != "RUNNING" || len(j.Nodes) != 2 || j.NumNodes != 2 || j.Priority == 0 || j.Restarts != 0 || !j.Requeue || j.User != "root" || !j.OnNodes() {
		t.Errorf("%+v", j)
	}
	if n := r.Node(jobs[0].Nodes[0]); n.Empty() || n.State == "IDLE" {
		t.Errorf("under a job: %+v", n)
	}
	r.Run("scancel", id)
	r.WaitJob(id, "CANCELLED", 20*time.Second)
}

// testReasonSurvives: in a four-node job one prolog drains its node with our reason, then exits 1. The reason stays ours,
// the job is held by Slurm, we release it by its signature, and it runs on other nodes.
func testReasonSurvives(r real, c *slurm.Client) {
	t := r.t
	r.touch("wait.gpu2")
	r.touch("fail.gpu2")
	id := r.Submit("exit 0", "--nodes=4", "--nodelist=gpu2", "--gres=gpu:8", "--output=/dev/null")
	r.await("the prolog on gpu2", func() bool { _, err := os.Stat(filepath.Join(r.dir, "reached.gpu2")); return err == nil })
	r.drain(c, "gpu2")
	r.touch("go.gpu2")
	r.WaitJob(id, "PENDING launch failed requeued held", 20*time.Second)
	if n := r.Node("gpu2"); n.Reason != mine || !n.Drained() {
		t.Errorf("after exit 1: %s %q", slurm.StateText(n), n.Reason)
	}
	nodes, err := c.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		if n.Drained() != (n.Name == "gpu2") {
			t.Errorf("%s is %s", n.Name, slurm.StateText(n))
		}
	}
	if err := c.Release(t.Context(), id, 2); !isChanged(err) {
		t.Errorf("released by a wrong restart count: %v", err)
	}
	r.Run("scontrol", "update", "jobid="+id, "reqnodelist=") // the story needs it to go elsewhere
	if err := c.Release(t.Context(), id, 1); err != nil {
		t.Fatal(err)
	}
	r.WaitJob(id, "COMPLETED", 40*time.Second)
	for _, f := range []string{"wait.gpu2", "fail.gpu2", "go.gpu2", "reached.gpu2"} {
		r.remove(f)
	}
	r.clear("gpu2")
}

func testPrologError(r real, c *slurm.Client) {
	t := r.t
	r.touch("fail.gpu3")
	id := r.Submit("exit 0", "--nodelist=gpu3", "--gres=gpu:8")
	r.WaitJob(id, "PENDING launch failed requeued held", 20*time.Second)
	r.remove("fail.gpu3")
	n := r.WaitNode("gpu3", "drained", 10*time.Second, slurm.Node.Drained)
	if n.Reason != slurm.ReasonProlog || !slurm.IsSlurmReason(n.Reason) {
		t.Errorf("reason %q", n.Reason)
	}
	seen := slurm.Observe(nil, slurm.View{At: time.Now(), Node: n}, slurm.Record{})
	if len(seen) != 1 || seen[0].Kind != slurm.Drained || !seen[0].BySlurm {
		t.Errorf("observed %+v", seen)
	}
	r.drain(c, "gpu3")
	if n = r.Node("gpu3"); n.Reason != mine {
		t.Errorf("reason %q", n.Reason)
	}
	r.Run("scancel", id)
	r.clear("gpu3")
}

func testForeignDrain(r real, c *slurm.Client) {
	t := r.t
	r.Run("scontrol", "update", "nodename=gpu4", "state=drain", "reason=bad fan, Ann")
	res := c.Drain(t.Context(), []slurm.DrainOrder{{Node: "gpu4", Reason: mine}, {Node: "gpu5", Reason: mine}})
	if !isChanged(res[0].Err) || res[1].Err != nil {
		t.Errorf("%+v", res)
	}
	for name, err := range map[string]error{
		"reason": c.SetReason(t.Context(), "gpu4", mine, nil),
		"resume": c.Resume(t.Context(), "gpu4", slurm.Expect{Reason: mine}),
		"reboot": c.Reboot(t.Context(), "gpu4", time.Now(), slurm.Expect{Reason: mine}),
	} {
		if !isChanged(err) {
			t.Errorf("%s of a foreign drain: %v", name, err)
		}
	}
	if n := r.Node("gpu4"); n.Reason != "bad fan, Ann" || !n.Drained() {
		t.Errorf("touched: %s %q", slurm.StateText(n), n.Reason)
	}
	r.clear("gpu[4-5]")
}

func testResume(r real, c *slurm.Client) {
	t := r.t
	r.drain(c, "gpu6")
	n := r.Node("gpu6")
	expect := slurm.Expect{Reason: mine, User: n.ReasonUser, Time: n.ReasonTime}

	r.Run("scontrol", "update", "nodename=gpu6", "reason=I look into it, Ann")
	if err := c.Resume(t.Context(), "gpu6", expect); !isChanged(err) {
		t.Errorf("resumed over another's reason: %v", err)
	}
	// The same text written again, later, is another drain.
	time.Sleep(1100 * time.Millisecond)
	r.Run("scontrol", "update", "nodename=gpu6", "reason="+mine)
	if err := c.Resume(t.Context(), "gpu6", expect); !isChanged(err) {
		t.Errorf("resumed a later drain: %v", err)
	}
	if !r.Node("gpu6").Drained() {
		t.Fatal("the drain is gone")
	}
	expect.Time = r.Node("gpu6").ReasonTime
	if err := c.Resume(t.Context(), "gpu6", expect); err != nil {
		t.Error(err)
	}
	if err := c.Resume(t.Context(), "gpu6", expect); !isChanged(err) {
		t.Errorf("resumed twice: %v", err)
	}
	id := r.Submit("exit 0", "--nodelist=gpu6", "--gres=gpu:8")
	r.WaitJob(id, "COMPLETED", 20*time.Second)
}

func testDrainOnce(r real, c *slurm.Client) {
	updates := func() int { return strings.Count(r.SlurmctldLog(), "reason set to: "+mine) }
	before := updates()
	r.drain(c, "gpu1", "gpu8", "gpu7")
	first := r.Node("gpu7")
	r.drain(c, "gpu7", "gpu8", "gpu1")
	if got := updates() - before; got != 3 {
		r.t.Errorf("%d updates for three nodes drained twice:\n%s", got, r.SlurmctldLog())
	}
	if again := r.Node("gpu7"); again.Reason != mine || !again.ReasonTime.Equal(first.ReasonTime) {
		r.t.Errorf("first %+v, then %+v", first, again)
	}
	r.clear("gpu[1,7-8]")
}

func testHolds(r real, c *slurm.Client) {
	t := r.t
	// They must not start before they are held.
	admin, user := r.Submit("exit 0", "--begin=now+1hour"), r.Submit("exit 0", "--begin=now+1hour")
	r.Run("scontrol", "hold", admin)
	r.Run("scontrol", "uhold", user)
	for id, want := range map[string]string{admin: "PENDING JobHeldAdmin", user: "PENDING JobHeldUser"} {
		r.WaitJob(id, want, 10*time.Second)
		if err := c.Release(t.Context(), id, slurm.AnyRestarts); !isChanged(err) {
			t.Errorf("%s: %v", want, err)
		}
		if got := r.Job(id); got != want {
			t.Errorf("%s became %s", want, got)
		}
	}
	r.Run("scancel", admin, user)
}

func testJobs(r real, c *slurm.Client) {
	t := r.t
	id := r.Submit("sleep 60", "--gres=gpu:1", "--requeue")
	r.WaitJob(id, "RUNNING", 20*time.Second)
	if err := c.Requeue(t.Context(), id, 3); !isChanged(err) {
		t.Errorf("requeued by a wrong restart count: %v", err)
	}
	if err := c.Requeue(t.Context(), id, 0); err != nil {
		t.Error(err)
	}
	if err := c.Requeue(t.Context(), id, 0); !isChanged(err) {
		t.Errorf("requeued twice: %v", err)
	}
	r.WaitJob(id, "RUNNING", 40*time.Second)
	if err := c.Cancel(t.Context(), id, 0); !isChanged(err) {
		t.Errorf("cancelled the job's second start for its first: %v", err)
	}
	if err := c.Cancel(t.Context(), id, 1); err != nil {
		t.Error(err)
	}
	r.WaitJob(id, "CANCELLED", 20*time.Second)

	stays := r.Submit("sleep 60", "--gres=gpu:1", "--no-requeue")
	r.WaitJob(stays, "RUNNING", 20*time.Second)
	var refused *slurm.RefusedError
	if err := c.Requeue(t.Context(), stays, 0); !errors.As(err, &refused) {
		t.Errorf("requeued a job that may not be: %v", err)
	}
	r.Run("scancel", stays)
	if err := c.Cancel(t.Context(), "999999", slurm.AnyRestarts); !isChanged(err) {
		t.Errorf("unknown job: %v", err)
	}
}

func testReboot(r real, c *slurm.Client) {
	t := r.t
	if err := c.Reboot(t.Context(), "gpu5", time.Now(), slurm.Expect{Reason: mine}); !isChanged(err) {
		t.Errorf("rebooted a node in service: %v", err)
	}
	r.drain(c, "gpu5")
	before := slurm.View{At: time.Now(), Node: r.Node("gpu5")}
	expect := slurm.Expect{Reason: mine, User: before.Node.ReasonUser, Time: before.Node.ReasonTime}
	if err := c.Reboot(t.Context(), "gpu5", time.Now(), expect); err != nil {
		t.Fatal(err)
	}
	n := r.WaitNode("gpu5", "back", 20*time.Second, func(n slurm.Node) bool {
		return n.State == "IDLE" && !n.Has(slurm.FlagRebootIssued) && n.BootTime.After(before.Node.BootTime)
	})
	record := slurm.Record{DrainedByUs: true, Reason: mine, Since: before.At}
	var kinds []string
	for _, o := range slurm.Observe(&before, slurm.View{At: time.Now(), Node: n}, record) {
		kinds = append(kinds, o.Kind)
	}
	if strings.Join(kinds, " ") != slurm.Rebooted {
		t.Errorf("our own reboot shows as %q", kinds)
	}
	if err := c.Resume(t.Context(), "gpu5", expect); err != nil {
		t.Error(err)
	}
}

func testAway(r real, c *slurm.Client) {
	t := r.t
	r.StopSlurmctld()
	hasty := r.Client(func(cfg *slurm.Config) { cfg.Deadline = time.Second })
	start := time.Now()
	var ue *slurm.UnavailableError
	if _, err := hasty.Nodes(t.Context()); !errors.As(err, &ue) {
		t.Errorf("error %v", err)
	}
	for _, res := range hasty.Drain(t.Context(), []slurm.DrainOrder{{Node: "gpu1", Reason: mine}, {Node: "gpu2", Reason: "another"}}) {
		if !errors.As(res.Err, &ue) || res.Wrote {
			t.Errorf("%+v", res)
		}
	}
	if d := time.Since(start); d > 4*time.Second {
		t.Errorf("two reads took %v with a deadline of 1 s", d)
	}
	r.StartSlurmctld()
	r.drain(c, "gpu1")
	if n := r.Node("gpu1"); n.Reason != mine {
		t.Errorf("after the restart: %+v", n)
	}
}
