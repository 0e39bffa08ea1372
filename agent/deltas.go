package agent

import (
	"fmt"
	"slices"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/nvlink"
	"github.com/assay-gpu/assay/checks/pcie"
)

// A Baseline is what the counters stood at when a job's prolog passed.
type Baseline struct {
	Job    checks.Job    `json:"job"`
	BootID string        `json:"boot_id"`
	GPUs   []GPUCounters `json:"gpus"`
	Kernel uint64        `json:"kernel_seq"` // the last kernel-log record judged
}

// GPUCounters are one GPU's counters that only rise within a driver load.
type GPUCounters struct {
	UUID                string `json:"uuid"`
	HaveECC             bool   `json:"have_ecc"`
	VolatileCorrected   uint64 `json:"volatile_corrected"`   // errors since driver load
	VolatileUncorrected uint64 `json:"volatile_uncorrected"` // errors since driver load
	HaveRemap           bool   `json:"have_remap"`
	Correctable         int    `json:"correctable"`   // rows remapped after correctable errors
	Uncorrectable       int    `json:"uncorrectable"` // rows remapped after uncorrectable errors
	HaveLinks           bool   `json:"have_links"`
	LinkErrors          uint64 `json:"link_errors"` // replays, recoveries and CRC errors of all NVLinks, since driver load
	HaveReplays         bool   `json:"have_replays"`
	Replays             uint64 `json:"replays"`   // of the PCIe link, since driver load
	Processes           []int  `json:"processes"` // ids of what computed on it; nil when not read
}

// Counters takes a snapshot's counters as a baseline.
func Counters(s catalog.Snapshot) []GPUCounters {
	out := make([]GPUCounters, 0, len(s.GPUs))
	for _, g := range s.GPUs {
		c := GPUCounters{
			UUID:    g.UUID,
			HaveECC: g.ECC.Have == checks.Read, VolatileCorrected: g.ECC.VolatileCorrected, VolatileUncorrected: g.ECC.VolatileUncorrected,
			HaveRemap: g.RowRemap.Have == checks.Read, Correctable: g.RowRemap.Correctable, Uncorrectable: g.RowRemap.Uncorrectable,
		}
		c.LinkErrors, c.HaveLinks = g.NVLink.Errors()
		c.Replays, c.HaveReplays = g.PCIe.Replays.Now, g.PCIe.Replays.Have == checks.Read
		if g.Leftover.Have == checks.Read {
			c.Processes = append([]int{}, g.Leftover.PIDs()...)
		}
		out = append(out, c)
	}
	return out
}

// Deltas says what a job's GPUs counted while it ran: the baseline taken at its prolog against the snapshot at its end.
// Without a baseline, or after one of another boot, nothing is known. New errors are watched, not failed: the limits
// are the checks' own business. uuids are the job's GPUs.
func Deltas(base *Baseline, now catalog.Snapshot, uuids []string) []checks.Finding {
	var fs []checks.Finding
	for _, g := range now.GPUs {
		if !slices.Contains(uuids, g.UUID) {
			continue
		}
		for _, f := range gpuDeltas(base, now, g) {
			f.Subject, f.At, f.BootID = g.Subject(), now.At, now.BootID
			fs = append(fs, f)
		}
	}
	return fs
}

func gpuDeltas(base *Baseline, now catalog.Snapshot, g catalog.GPUState) []checks.Finding {
	ecc, remap := checks.Finding{Check: "ecc"}, checks.Finding{Check: "rowremap"}
	links, bus := checks.Finding{Check: nvlink.ID}, checks.Finding{Check: pcie.ID}
	unknown := func(why string) []checks.Finding {
		ecc.Reason, remap.Reason, links.Reason, bus.Reason = why, why, why, why
		return []checks.Finding{ecc, remap, links, bus}
	}
	if base == nil {
		return unknown("no baseline from the job's prolog")
	}
	if base.BootID != now.BootID {
		return unknown("the node booted while the job ran")
	}
	i := slices.IndexFunc(base.GPUs, func(c GPUCounters) bool { return c.UUID == g.UUID })
	if i < 0 {
		return unknown("the GPU was not there at the job's prolog")
	}
	b, n := base.GPUs[i], Counters(catalog.Snapshot{GPUs: []catalog.GPUState{g}})[0]
	judgeDelta(&ecc, b.HaveECC, n.HaveECC,
		delta{"uncorrected errors", b.VolatileUncorrected, n.VolatileUncorrected},
		delta{"corrected errors", b.VolatileCorrected, n.VolatileCorrected})
	judgeDelta(&remap, b.HaveRemap, n.HaveRemap,
		delta{"rows remapped after uncorrectable errors", uint64(max(b.Uncorrectable, 0)), uint64(max(n.Uncorrectable, 0))},
		delta{"rows remapped after correctable errors", uint64(max(b.Correctable, 0)), uint64(max(n.Correctable, 0))})
	judgeDelta(&links, b.HaveLinks, n.HaveLinks, delta{"NVLink errors", b.LinkErrors, n.LinkErrors})
	judgeDelta(&bus, b.HaveReplays, n.HaveReplays, delta{"PCIe replays", b.Replays, n.Replays})
	if g.NVLink.Have == checks.NotSupported || g.NVLink.Have == checks.Read && len(g.NVLink.Links) == 0 {
		links.Verdict, links.Reason = checks.NotApplicable, "this GPU has no NVLink"
	}
	if g.PCIe.Replays.Have == checks.NotSupported {
		bus.Verdict, bus.Reason = checks.NotApplicable, "this GPU counts no PCIe replays"
	}
	if g.ECC.Have == checks.NotSupported {
		ecc.Verdict, ecc.Reason = checks.NotApplicable, "this GPU counts no ECC errors"
	}
	if g.RowRemap.Have == checks.NotSupported {
		remap.Verdict, remap.Reason = checks.NotApplicable, "this GPU remaps no rows"
	}
	return []checks.Finding{ecc, remap, links, bus}
}

type delta struct {
	what        string
	before, now uint64
}

func judgeDelta(f *checks.Finding, haveBefore, haveNow bool, ds ...delta) {
	if !haveBefore || !haveNow {
		f.Reason = "the counters were not read at both ends of the job"
		return
	}
	f.Verdict = checks.Pass
	for _, d := range ds {
		switch {
		case d.now < d.before:
			f.Verdict, f.Action = checks.Unknown, checks.None
			f.Reason = fmt.Sprintf("%s fell from %d to %d while the job ran: the counter was reset", d.what, d.before, d.now)
			return
		case d.now > d.before:
			f.Action, f.Count = checks.Watch, f.Count+int(min(d.now-d.before, 1<<31))
			if f.Reason != "" {
				f.Reason += ", "
			}
			f.Reason += fmt.Sprintf("%d %s while the job ran", d.now-d.before, d.what)
		}
	}
	if f.Reason == "" {
		f.Reason = "no new errors while the job ran"
	}
}
