package agent

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/counter"
	"github.com/assay-gpu/assay/checks/leftover"
	"github.com/assay-gpu/assay/checks/nvlink"
)

func TestDeltas(t *testing.T) {
	base := func(f func(*Baseline)) *Baseline {
		b := &Baseline{BootID: "boot-1", GPUs: Counters(wellSnapshot())}
		if f != nil {
			f(b)
		}
		return b
	}
	linkErrors := func(n uint64) nvlink.Reading {
		none := counter.Reading{Have: checks.NotSupported}
		return nvlink.Reading{Have: checks.Read, Links: []nvlink.Link{{Have: checks.Read, Replay: counter.Of(n - 1), Recovery: counter.Of(1), CRC: none}}}
	}
	untold := nvlink.Reading{Have: checks.Read, Links: []nvlink.Link{{Have: checks.Read, State: nvlink.Active}}}
	for i := range untold.Links {
		none := counter.Reading{Have: checks.NotSupported}
		untold.Links[i].Replay, untold.Links[i].Recovery, untold.Links[i].CRC = none, none, none
	}
	link := func(replay, crc uint64) nvlink.Reading {
		return nvlink.Reading{Have: checks.Read, Links: []nvlink.Link{{Have: checks.Read, State: nvlink.Active, Replay: counter.Of(replay), Recovery: counter.Of(0), CRC: counter.Of(crc)}}}
	}
	// at is a baseline of a node whose first GPU was as f makes it.
	at := func(f func(*catalog.GPUState)) *Baseline {
		s := wellSnapshot()
		f(&s.GPUs[0])
		return &Baseline{BootID: "boot-1", GPUs: Counters(s)}
	}
	linked := base(func(b *Baseline) { b.GPUs[0].HaveLinks, b.GPUs[0].LinkErrors = true, 7 })
	for _, c := range []struct {
		name  string
		base  *Baseline
		now   func(*catalog.Snapshot)
		check string
		want  checks.Verdict
		act   checks.Action
		say   string
	}{
		{"nothing new", base(nil), func(*catalog.Snapshot) {}, "ecc", checks.Pass, checks.None, "no new errors"},
		{"one corrected error is watched", base(nil), func(s *catalog.Snapshot) { s.GPUs[0].ECC.VolatileCorrected = 1 }, "ecc", checks.Pass, checks.Watch, "1 corrected errors"},
		{"uncorrected too", base(nil), func(s *catalog.Snapshot) { s.GPUs[0].ECC.VolatileUncorrected = 2 }, "ecc", checks.Pass, checks.Watch, "2 uncorrected"},
		{"a remap", base(nil), func(s *catalog.Snapshot) { s.GPUs[0].RowRemap.Correctable = 1 }, "rowremap", checks.Pass, checks.Watch, "1 rows"},
		{"no NVLink to count on", base(nil), func(*catalog.Snapshot) {}, "nvlink", checks.NotApplicable, checks.None, "no NVLink"},
		{"NVLinks at rest", linked, func(s *catalog.Snapshot) { s.GPUs[0].NVLink = linkErrors(7) }, "nvlink", checks.Pass, checks.None, "no new errors"},
		{"NVLink errors are watched", linked, func(s *catalog.Snapshot) { s.GPUs[0].NVLink = linkErrors(9) }, "nvlink", checks.Pass, checks.Watch, "2 NVLink errors while the job ran"},
		{"NVLinks that were not read", linked, func(s *catalog.Snapshot) { s.GPUs[0].NVLink = nvlink.Reading{} }, "nvlink", checks.Unknown, checks.None, "not read"},
		{"no replays counted", base(nil), func(s *catalog.Snapshot) { s.GPUs[0].PCIe.Replays.Have = checks.NotSupported }, "pcie", checks.NotApplicable, checks.None, "counts no PCIe replays"},
		{"PCIe replays are watched", base(func(b *Baseline) { b.GPUs[0].HaveReplays, b.GPUs[0].Replays = true, 4 }), func(s *catalog.Snapshot) { s.GPUs[0].PCIe.Replays = counter.Of(9) }, "pcie", checks.Pass, checks.Watch, "5 PCIe replays"},
		{"no baseline", nil, func(*catalog.Snapshot) {}, "ecc", checks.Unknown, checks.None, "no baseline"},
		{"a boot between", base(func(b *Baseline) { b.BootID = "boot-0" }), func(*catalog.Snapshot) {}, "ecc", checks.Unknown, checks.None, "booted"},
		{"a counter that fell", base(func(b *Baseline) { b.GPUs[0].VolatileCorrected = 5 }), func(*catalog.Snapshot) {}, "ecc", checks.Unknown, checks.None, "was reset"},
		{"a GPU that was not there", base(func(b *Baseline) { b.GPUs = b.GPUs[1:] }), func(*catalog.Snapshot) {}, "rowremap", checks.Unknown, checks.None, "not there"},
		{"not read now", base(nil), func(s *catalog.Snapshot) { s.GPUs[0].ECC.Have = checks.Unread }, "ecc", checks.Unknown, checks.None, "not read"},
		{"not read then", base(func(b *Baseline) { b.GPUs[0].HaveRemap = false }), func(*catalog.Snapshot) {}, "rowremap", checks.Unknown, checks.None, "not read"},
		{"a link counter at the end of its range at both ends", at(func(g *catalog.GPUState) { g.NVLink = link(3, 65535) }),
			func(s *catalog.Snapshot) { s.GPUs[0].NVLink = link(3, 65535) }, "nvlink", checks.Unknown, checks.Watch, "link 0's CRC counter stands at 65535, and may have"},
		{"and others that counted", at(func(g *catalog.GPUState) { g.NVLink = link(3, 65535) }),
			func(s *catalog.Snapshot) { s.GPUs[0].NVLink = link(5, 65535) }, "nvlink", checks.Unknown, checks.Watch, "2 NVLink errors while the job ran; link 0's CRC"},
		{"one that reached it while the job ran", at(func(g *catalog.GPUState) { g.NVLink = link(3, 65000) }),
			func(s *catalog.Snapshot) { s.GPUs[0].NVLink = link(3, 65535) }, "nvlink", checks.Pass, checks.Watch, "535 NVLink errors"},
		{"one that only passed there", at(func(g *catalog.GPUState) { g.NVLink = link(3, 255) }),
			func(s *catalog.Snapshot) { s.GPUs[0].NVLink = link(3, 256) }, "nvlink", checks.Pass, checks.Watch, "1 NVLink errors"},
		{"a sum is no counter", at(func(g *catalog.GPUState) { g.NVLink = link(200, 55) }),
			func(s *catalog.Snapshot) { s.GPUs[0].NVLink = link(200, 55) }, "nvlink", checks.Pass, checks.None, "no new errors"},
		{"replays at the end of the range", at(func(g *catalog.GPUState) { g.PCIe.Replays = counter.Of(255) }),
			func(s *catalog.Snapshot) { s.GPUs[0].PCIe.Replays = counter.Of(255) }, "pcie", checks.Unknown, checks.Watch, "the replay counter stands at 255"},
		{"ECC errors at the end of the range", at(func(g *catalog.GPUState) { g.ECC.VolatileCorrected = 1<<32 - 1 }),
			func(s *catalog.Snapshot) { s.GPUs[0].ECC.VolatileCorrected = 1<<32 - 1 }, "ecc", checks.Unknown, checks.Watch, "the counter of corrected errors stands at 4294967295"},
		{"links whose counters the driver does not tell", at(func(g *catalog.GPUState) { g.NVLink = untold }),
			func(s *catalog.Snapshot) { s.GPUs[0].NVLink = untold }, "nvlink", checks.NotApplicable, checks.None, "does not tell what NVLinks count"},
		{"no such counter", base(nil), func(s *catalog.Snapshot) { s.GPUs[0].ECC.Have = checks.NotSupported }, "ecc", checks.NotApplicable, checks.None, "counts no"},
	} {
		snap := wellSnapshot()
		c.now(&snap)
		fs := Deltas(c.base, snap, []string{"GPU-a"})
		if len(fs) != 4 {
			t.Errorf("%s: %d findings for one GPU", c.name, len(fs))
			continue
		}
		for _, f := range fs {
			if f.Subject.GPUUUID != "GPU-a" || f.BootID != "boot-1" {
				t.Errorf("%s: finding on %+v", c.name, f.Subject)
			}
			if f.Check == c.check && (f.Verdict != c.want || f.Action != c.act || !strings.Contains(f.Reason, c.say)) {
				t.Errorf("%s: %s %s %q, want %s %s %q", c.name, f.Verdict, f.Action, f.Reason, c.want, c.act, c.say)
			}
		}
	}
}

func TestLeftovers(t *testing.T) {
	base := func(pids []int) *Baseline {
		b := &Baseline{BootID: "boot-1", GPUs: Counters(wellSnapshot())}
		b.GPUs[0].Processes = pids
		return b
	}
	snap := wellSnapshot()
	snap.GPUs[0].Leftover.Processes = []leftover.Process{{PID: 4711}}
	snap.GPUs[1].Leftover.Processes = []leftover.Process{{PID: 4712}}
	for _, tt := range []struct {
		name   string
		base   *Baseline
		others []string
		want   string
	}{
		{"the job's own GPU alone", base([]int{}), nil, "GPU-a fail"},
		{"it was there before", base([]int{4711}), nil, "GPU-a pass"},
		{"another job has the GPU too", base([]int{}), []string{"GPU-a"}, ""},
		{"no baseline", nil, nil, "GPU-a unknown"},
		{"a baseline without it", base(nil), nil, "GPU-a unknown"},
		{"a boot between", &Baseline{BootID: "boot-0", GPUs: base([]int{}).GPUs}, nil, "GPU-a unknown"},
	} {
		var got []string
		for _, f := range Leftovers(tt.base, snap, []string{"GPU-a"}, tt.others) {
			got = append(got, f.Subject.GPUUUID+" "+f.Verdict.String())
		}
		if strings.Join(got, ", ") != tt.want {
			t.Errorf("%s: %v, want %s", tt.name, got, tt.want)
		}
	}
}

func TestAnEpilogLooksAgainForProcesses(t *testing.T) {
	for _, stay := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			b.run()
			defer b.end()
			b.desire(b.desired(1, 5))
			b.prolog()
			b.hw.change(func(s *catalog.Snapshot) {
				s.GPUs[0].Leftover.Processes = []leftover.Process{{PID: 4711, Bytes: 1 << 30}}
			})
			b.out.take()
			go func() {
				time.Sleep(3 * time.Second)
				if !stay {
					b.hw.change(func(s *catalog.Snapshot) { s.GPUs[0].Leftover.Processes = nil })
				}
			}()
			start := time.Now()
			r := b.agent.Hook(t.Context(), NewHookRequest(Epilog, map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "0"}))
			got := b.out.take()
			if r.Exit != 0 || len(got) != 1 || stay != (got[0].Verdict == checks.Fail) || stay != strings.Contains(r.Message, "left by the job: process 4711 with 1024 MiB") {
				t.Errorf("stays %t: %+v, %+v", stay, r, got)
			}
			if took := time.Since(start); took != 4*time.Second {
				t.Errorf("stays %t: the epilog took %v", stay, took)
			}
		})
	}
}
