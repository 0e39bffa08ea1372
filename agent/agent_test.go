package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/driver"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/wire"
)

func TestCertifiedNodePassesOnItsCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.run()
		defer b.end()
		b.desire(b.desired(1, 5))
		before, _ := b.hw.counts()
		if r := b.prolog(); r.Exit != 0 || r.Message != "" {
			t.Fatalf("prolog: %+v", r)
		}
		if got := b.outcomes(); got[FastPass] != 1 {
			t.Fatalf("outcomes %v: want one fast_pass", got)
		}
		if n, _ := b.hw.counts(); n != before {
			t.Fatal("the fast path read the hardware")
		}
		// Time alone ends it: 60 s without a snapshot, as when the driver hangs.
		b.hw.slow(40 * time.Second)
		b.wait(65 * time.Second)
		if st := b.status(); st.FastPath || !strings.Contains(st.Why, "snapshot is") {
			t.Fatalf("fast path %v, %q: want an old snapshot to end it", st.FastPath, st.Why)
		}
	})
}

func TestPrologSuiteCertifiesAnEnrolledNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.run()
		defer b.end()
		d := b.desired(1, 0)
		d.State = "enrolled"
		b.desire(d)
		b.out.take()
		if r := b.prolog(); r.Exit != 0 {
			t.Fatalf("prolog: %+v", r)
		}
		got := b.out.take()
		if len(got) != 1 {
			t.Fatalf("%d reports, want 1", len(got))
		}
		r := got[0]
		if r.Why != checks.WhyProlog || r.Suite != checks.Quick || r.Verdict != checks.Pass || r.Job == nil || r.Job.ID != "7" || r.Job.User != "ann" || r.Observed {
			t.Fatalf("report %+v", r)
		}
		if len(r.Tested) == 0 || len(r.NotTested) != 0 || len(r.Inventory.GPUs) != 2 {
			t.Fatalf("tested %v, not tested %v, inventory %+v", r.Tested, r.NotTested, r.Inventory)
		}
	})
}

// The kernel log's line is on its way to the control plane without any wait, and the certificate is void before that.
func TestHardFaultIsBuriedThenTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.run()
		defer b.end()
		b.desire(b.desired(1, 5))
		b.wait(10 * time.Second)
		b.out.take()
		seen := time.Now()
		b.kernel.add(lineXID79)
		synctest.Wait()
		if d := time.Since(seen); d > 2*time.Millisecond {
			t.Fatalf("told after %s", d)
		}
		got := b.out.take()
		if len(got) != 1 || got[0].Verdict != checks.Fail || got[0].Routine() || got[0].Suite != checks.NoLevel {
			t.Fatalf("reports %+v", got)
		}
		f := got[0].Findings[0]
		if f.Code != 79 || f.Subject.GPUUUID != "GPU-b" || !f.HardFault() || f.BootID != "boot-1" || f.Subject.Node != "n1" || f.Incident == "" {
			t.Fatalf("finding %+v", f)
		}
		if data, err := os.ReadFile(filepath.Join(b.dir, "tombstone.json")); err != nil || !strings.Contains(string(data), `"serial":5`) {
			t.Fatalf("tombstone %q, %v", data, err)
		}
		// The suite decides now, and the unanswered fault counts against it.
		b.permit.set(func(p *fakePermits) { p.ans = wire.PermitAnswer{Granted: true, Reason: "assay:Q-7F3K xid 79"} })
		if r := b.prolog(); r.Exit != 1 || r.Message != "assay:Q-7F3K xid 79" {
			t.Fatalf("prolog: %+v", r)
		}
		// A certificate of the same serial, however fresh, clears nothing. A later one does.
		b.desire(b.desired(2, 5))
		if st := b.status(); st.FastPath || st.Tombstone == nil {
			t.Fatalf("fast path %v, tombstone %v after the same serial", st.FastPath, st.Tombstone)
		}
		b.desire(b.desired(3, 6))
		if st := b.status(); !st.FastPath || st.Tombstone != nil || len(st.OpenFaults) != 0 {
			t.Fatalf("fast path %v (%s), tombstone %v, open %v after a later serial", st.FastPath, st.Why, st.Tombstone, st.OpenFaults)
		}
		// The same fault again is news then, though it was told within the minute.
		b.out.take()
		b.kernel.add(lineXID79)
		synctest.Wait()
		if got := b.out.take(); len(got) != 1 || b.status().Tombstone == nil {
			t.Fatalf("%d reports, tombstone %v", len(got), b.status().Tombstone)
		}
	})
}

func TestFloodIsFewReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.run()
		defer b.end()
		b.desire(b.desired(1, 5))
		b.out.take()
		const n = 50_000
		lines := make([]string, n)
		for i := range lines {
			lines[i] = lineXID79
		}
		b.kernel.add(lines...)
		synctest.Wait()
		if got := b.out.take(); len(got) != 1 {
			t.Fatalf("%d reports for %d lines", len(got), n)
		}
		b.wait(61 * time.Second)
		b.out.take()
		b.kernel.add(lineXID79)
		synctest.Wait()
		got := b.out.take()
		if len(got) != 1 || got[0].Findings[0].Count != n+1 {
			t.Fatalf("after a minute: %+v", got)
		}
		st, err := b.agent.Stats(t.Context())
		if err != nil || st.KernelRecords != n+1 || st.XIDs[XIDKey{79, "GPU-b"}] != n+1 {
			t.Fatalf("stats %+v, %v", st, err)
		}
	})
}

func TestAnApplicationFaultChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.run()
		defer b.end()
		b.desire(b.desired(1, 5))
		b.out.take()
		b.kernel.add(lineXID31)
		synctest.Wait()
		if got := b.out.take(); len(got) != 0 {
			t.Fatalf("told at once: %+v", got)
		}
		if st := b.status(); !st.FastPath {
			t.Fatalf("fast path ended: %s", st.Why)
		}
		b.wait(31 * time.Second)
		got := b.out.take()
		if len(got) != 1 || !got[0].Routine() || len(got[0].Findings) != 1 || got[0].Findings[0].Code != 31 {
			t.Fatalf("routine report %+v", got)
		}
	})
}

func TestALostGPUIsFoundByTheCycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.run()
		defer b.end()
		b.desire(b.desired(1, 5))
		b.wait(31 * time.Second)
		b.out.take()
		b.hw.change(func(s *catalog.Snapshot) { s.GPUs[1].Call.Lost = true })
		b.wait(30 * time.Second)
		got := b.out.take()
		if len(got) != 1 || got[0].Verdict != checks.Fail {
			t.Fatalf("reports %+v", got)
		}
		if st := b.status(); st.Tombstone == nil || st.Verdict != checks.Fail {
			t.Fatalf("tombstone %v, verdict %v", st.Tombstone, st.Verdict)
		}
		// Told once, then once a minute at most, ever more seldom; the cycles between are told by the heartbeat.
		n := 0
		for range 20 {
			b.wait(30 * time.Second)
			n += len(b.out.take())
		}
		if n < 3 || n > 5 {
			t.Fatalf("%d reports in ten minutes of the same fault", n)
		}
		// A job on that GPU is refused without a permit; one on the other asks.
		b.permit.set(func(p *fakePermits) { p.err = errors.New("connection refused") })
		if r := b.agent.Hook(t.Context(), NewHookRequest(Prolog, map[string]string{"SLURM_JOB_ID": "9", "SLURM_JOB_GPUS": "1"})); r.Exit != 1 {
			t.Fatalf("prolog of a job on the lost GPU: %+v", r)
		}
		if !b.permit.asked()[0].OwnGPU || b.permit.asked()[0].Report.Verdict != checks.Fail {
			t.Fatalf("permit asked: %+v", b.permit.asked()[0])
		}
		// The spool's copy is the same report, and may get there first.
		if r := b.out.take(); len(r) != 1 || !r[0].OwnGPU || !b.permit.asked()[0].Report.OwnGPU || r[0].ID != b.permit.asked()[0].Report.ID {
			t.Fatalf("reports %+v", r)
		}
		if b.agent.Hook(t.Context(), NewHookRequest(Prolog, map[string]string{"SLURM_JOB_ID": "10", "SLURM_JOB_GPUS": "0"})); b.out.take()[0].OwnGPU {
			t.Fatal("a job on the other GPU is told as one that could not run")
		}
	})
}

// A GPU on which a call hangs is looked at again soon, not only at the next interval.
func TestAHangingGPUIsSettledSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.run()
		defer b.end()
		b.desire(b.desired(1, 5))
		b.hw.change(func(s *catalog.Snapshot) {
			s.GPUs[1].Call = driver.Call{Hung: "nvmlDeviceGetRemappedRows", HungCount: 1}
		})
		b.wait(30 * time.Second)
		if st := b.status(); st.Tombstone != nil || st.Verdict != checks.Unknown {
			t.Fatalf("hung once: tombstone %v, verdict %v", st.Tombstone, st.Verdict)
		}
		b.hw.change(func(s *catalog.Snapshot) { s.GPUs[1].Call.HungCount, s.GPUs[1].Call.Blocked = 3, true })
		b.wait(3 * time.Second)
		if st := b.status(); st.Tombstone == nil || st.Verdict != checks.Fail {
			t.Fatalf("hung three times: tombstone %v, verdict %v", st.Tombstone, st.Verdict)
		}
	})
}

func TestPrologKeepsItsBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.run()
		defer b.end()
		b.desire(b.desired(1, 0))
		b.hw.slow(time.Hour)
		start := time.Now()
		r := b.prolog()
		if d := time.Since(start); r.Exit != 0 || d > 15*time.Second {
			t.Fatalf("%+v after %s: want Unknown to pass within the budget", r, d)
		}
		if !strings.Contains(r.Message, "deadline") && !strings.Contains(r.Message, "within") {
			t.Fatalf("message %q", r.Message)
		}
		if got := b.outcomes(); got[UnknownPass] != 1 {
			t.Fatalf("outcomes %v", got)
		}
	})
}

func TestPermitIsWaitedForNoLongerThanPolicySays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.run()
		defer b.end()
		b.desire(b.desired(1, 0))
		b.permit.set(func(p *fakePermits) { p.after = time.Hour })
		b.hw.change(func(s *catalog.Snapshot) { s.GPUs[1].RowRemap.Failed = true })
		start := time.Now()
		if r := b.prolog(); r.Exit != 1 || !strings.Contains(r.Message, "no answer within 4s") {
			t.Fatalf("hard fault without an answer: %+v", r)
		}
		if d := time.Since(start); d != 4*time.Second {
			t.Fatalf("waited %s", d)
		}
		b.hw.change(func(s *catalog.Snapshot) { s.GPUs[1].RowRemap.Failed, s.GPUs[1].RowRemap.Correctable = false, 11 })
		if r := b.prolog(); r.Exit != 0 || !strings.Contains(r.Message, "11 rows") {
			t.Fatalf("soft fault without an answer: %+v", r)
		}
	})
}

func TestShorterIntervalHoldsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.run()
		defer b.end()
		d := b.desired(1, 5)
		d.Policy.Agent.Interval = policy.Duration(time.Hour)
		b.desire(d)
		b.wait(31 * time.Second) // from here on an hour
		before, _ := b.hw.counts()
		d = b.desired(2, 5)
		d.Policy.Version, d.Policy.Agent.Interval = 2, policy.Duration(10*time.Second)
		b.desire(d)
		if n, _ := b.hw.counts(); n != before {
			t.Fatalf("%d snapshots more as soon as the policy came: a fleet must not read all at once", n-before)
		}
		b.wait(11 * time.Second)
		if n, _ := b.hw.counts(); n != before+1 {
			t.Fatalf("%d snapshots within 11 s of a policy that wants one in 10 s", n-before)
		}
	})
}

func TestObserveModeSaysAndDoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.run()
		defer b.end()
		d := b.desired(1, 0)
		d.Policy.Mode, d.State = policy.Observe, "enrolled"
		b.desire(d)
		b.hw.change(func(s *catalog.Snapshot) { s.GPUs[1].RowRemap.Failed = true })
		b.out.take()
		r := b.prolog()
		if r.Exit != 0 || !strings.Contains(r.Message, "would have asked to refuse") {
			t.Fatalf("prolog %+v", r)
		}
		got := b.out.take()
		if len(got) != 1 || !got[0].Observed || got[0].Verdict != checks.Fail {
			t.Fatalf("reports %+v", got)
		}
		if len(b.permit.asked()) != 0 || b.status().Tombstone != nil {
			t.Fatal("observe mode asked for a permit or voided a certificate")
		}
		b.wait(31 * time.Second)
		b.out.take()
		// Switched to act, what was observed is told anew and acted on.
		d = b.desired(2, 0)
		d.Policy.Version = 2
		b.desire(d)
		b.wait(31 * time.Second)
		got = b.out.take()
		if len(got) != 1 || got[0].Observed || b.status().Tombstone == nil {
			t.Fatalf("after the switch: %+v, tombstone %v", got, b.status().Tombstone)
		}
	})
}

func TestCertificateEndsOnTheBootClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.run()
		b.desire(b.desired(1, 5))
		b.wait(30 * time.Minute)
		b.restart() // what is left is computed from the boot clock on disk
		if st := b.status(); st.Certificate == nil || st.Certificate.Remaining < 1799 || st.Certificate.Remaining > 1801 {
			t.Fatalf("certificate after half an hour and a restart: %+v", st.Certificate)
		}
		// A copy of the same serial that claims more time is not believed.
		b.desire(b.desired(2, 5))
		if st := b.status(); st.Certificate.Remaining > 1801 {
			t.Fatalf("the same serial moved its end: %+v", st.Certificate)
		}
		b.wait(91 * time.Minute)
		if st := b.status(); st.FastPath || !strings.Contains(st.Why, "expired") {
			t.Fatalf("fast path %v, %q after grace", st.FastPath, st.Why)
		}
		b.boots("boot-2")
		b.wait(31 * time.Second)
		var booted *BootChangedError
		if err := <-b.ended; !errors.As(err, &booted) {
			t.Fatalf("run ended with %v", err)
		}
		b.ended <- nil
		b.restart()
		defer b.end()
		if st := b.status(); st.Certificate != nil || st.ContactAge != nil {
			t.Fatalf("after another boot: %+v", st)
		}
	})
}

func TestOfflineNodePassesForFourHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.run()
		defer func() { b.end() }()
		d := b.desired(1, 5)
		d.Certificate.RemainingSeconds, d.Certificate.GraceRemainingSeconds = 12*3600, 24*3600
		b.desire(d)
		b.wait(3*time.Hour + 50*time.Minute)
		b.restart()
		b.wait(time.Second)
		if st := b.status(); !st.FastPath {
			t.Fatalf("after 3 h 50 offline: %s", st.Why)
		}
		b.wait(11 * time.Minute)
		if st := b.status(); st.FastPath || !strings.Contains(st.Why, "last heard") {
			t.Fatalf("after 4 h offline: fast path %v, %q", st.FastPath, st.Why)
		}
	})
}

func TestEpilogComparesWithTheProlog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.run()
		defer func() { b.end() }()
		b.desire(b.desired(1, 5))
		b.prolog()
		synctest.Wait()
		hb, err := b.agent.Heartbeat(t.Context())
		if err != nil || fmt.Sprint(hb.JobsOnNode) != "[7]" || hb.CertSerial != 5 {
			t.Fatalf("heartbeat %+v, %v", hb, err)
		}
		b.restart() // the baseline is on disk
		b.hw.change(func(s *catalog.Snapshot) { s.GPUs[0].ECC.VolatileCorrected = 3; s.GPUs[1].ECC.VolatileCorrected = 9 })
		b.out.take()
		ep := NewHookRequest(Epilog, map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "0"})
		r := b.agent.Hook(t.Context(), ep)
		if r.Exit != 0 || !strings.Contains(r.Message, "3 corrected errors while the job ran") {
			t.Fatalf("epilog %+v", r)
		}
		got := b.out.take()
		if len(got) != 1 || got[0].Why != checks.WhyEpilog || got[0].Job.ID != "7" || got[0].Verdict != checks.Pass {
			t.Fatalf("reports %+v", got)
		}
		// Without a baseline nothing is known.
		b.agent.Hook(t.Context(), ep)
		got = b.out.take()
		if len(got) != 1 || got[0].Verdict != checks.Unknown {
			t.Fatalf("without a baseline: %+v", got)
		}
	})
}

func TestSnapshotsAreSharedAndFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.run()
		defer b.end()
		b.desire(b.desired(1, 0))
		b.hw.slow(time.Second)
		before, _ := b.hw.counts()
		done := make(chan Reply)
		for range 8 {
			go func() { done <- b.prolog() }()
		}
		for range 8 {
			if r := <-done; r.Exit != 0 {
				t.Fatalf("prolog %+v", r)
			}
		}
		// The first starts one at once; those who came later may not have it, and share the next.
		if n, _ := b.hw.counts(); n-before > 2 {
			t.Fatalf("%d snapshots for eight prologs at once", n-before)
		}
	})
}

func TestWhatMakesNoSenseIsNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.run()
		defer b.end()
		b.desire(b.desired(1, 5))
		other := b.desired(2, 6)
		other.Node = "n2"
		if err := b.agent.Desire(t.Context(), other); err == nil || b.status().Certificate.Serial != 5 {
			t.Fatalf("another node's desired state: %v, certificate %+v", err, b.status().Certificate)
		}
		d := b.desired(3, 6)
		d.Policy = policy.Policy{Version: 9}
		b.desire(d)
		if st := b.status(); st.Policy != 1 || st.Mode != "act" || st.Certificate.Serial != 6 {
			t.Fatalf("an empty policy: policy %d, mode %q, certificate %+v", st.Policy, st.Mode, st.Certificate)
		}
	})
}

func TestUnenrolledNodePasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.hw.err = errors.New("no driver")
		b.run()
		defer b.end()
		if r := b.prolog(); r.Exit != 0 || !strings.Contains(r.Message, "not enrolled") {
			t.Fatalf("prolog %+v", r)
		}
	})
}
