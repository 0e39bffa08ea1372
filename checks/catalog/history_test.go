package catalog

import (
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/clocks"
	"github.com/assay-gpu/assay/checks/counter"
	"github.com/assay-gpu/assay/checks/ecc"
	"github.com/assay-gpu/assay/checks/fabric"
	"github.com/assay-gpu/assay/checks/nvlink"
)

// A tape adds snapshots of one GPU to a history, each some time after the one before.
type tape struct {
	History
	now time.Time
}

func (tp *tape) add(after time.Duration, change func(*Snapshot)) GPUState {
	tp.now = tp.now.Add(after)
	s := healthy(1)
	s.At = tp.now
	if change != nil {
		change(&s)
	}
	tp.Add(&s)
	return s.GPUs[0]
}

func replays(n uint64) func(*Snapshot) {
	return func(s *Snapshot) { s.GPUs[0].PCIe.Replays = counter.Of(n) }
}

func TestARateNeedsAMinute(t *testing.T) {
	tp := tape{now: at}
	tp.add(0, replays(10))
	if g := tp.add(59*time.Second, replays(11)); g.PCIe.Replays.Then != nil || g.PCIe.Over != 0 {
		t.Errorf("after 59 s: %+v", g.PCIe)
	}
	if g := tp.add(time.Second, replays(14)); g.PCIe.Replays.Then == nil || *g.PCIe.Replays.Then != 10 || g.PCIe.Over != time.Minute {
		t.Errorf("after a minute: %+v", g.PCIe)
	}
	// The youngest reading that is a minute old: 59 s later that is the one of 59 s, not the first.
	if g := tp.add(59*time.Second, replays(20)); g.PCIe.Replays.Then == nil || *g.PCIe.Replays.Then != 11 || g.PCIe.Over != time.Minute {
		t.Errorf("after two: %+v", g.PCIe)
	}
	if g := tp.add(10*time.Minute, replays(20)); *g.PCIe.Replays.Then != 20 || g.PCIe.Over != 10*time.Minute {
		t.Errorf("after a gap: %+v", g.PCIe)
	}
}

func TestEachCounterIsCompared(t *testing.T) {
	tp := tape{now: at}
	base := func(n uint64, r clocks.Reasons, st fabric.State) func(*Snapshot) {
		return func(s *Snapshot) {
			g := &s.GPUs[0]
			l := &g.NVLink.Links[0]
			l.Replay, l.Recovery, l.CRC = counter.Of(n), counter.Of(n+1), counter.Of(n+2)
			g.PCIe.Correctable, g.PCIe.NonFatal, g.PCIe.Fatal = counter.Of(n+3), counter.Of(n+4), counter.Of(n+5)
			g.PCIe.Gen, g.PCIe.Percent = int(n%6), int(n%100)
			g.Clocks.Reasons, g.Clocks.Held = r, map[clocks.Name]counter.Reading{clocks.NameHWThermal: counter.Of(n + 6)}
			g.Fabric.State = st
		}
	}
	tp.add(0, base(100, clocks.SWThermal, fabric.InProgress))
	g := tp.add(time.Minute, base(200, clocks.Idle, fabric.Completed))
	l := g.NVLink.Links[0]
	for i, c := range []counter.Reading{l.Replay, l.Recovery, l.CRC, g.PCIe.Correctable, g.PCIe.NonFatal, g.PCIe.Fatal, g.Clocks.Held[clocks.NameHWThermal]} {
		if by, why := c.Rise(); by != 100 || why != "" || *c.Then != uint64(100+i) {
			t.Errorf("counter %d: %+v, rose by %d, %s", i, c, by, why)
		}
	}
	if g.NVLink.Over != time.Minute || g.Clocks.Over != time.Minute || g.Fabric.Over != time.Minute {
		t.Errorf("over %v, %v, %v", g.NVLink.Over, g.Clocks.Over, g.Fabric.Over)
	}
	if g.PCIe.Before == nil || g.PCIe.Before.Gen != 4 || g.PCIe.Before.Percent != 0 || *g.Clocks.Before != clocks.SWThermal || *g.Fabric.Before != fabric.InProgress {
		t.Errorf("before: %+v, %v, %v", g.PCIe.Before, *g.Clocks.Before, *g.Fabric.Before)
	}
}

func TestALinkThatWasActiveInThisBoot(t *testing.T) {
	tp := tape{now: at}
	link := func(st nvlink.State) func(*Snapshot) {
		return func(s *Snapshot) { s.GPUs[0].NVLink.Links[0].State = st }
	}
	if g := tp.add(0, link(nvlink.Inactive)); g.NVLink.Links[0].Seen {
		t.Error("seen before it was")
	}
	tp.add(time.Second, link(nvlink.Sleep))
	for range 3 { // it stays so, and no minute need pass
		if g := tp.add(time.Second, link(nvlink.Inactive)); !g.NVLink.Links[0].Seen {
			t.Error("not seen")
		}
	}
	tp.add(time.Second, func(s *Snapshot) { s.GPUs[0].NVLink = nvlink.Reading{} }) // could not be read once
	if g := tp.add(time.Second, link(nvlink.Inactive)); !g.NVLink.Links[0].Seen {
		t.Error("forgotten")
	}
	if g := tp.add(time.Second, func(s *Snapshot) { s.BootID = "another"; link(nvlink.Inactive)(s) }); g.NVLink.Links[0].Seen {
		t.Error("seen in another boot")
	}
}

func TestABootBeginsAnew(t *testing.T) {
	tp := tape{now: at}
	tp.add(0, replays(10))
	if g := tp.add(2*time.Minute, func(s *Snapshot) { replays(12)(s); s.BootID = "another" }); g.PCIe.Replays.Then != nil {
		t.Errorf("compared with another boot: %+v", g.PCIe)
	}
	if g := tp.add(-time.Hour, func(s *Snapshot) { replays(12)(s); s.BootID = "another" }); g.PCIe.Replays.Then != nil {
		t.Errorf("compared with the future: %+v", g.PCIe)
	}
}

func TestAnotherGPUInItsPlaceIsNotCompared(t *testing.T) {
	tp := tape{now: at}
	tp.add(0, replays(10))
	if g := tp.add(2*time.Minute, func(s *Snapshot) { replays(12)(s); s.GPUs[0].UUID = "GPU-new" }); g.PCIe.Replays.Then != nil {
		t.Errorf("%+v", g.PCIe)
	}
	if g := tp.add(2*time.Minute, func(s *Snapshot) { replays(13)(s); s.GPUs[0].UUID = "" }); g.PCIe.Replays.Then != nil {
		t.Errorf("a GPU without a name: %+v", g.PCIe)
	}
}

// Corrected errors are compared with the oldest reading of the last hour.
func TestCorrectedErrorsOfAnHour(t *testing.T) {
	tp := tape{now: at}
	corrected := func(n uint64) func(*Snapshot) {
		return func(s *Snapshot) { s.GPUs[0].ECC.VolatileCorrected = n }
	}
	for i := range 240 { // two hours, every 30 s, one error each
		g := tp.add(30*time.Second, corrected(uint64(i)))
		since := time.Duration(i) * 30 * time.Second
		switch {
		case since < time.Minute:
			if g.ECC.CorrectedThen != nil {
				t.Errorf("after %v: compared with %d", since, *g.ECC.CorrectedThen)
			}
		case since <= time.Hour:
			if g.ECC.CorrectedThen == nil || *g.ECC.CorrectedThen != 0 || g.ECC.Over != since {
				t.Fatalf("after %v: %+v", since, g.ECC)
			}
		default:
			if n := uint64(i) - *g.ECC.CorrectedThen; n < 110 || n > 120 || g.ECC.Over != time.Duration(n)*30*time.Second {
				t.Fatalf("after %v: %d errors over %v", since, n, g.ECC.Over)
			}
		}
	}
	if len(tp.recent) > 10 || len(tp.hourly) > 14 {
		t.Errorf("keeps %d recent and %d hourly readings", len(tp.recent), len(tp.hourly))
	}
	if g := tp.add(30*time.Second, func(s *Snapshot) { s.GPUs[0].ECC = ecc.Reading{} }); g.ECC.CorrectedThen != nil {
		t.Errorf("compared though not read: %+v", g.ECC)
	}
}

// However often a busy node is looked at, what is kept stays small.
func TestHistoryIsBounded(t *testing.T) {
	tp := tape{now: at}
	for range 5000 {
		tp.add(100*time.Millisecond, replays(1))
	}
	if len(tp.recent) > 10 || len(tp.hourly) > 14 {
		t.Errorf("keeps %d recent and %d hourly readings", len(tp.recent), len(tp.hourly))
	}
}

// A node that throttles, retries or repeats is found by two snapshots that each look harmless.
func TestAHistoryTurnsCountersIntoFaults(t *testing.T) {
	var h History
	for i, want := range []string{
		"clocks gpu/GPU-1 pass watch", // a power brake at one moment
		"nvlink gpu/GPU-0 fail drain\npcie gpu/GPU-2 fail drain\nclocks gpu/GPU-1 fail drain",
	} {
		s := healthy(3)
		s.At = at.Add(time.Duration(i) * time.Minute)
		n := uint64(i) * 10_000
		s.GPUs[0].NVLink.Links[0].CRC = counter.Of(n)
		s.GPUs[1].Clocks.Reasons = clocks.PowerBrake
		s.GPUs[2].PCIe.Replays = counter.Of(n)
		h.Add(&s)
		if got := brief(Judge(s, nil, acting())); got != want {
			t.Errorf("snapshot %d: got\n%s\nwant\n%s", i, got, want)
		}
	}
}

func TestWhatGPUsShowAlike(t *testing.T) {
	for _, tt := range []struct {
		name        string
		change      func(*Snapshot)
		links, lane int64
	}{
		{"all alike", func(*Snapshot) {}, 1, 16},
		{"one is narrower: no width is common", func(s *Snapshot) { s.GPUs[1].PCIe.Width = 8 }, 1, 0},
		{"one was not read", func(s *Snapshot) { s.GPUs[2].PCIe.Have, s.GPUs[2].NVLink.Links[0].Have = checks.Unread, checks.Unread }, 0, 0},
		{"no link up: nothing to learn from", func(s *Snapshot) {
			for i := range s.GPUs {
				s.GPUs[i].NVLink.Links[0].State = nvlink.Inactive
			}
		}, 0, 16},
		{"no GPU", func(s *Snapshot) { s.GPUs = nil }, 0, 0},
	} {
		s := healthy(3)
		tt.change(&s)
		got := s.Inventory().Shows
		if got["nvlink.links"] != tt.links || got["pcie.width"] != tt.lane || got["inventory.count"] != 3 {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
