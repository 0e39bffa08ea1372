package slurm

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

const mine = "assay:Q-7F3K xid 79 GPU 3 off the bus"

func wantChanged(t *testing.T, f *fake, err error, what string) {
	t.Helper()
	var ce *ChangedError
	if !errors.As(err, &ce) || !strings.Contains(ce.What, what) || ce.Hint() == "" || ce.Status() != 409 {
		t.Errorf("error %v, want a *ChangedError about %q", err, what)
	}
	wantChanges(t, f)
}

func wantRefused(t *testing.T, f *fake, err error, what string) {
	t.Helper()
	var re *RefusedError
	if !errors.As(err, &re) || !strings.Contains(re.Msg, what) || re.Hint() == "" {
		t.Errorf("error %v, want a *RefusedError about %q", err, what)
	}
	wantChanges(t, f)
}

func wantChanges(t *testing.T, f *fake, want ...string) {
	t.Helper()
	if got := strings.Join(f.changes, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("changes:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
	f.changes = nil
}

func TestDrainBatches(t *testing.T) {
	f := newFake()
	orders := []DrainOrder{{Node: "gpu3", Reason: "storm"}, {Node: "gpu1", Reason: "storm"}, {Node: "gpu8", Reason: mine}, {Node: "gpu2", Reason: "storm\n"}}
	for _, r := range f.client(nil).Drain(t.Context(), orders) {
		if r.Err != nil || !r.Wrote || !f.nodes[r.Node].Drained() || f.nodes[r.Node].Reason != r.Reason {
			t.Errorf("%+v on %+v", r, f.nodes[r.Node])
		}
	}
	wantChanges(t, f, "scontrol update nodename=gpu[1-3] state=drain reason=storm", "scontrol update nodename=gpu8 state=drain reason="+mine)
	if f.reads != 1 {
		t.Errorf("%d reads, want one", f.reads)
	}
	// Again: all stands, nothing is written.
	for _, r := range f.client(nil).Drain(t.Context(), orders) {
		if r.Err != nil || r.Wrote {
			t.Errorf("second time: %+v", r)
		}
	}
	wantChanges(t, f)
}

func TestDrainOneBadNameDoesNotStopTheRest(t *testing.T) {
	f := newFake()
	f.before = func(_ int, cmd Command) error { // gpu2 leaves Slurm between reading and writing
		if cmd.Mutates {
			delete(f.nodes, "gpu2")
		}
		return nil
	}
	rs := f.client(nil).Drain(t.Context(), []DrainOrder{{Node: "gpu1", Reason: mine}, {Node: "gpu2", Reason: mine}, {Node: "gpu3", Reason: mine}, {Node: "nope", Reason: mine}})
	for i, bad := range []bool{false, true, false, true} {
		if (rs[i].Err != nil) != bad || rs[i].Wrote == bad {
			t.Errorf("%+v, want bad %v", rs[i], bad)
		}
	}
	if !isRefused(rs[3].Err) {
		t.Errorf("unknown node: %v", rs[3].Err)
	}
}

func TestDrainOwnership(t *testing.T) {
	for _, tt := range []struct {
		name, reason, user string
		expect             *Expect
		writes             bool
		skipped            string
	}{
		{"a person's drain stays", "bad fan, Ann", "ann", nil, false, `already drained by ann: "bad fan, Ann"`},
		{"a person's drain that is not the one expected", "bad fan, Ann", "ann", &Expect{Reason: "assay:Q-1111 ecc"}, false, "reason is"},
		{"Slurm's own is taken over", "Prolog error", "slurm", nil, true, ""},
		{"Slurm's own with numbers", "gres/gpu count reported lower than configured (3 < 4)", "slurm", nil, true, ""},
		{"a drain without a reason", "", "", nil, true, ""},
		{"our earlier one, by our record", "assay:Q-1111 ecc", "slurm", &Expect{Reason: "assay:Q-1111 ecc"}, true, ""},
		{"what looks like ours, without a record", "assay:Q-1111 ecc", "ann", nil, false, "already drained by ann"},
		{"our earlier one, since written by another", "assay:Q-1111 ecc", "ann", &Expect{Reason: "assay:Q-1111 ecc", User: "slurm"}, false, "reason is ann's"},
		{"already ours", mine, "slurm", nil, false, ""},
		{"already ours, rebooting", mine + " : reboot issued", "slurm", nil, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake()
			f.drain("gpu1", tt.reason, tt.user)
			r := f.client(nil).Drain(t.Context(), []DrainOrder{{Node: "gpu1", Reason: mine, Expect: tt.expect}})[0]
			switch {
			case tt.skipped != "":
				wantChanged(t, f, r.Err, tt.skipped)
			case r.Err != nil || r.Wrote != tt.writes:
				t.Errorf("%+v", r)
			}
			if tt.writes && f.nodes["gpu1"].Reason != mine {
				t.Errorf("reason is %q", f.nodes["gpu1"].Reason)
			}
		})
	}
	t.Run("a stale reason on an undrained node", func(t *testing.T) {
		f := newFake()
		f.drain("gpu1", "old story", "ann")
		f.nodes["gpu1"].Flags = nil
		if r := f.client(nil).Drain(t.Context(), []DrainOrder{{Node: "gpu1", Reason: mine}})[0]; r.Err != nil || !r.Wrote {
			t.Errorf("%+v", r)
		}
	})
	t.Run("no reason", func(t *testing.T) {
		f := newFake()
		r := f.client(nil).Drain(t.Context(), []DrainOrder{{Node: "gpu1", Reason: " \n"}})[0]
		wantRefused(t, f, r.Err, "no reason")
	})
}

func TestReasonIsOneArgument(t *testing.T) {
	f := newFake()
	var args []string
	f.before = func(_ int, cmd Command) error {
		if cmd.Mutates {
			args = cmd.Args
		}
		return nil
	}
	f.client(nil).Drain(t.Context(), []DrainOrder{{Node: "gpu1", Reason: "x; reboot\nstate=resume \"$(id)\" nodename=ALL"}})
	if len(args) != 4 || args[3] != "reason=x; reboot state:resume $(id) nodename:ALL" {
		t.Errorf("arguments %q", args)
	}
}

func TestSetReason(t *testing.T) {
	f := newFake()
	f.drain("gpu1", "gres/gpu count reported lower than configured (7 < 8)", "slurm")
	if err := f.client(nil).SetReason(t.Context(), "gpu1", mine, nil); err != nil {
		t.Fatal(err)
	}
	wantChanges(t, f, "scontrol update nodename=gpu1 reason="+mine)
	if err := f.client(nil).SetReason(t.Context(), "gpu1", mine, nil); err != nil {
		t.Fatal(err)
	}
	wantChanges(t, f) // stands already
	f.drain("gpu1", "Ann looks at it", "ann")
	wantChanged(t, f, f.client(nil).SetReason(t.Context(), "gpu1", mine, nil), "already drained by ann")
	wantChanged(t, f, f.client(nil).SetReason(t.Context(), "gpu2", mine, nil), "not drained")
}

func TestResume(t *testing.T) {
	at := utc("2026-03-02T09:00:00")
	whole := Expect{Reason: mine, User: "slurm", Time: at}
	for _, tt := range []struct {
		name    string
		change  func(*Node)
		expect  Expect
		changed string // what the *ChangedError says
		refused string
	}{
		{"as we left it", func(*Node) {}, whole, "", ""},
		{"by the text alone", func(n *Node) { n.ReasonUser = "ann" }, Expect{Reason: mine}, "", ""},
		{"after a reboot", func(n *Node) { n.Reason += " : reboot issued"; n.ReasonTime = at.Add(time.Minute) }, whole, "", ""},
		{"down and drained since the boot", func(n *Node) { n.State = "DOWN" }, whole, "", ""},
		{"another reason", func(n *Node) { n.Reason = "leave it, Ann"; n.ReasonUser = "ann" }, whole, `"leave it, Ann" by ann`, ""},
		{"a reason that only begins like ours", func(n *Node) { n.Reason += " and more" }, whole, "and more", ""},
		{"the same text by another", func(n *Node) { n.ReasonUser = "ann" }, whole, "reason is ann's", ""},
		{"the same text at another time", func(n *Node) { n.ReasonTime = at.Add(time.Second) }, whole, "2026-03-02T09:00:01Z", ""},
		{"Slurm's reason instead", func(n *Node) { n.Reason = "Kill task failed" }, whole, "Kill task failed", ""},
		{"not drained", func(n *Node) { n.Flags = nil }, whole, "not drained", ""},
		{"rebooting", func(n *Node) { n.Flags = append(n.Flags, FlagRebootIssued) }, whole, "", "REBOOT_ISSUED"},
		{"about to reboot", func(n *Node) { n.Flags = append(n.Flags, FlagRebootRequested) }, whole, "", "REBOOT_REQUESTED"},
		{"silent", func(n *Node) { n.Flags = append(n.Flags, FlagNotResponding) }, whole, "", "NOT_RESPONDING"},
		{"a GPU short", func(n *Node) { n.Flags = append(n.Flags, FlagInvalidReg) }, whole, "", "INVALID_REG"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake()
			f.now = at
			f.drain("gpu1", mine, "slurm")
			tt.change(f.nodes["gpu1"])
			err := f.client(nil).Resume(t.Context(), "gpu1", tt.expect)
			switch {
			case tt.changed != "":
				wantChanged(t, f, err, tt.changed)
			case tt.refused != "":
				wantRefused(t, f, err, tt.refused)
			case err != nil:
				t.Error(err)
			default:
				wantChanges(t, f, "scontrol update nodename=gpu1 state=resume")
			}
		})
	}
	t.Run("drained again right after", func(t *testing.T) {
		f := newFake()
		f.drain("gpu1", mine, "slurm")
		f.after = func(cmd Command) error {
			if cmd.Verb == "resume" {
				f.drain("gpu1", "not yet", "ann")
			}
			return nil
		}
		err := f.client(nil).Resume(t.Context(), "gpu1", Expect{Reason: mine})
		f.changes = nil
		wantChanged(t, f, err, `drained again right after, by ann: "not yet"`)
	})
	t.Run("unknown node", func(t *testing.T) {
		f := newFake()
		wantRefused(t, f, f.client(nil).Resume(t.Context(), "nope", whole), "no such node")
	})
}

func TestReboot(t *testing.T) {
	for _, tt := range []struct {
		name             string
		change           func(*fake, *Node)
		changed, refused string
		quiet            bool
	}{
		{"drained by us", func(*fake, *Node) {}, "", "", false},
		{"asked for already", func(_ *fake, n *Node) { n.Flags = append(n.Flags, FlagRebootRequested) }, "", "", true},
		{"under way", func(_ *fake, n *Node) { n.Flags = append(n.Flags, FlagRebootIssued) }, "", "", true},
		{"booted since", func(_ *fake, n *Node) { n.BootTime = time.Now() }, "", "", true},
		{"booted since, our reason lost", func(_ *fake, n *Node) { n.BootTime, n.Reason = time.Now(), "reboot issued" }, "", "", true},
		{"not drained", func(_ *fake, n *Node) { n.Flags = nil }, "not drained", "", false},
		{"drained by another", func(_ *fake, n *Node) { n.Reason = "Ann's" }, "Ann's", "", false},
		{"silent", func(_ *fake, n *Node) { n.Flags = append(n.Flags, FlagNotResponding) }, "", "does not answer", false},
		{"ResumeTimeout a second short", func(f *fake, _ *Node) { f.conf = strings.Replace(f.conf, "1800", "1799", 1) }, "", "ResumeTimeout is 29m59s", false},
		{"no RebootProgram", func(f *fake, _ *Node) { f.conf = strings.Replace(f.conf, "/sbin/reboot", "(null)", 1) }, "", "no RebootProgram", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake()
			f.drain("gpu1", mine, "slurm")
			asked := time.Now().Add(-time.Minute)
			tt.change(f, f.nodes["gpu1"])
			err := f.client(nil).Reboot(t.Context(), "gpu1", asked, Expect{Reason: mine})
			switch {
			case tt.changed != "":
				wantChanged(t, f, err, tt.changed)
			case tt.refused != "":
				wantRefused(t, f, err, tt.refused)
			case err != nil:
				t.Error(err)
			case tt.quiet:
				wantChanges(t, f)
			default:
				wantChanges(t, f, "scontrol reboot gpu1") // no ASAP, no nextstate: both would clear the drain
			}
		})
	}
}

func TestJobVerbs(t *testing.T) {
	running := Job{ID: "7", State: "RUNNING", Nodes: []string{"gpu1"}, NumNodes: 1, Priority: 9, Restarts: 1, Requeue: true, User: "ann"}
	held := Job{ID: "7", State: "PENDING", NumNodes: 1, Restarts: 1, Requeue: true, User: "ann", Reason: "launch failed requeued held"}
	with := func(j Job, change func(*Job)) *Job {
		change(&j)
		return &j
	}
	none := func(*Job) {}
	type verb func(*Client, string) error
	requeue := verb(func(c *Client, id string) error { return c.Requeue(context.Background(), id, 1) })
	cancel := verb(func(c *Client, id string) error { return c.Cancel(context.Background(), id, 1) })
	release := verb(func(c *Client, id string) error { return c.Release(context.Background(), id, 1) })
	for _, tt := range []struct {
		name             string
		do               verb
		id               string
		job              *Job
		runs             string
		changed, refused string
	}{
		{"requeue a running job", requeue, "7", with(running, none), "scontrol requeue 7", "", ""},
		{"requeue a job that may not", requeue, "7", with(running, func(j *Job) { j.Requeue = false }), "", "", "--no-requeue"},
		{"requeue what has been", requeue, "7", with(running, func(j *Job) { j.Restarts = 2 }), "", "restart 2", ""},
		{"requeue what waits", requeue, "7", with(held, none), "", "PENDING", ""},
		{"requeue what is ending", requeue, "7", with(running, func(j *Job) { j.State = "COMPLETING" }), "", "COMPLETING", ""},
		{"requeue what is gone", requeue, "7", nil, "", "has ended", ""},
		{"cancel a running job", cancel, "7", with(running, none), "scancel 7", "", ""},
		{"cancel its successor", cancel, "7", with(running, func(j *Job) { j.Restarts = 2 }), "", "restart 2", ""},
		{"release what a prolog held", release, "7", with(held, none), "scontrol release 7", "", ""},
		{"release a later hold", release, "7", with(held, func(j *Job) { j.Restarts = 2 }), "", "held after restart 2", ""},
		{"release what an administrator holds", release, "7", with(held, func(j *Job) { j.Reason = "JobHeldAdmin" }), "", "JobHeldAdmin", ""},
		{"release what its user holds", release, "7", with(held, func(j *Job) { j.Reason = "JobHeldUser" }), "", "JobHeldUser", ""},
		{"release what is not held", release, "7", with(held, func(j *Job) { j.Priority = 5 }), "", "priority 5", ""},
		{"release what runs", release, "7", with(running, none), "", "RUNNING", ""},
		{"release what is gone", release, "7", nil, "", "has ended", ""},
		{"an option for a job", release, "--help", nil, "", "", "not a job number"},
		{"a list for a job", cancel, "7,8", nil, "", "", "not a job number"},
		{"an array task", requeue, "7_1", nil, "", "", "not a job number"},
		{"no job", requeue, "", nil, "", "", "not a job number"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake()
			if tt.job != nil {
				f.jobs["7"] = tt.job
			}
			err := tt.do(f.client(nil), tt.id)
			switch {
			case tt.changed != "":
				wantChanged(t, f, err, tt.changed)
			case tt.refused != "":
				wantRefused(t, f, err, tt.refused)
			case err != nil:
				t.Error(err)
			default:
				wantChanges(t, f, tt.runs)
				if tt.do(f.client(nil), tt.id) == nil {
					t.Error("done twice")
				}
				wantChanges(t, f)
			}
		})
	}
}

func TestReadsWithOneChild(t *testing.T) {
	f := newFake()
	f.jobs["7"] = &Job{ID: "7", State: "RUNNING", Nodes: []string{"gpu1"}, User: "ann", Reason: "None"}
	c := f.client(nil)
	nodes, err := c.Nodes(t.Context())
	if err != nil || len(nodes) != 8 || f.reads != 1 {
		t.Errorf("%d nodes by %d children, %v", len(nodes), f.reads, err)
	}
	jobs, err := c.Jobs(t.Context())
	if err != nil || len(jobs) != 1 || f.reads != 2 {
		t.Errorf("%d jobs by %d children, %v", len(jobs), f.reads, err)
	}
	leaves, err := c.Leaves(t.Context())
	if err != nil || leaves["gpu8"] != "leaf1" {
		t.Errorf("leaves %v, %v", leaves, err)
	}
}
