package coordinator

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/slurm"
	"github.com/assay-gpu/assay/coordinator/wire"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func names(evs []lifecycle.Event) []string {
	var out []string
	for _, ev := range evs {
		out = append(out, lifecycle.Name(ev))
	}
	return out
}

func acting() policy.Policy {
	p := policy.Default()
	p.Mode = policy.Act
	return p
}

func TestReduce(t *testing.T) {
	lost := checks.Finding{Check: "driver", Verdict: checks.Fail, Hard: true, Action: checks.Reboot}
	failedRemap := checks.Finding{Check: "rowremap", Verdict: checks.Fail, Hard: true, Action: checks.RMA}
	eccOff := checks.Finding{Check: "ecc", Verdict: checks.Fail, Action: checks.FixConfig}
	pending := checks.Finding{Check: "rowremap", Verdict: checks.Pass, Action: checks.ResetGPU}
	echo := checks.Finding{Check: "xid", Code: 45, Verdict: checks.Fail, Hard: true, Action: checks.Reboot, Secondary: true}
	seen := checks.Inventory{Node: "gpu001", BootID: "b1"}

	for _, tt := range []struct {
		name string
		r    checks.Report
		want []string
	}{
		{"a background report without news says who is there", checks.Report{Inventory: seen}, []string{"seen"}},
		{"a report that could not read the hardware says nothing of it", checks.Report{}, nil},
		{"the severest hard fault comes first, soft ones after",
			checks.Report{Findings: []checks.Finding{eccOff, lost, failedRemap}}, []string{"hard_fault", "hard_fault", "soft_fault"}},
		{"a consequence is no event of its own", checks.Report{Findings: []checks.Finding{lost, echo}}, []string{"hard_fault"}},
		{"a pending remap waits for the node to be empty", checks.Report{Findings: []checks.Finding{pending}}, []string{"reset_wanted"}},
		{"faults come before the end of the suite they were found in",
			checks.Report{Inventory: seen, Suite: checks.Quick, Verdict: checks.Fail, Findings: []checks.Finding{eccOff}},
			[]string{"seen", "soft_fault", "screened"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := names(reduce(tt.r, false, acting(), noon)); !slices.Equal(got, tt.want) {
				t.Errorf("events %v, want %v", got, tt.want)
			}
		})
	}

	t.Run("the severest is first by action", func(t *testing.T) {
		evs := reduce(checks.Report{Findings: []checks.Finding{lost, failedRemap}}, false, acting(), noon)
		if got := evs[0].(lifecycle.HardFault).Finding.Action; got != checks.RMA {
			t.Errorf("first action %v, want rma", got)
		}
	})
}

func TestPermits(t *testing.T) {
	held := map[string]time.Time{lifecycle.MarkHeldBack: {}}
	over := map[string]time.Time{lifecycle.MarkOverridden: noon.Add(time.Hour)}
	for _, tt := range []struct {
		name string
		n    lifecycle.Node
		want bool
	}{
		{"never enrolled", lifecycle.Node{}, false},
		{"certified, nothing takes it out", lifecycle.Node{Name: "a", State: lifecycle.Certified}, false},
		{"draining by us", lifecycle.Node{Name: "a", State: lifecycle.Draining, DrainedByUs: true}, true},
		{"suspect, drained by us", lifecycle.Node{Name: "a", State: lifecycle.Suspect, DrainedByUs: true}, true},
		{"suspect, held back", lifecycle.Node{Name: "a", State: lifecycle.Suspect, Marks: held}, false},
		{"withheld", lifecycle.Node{Name: "a", State: lifecycle.Withheld}, false},
		{"overridden by a person, though drained before", lifecycle.Node{Name: "a", State: lifecycle.Quarantined, DrainedByUs: true, Marks: over}, false},
		{"quarantined under somebody else's drain", lifecycle.Node{Name: "a", State: lifecycle.Quarantined}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, why := permits(tt.n, noon, true)
			if got != tt.want {
				t.Errorf("granted %v (%s), want %v", got, why, tt.want)
			}
			if !got && why == "" {
				t.Error("refused without a word")
			}
		})
	}
}

func TestReleases(t *testing.T) {
	held := slurm.Job{ID: "7", State: "PENDING", Reason: "launch failed requeued held", Restarts: 1}
	byAdmin := slurm.Job{ID: "7", State: "PENDING", Reason: "JobHeldAdmin", Restarts: 1}
	ours := refusal{Job: "7", Node: "gpu001", Restarts: 0}
	for _, tt := range []struct {
		name string
		job  slurm.Job
		had  map[string]refusal
		want int
	}{
		{"held by our own exit", held, map[string]refusal{"7": ours}, 1},
		{"held by a person", byAdmin, map[string]refusal{"7": ours}, 0},
		{"held by somebody else's prolog", held, nil, 0},
		{"released twice before", held, map[string]refusal{"7": {Job: "7", Releases: 2}}, 0},
		{"the requeue has not happened yet", slurm.Job{ID: "7", State: "PENDING", Reason: "launch failed requeued held"}, map[string]refusal{"7": ours}, 0},
		{"this very hold was released before", held, map[string]refusal{"7": {Job: "7", Restarts: 1, Releases: 1}}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := releases([]slurm.Job{tt.job}, tt.had, 2); len(got) != tt.want {
				t.Errorf("released %v, want %d", got, tt.want)
			}
		})
	}
}

func TestLostNow(t *testing.T) {
	p := policy.Default().Lifecycle
	sizes := map[string]int{"s0": 4, "s1": 4}
	silent := func(leaf string, n int) (out []quiet) {
		for i := range n {
			out = append(out, quiet{fmt.Sprintf("%s-%d", leaf, i), leaf})
		}
		return out
	}
	for _, tt := range []struct {
		name   string
		silent []quiet
		before map[string]bool
		total  int
		lost   int
		mass   bool
	}{
		{"nobody", nil, nil, 8, 0, false},
		{"one node", silent("s0", 1), nil, 8, 1, false},
		{"two of eight are below the three that make a mass", silent("s0", 2), nil, 8, 2, false},
		{"three of eight at once are the network's fault", silent("s0", 3), nil, 8, 0, true},
		{"three of a hundred are three nodes", silent("s0", 3), nil, 100, 3, false},
		{"six of a hundred are a mass", append(silent("s0", 3), silent("s1", 3)...), nil, 100, 0, true},
		{"a whole leaf of four, in a fleet of a thousand", silent("s0", 4), nil, 1000, 0, true},
		{"a silent leaf hides no other node's loss", append(silent("s0", 4), quiet{"s1-0", "s1"}), nil, 1000, 1, true},
		{"a node lost before is no news", silent("s0", 1), map[string]bool{"s0-0": true}, 8, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lost, mass := lostNow(tt.silent, tt.before, sizes, tt.total, p)
			if len(lost) != tt.lost || (len(mass) > 0) != tt.mass {
				t.Errorf("lost %v, mass %v; want %d lost, mass %v", lost, mass, tt.lost, tt.mass)
			}
		})
	}
}

func TestEnding(t *testing.T) {
	resume := pending{Effect: wire.Effect{Kind: lifecycle.EffectResume, Created: noon}}
	reboot := pending{Effect: wire.Effect{Kind: lifecycle.EffectReboot, Created: noon}}
	for _, tt := range []struct {
		name    string
		e       pending
		err     error
		at      time.Duration
		outcome string
		again   bool
	}{
		{"done", resume, nil, 0, "done", false},
		{"somebody changed it", resume, &slurm.ChangedError{}, 0, "skipped", false},
		{"our own record no longer wants it", reboot, &unwantedError{"test"}, 0, "skipped", false},
		{"slurmctld does not answer", reboot, &slurm.UnavailableError{}, time.Hour, "", true},
		{"the node still boots", resume, &slurm.RefusedError{}, time.Minute, "", true},
		{"the node never came back", resume, &slurm.RefusedError{}, time.Hour, "failed", false},
		{"slurm.conf forbids the reboot", reboot, &slurm.RefusedError{}, 0, "failed", false},
		{"this process no longer leads", reboot, fmt.Errorf("fence: %w", errDeposed), 0, "", true},
		{"anything else is unclear", reboot, errors.New("fork: no memory"), 0, "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			outcome, _, again := ending(tt.e, tt.err, noon.Add(tt.at))
			if outcome != tt.outcome || again != tt.again {
				t.Errorf("%q, again %v; want %q, again %v", outcome, again, tt.outcome, tt.again)
			}
		})
	}
}

func TestLeaderTimeNeverRunsBackwards(t *testing.T) {
	if got := leaderTime(noon.Add(-10*time.Minute), noon); !got.Equal(noon) {
		t.Errorf("a leader whose clock is behind says %v, want the last committed %v", got, noon)
	}
	if got := leaderTime(noon.Add(time.Second), noon); !got.Equal(noon.Add(time.Second)) {
		t.Errorf("got %v, want the wall clock", got)
	}
}

func TestEntriesAfter(t *testing.T) {
	h := []wire.HistoryEntry{{Cursor: cursor(5)}, {Cursor: cursor(6)}, {Cursor: cursor(7)}}
	for _, tt := range []struct {
		name, after string
		most        int
		want        []string
		gone        bool
	}{
		{"from the start", "", 10, []string{cursor(5), cursor(6), cursor(7)}, false},
		{"bounded", "", 2, []string{cursor(5), cursor(6)}, false},
		{"after one", cursor(6), 10, []string{cursor(7)}, false},
		{"after the last", cursor(7), 10, nil, false},
		{"after one that is no longer kept", cursor(2), 10, nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := entriesAfter(h, tt.after, tt.most)
			if (err != nil) != tt.gone {
				t.Fatalf("err %v, want gone %v", err, tt.gone)
			}
			var cs []string
			for _, e := range got {
				cs = append(cs, e.Cursor)
			}
			if !slices.Equal(cs, tt.want) {
				t.Errorf("got %v, want %v", cs, tt.want)
			}
		})
	}
}

// Another run of a job that we knew is news: what was decided about the run before it is not meant for this one.
func TestJobEvents(t *testing.T) {
	known := lifecycle.Node{Jobs: []lifecycle.JobRef{{ID: "7", Nodes: 2, Restarts: 1}}}
	run := func(id string, restarts int) slurm.View {
		return slurm.View{Jobs: []slurm.Job{{ID: id, Nodes: []string{"gpu001", "gpu002"}, Restarts: restarts}}}
	}
	for _, tt := range []struct {
		name string
		view slurm.View
		news bool
	}{
		{"the same run", run("7", 1), false},
		{"requeued and here again", run("7", 2), true},
		{"another job", run("8", 1), true},
		{"none", slurm.View{}, true},
	} {
		if got := len(jobEvents(known, tt.view)) > 0; got != tt.news {
			t.Errorf("%s: news %v, want %v", tt.name, got, tt.news)
		}
	}
}
