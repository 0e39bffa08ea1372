package agent

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// A drill's fault is found by the rules that a real line would meet, told as marked, and leaves the certificate good.
func TestADrillIsReportedAndChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.run()
		defer func() { b.end() }()
		b.desire(b.desired(1, 5))
		synctest.Wait()
		b.out.take()
		gpu := b.hw.snap.Inventory().GPUs[1]
		d := b.desired(2, 5)
		d.Effects = []wire.Effect{b.effect("e1", lifecycle.EffectDrill, map[string]string{"drill": "D-7F3K", "gpu": gpu.UUID})}
		b.desire(d)
		if r := b.result(); r.Outcome != "done" || !strings.Contains(r.Detail, "drill D-7F3K") {
			t.Fatalf("result %+v", r)
		}
		got := b.out.take()
		if len(got) != 1 || len(got[0].Findings) != 1 || got[0].Routine() || got[0].Suite != checks.NoLevel {
			t.Fatalf("reports %+v", got)
		}
		f := got[0].Findings[0]
		if f.Drill != "D-7F3K" || f.Check != "xid" || f.Code != 79 || !f.Hard || f.Subject.GPUUUID != gpu.UUID || !strings.HasPrefix(f.Reason, "drill D-7F3K: ") {
			t.Errorf("finding %+v", f)
		}
		if f.HardFault() || f.SoftFault() {
			t.Error("a drill's finding is a fault")
		}
		if b.agent.tombstone != nil || len(b.agent.kernel.Open) != 0 {
			t.Errorf("tombstone %+v, open %v", b.agent.tombstone, b.agent.kernel.Open)
		}
		if hb, err := b.agent.Heartbeat(t.Context()); err != nil || hb.CertSerial != 5 {
			t.Errorf("heartbeat %+v, %v", hb, err)
		}
	})
}

func TestADrillOnAnUnknownGPUFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.run()
		defer func() { b.end() }()
		for id, args := range map[string]map[string]string{
			"e1": {"drill": "D-7F3K", "gpu": "GPU-none"},
			"e2": {"drill": "../x", "gpu": "GPU-none"},
		} {
			b.out.take()
			d := b.desired(uint64(len(id)+int(id[1])), 5)
			d.Effects = []wire.Effect{b.effect(id, lifecycle.EffectDrill, args)}
			b.desire(d)
			if r := b.result(); r.Outcome != "failed" || !strings.Contains(r.Detail, "drill") {
				t.Errorf("%v: result %+v", args, r)
			}
			for _, r := range b.out.take() {
				for _, f := range r.Findings {
					if f.Drill != "" {
						t.Errorf("%v: reported %+v", args, f)
					}
				}
			}
		}
	})
}
