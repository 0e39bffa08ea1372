package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/counter"
	"github.com/assay-gpu/assay/checks/ecc"
	"github.com/assay-gpu/assay/checks/nvlink"
	"github.com/assay-gpu/assay/checks/pcie"
	"github.com/assay-gpu/assay/checks/rowremap"
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

	// Ended are the counters that stand at the end of a register's range, by check and by what they count.
	Ended map[string]map[string]uint64 `json:"ended,omitempty"`
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
		var links checks.Availability
		c.LinkErrors, links = g.NVLink.Errors()
		c.HaveLinks = links == checks.Read
		c.Replays, c.HaveReplays = g.PCIe.Replays.Now, g.PCIe.Replays.Have == checks.Read
		if g.Leftover.Have == checks.Read {
			c.Processes = append([]int{}, g.Leftover.PIDs()...)
		}
		c.Ended = ended(g)
		out = append(out, c)
	}
	return out
}

// ended gives the counters of a GPU that stand at the end of a register's range. One that does at both ends of a job has
// counted nothing or no further: nobody can tell which.
func ended(g catalog.GPUState) map[string]map[string]uint64 {
	out := map[string]map[string]uint64{}
	note := func(check, what string, c counter.Reading) {
		c.Then = nil // it stands at the end whether or not it has just come there
		if !c.Saturated() {
			return
		}
		if out[check] == nil {
			out[check] = map[string]uint64{}
		}
		out[check][what] = c.Now
	}
	if g.ECC.Have == checks.Read {
		note(ecc.ID, "the counter of uncorrected errors", counter.Of(g.ECC.VolatileUncorrected))
		note(ecc.ID, "the counter of corrected errors", counter.Of(g.ECC.VolatileCorrected))
	}
	for i, l := range g.NVLink.Links {
		for _, c := range l.Counters() {
			note(nvlink.ID, fmt.Sprintf("link %d's %s counter", i, c.What), c.Reading)
		}
	}
	note(pcie.ID, "the replay counter", g.PCIe.Replays)
	if len(out) == 0 {
		return nil
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
	memory, remap := checks.Finding{Check: ecc.ID}, checks.Finding{Check: rowremap.ID}
	links, bus := checks.Finding{Check: nvlink.ID}, checks.Finding{Check: pcie.ID}
	unknown := func(why string) []checks.Finding {
		memory.Reason, remap.Reason, links.Reason, bus.Reason = why, why, why, why
		return []checks.Finding{memory, remap, links, bus}
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
	judgeDelta(&memory, b.HaveECC, n.HaveECC,
		delta{"uncorrected errors", b.VolatileUncorrected, n.VolatileUncorrected},
		delta{"corrected errors", b.VolatileCorrected, n.VolatileCorrected})
	judgeDelta(&remap, b.HaveRemap, n.HaveRemap,
		delta{"rows remapped after uncorrectable errors", uint64(max(b.Uncorrectable, 0)), uint64(max(n.Uncorrectable, 0))},
		delta{"rows remapped after correctable errors", uint64(max(b.Correctable, 0)), uint64(max(n.Correctable, 0))})
	judgeDelta(&links, b.HaveLinks, n.HaveLinks, delta{"NVLink errors", b.LinkErrors, n.LinkErrors})
	judgeDelta(&bus, b.HaveReplays, n.HaveReplays, delta{"PCIe replays", b.Replays, n.Replays})
	for _, f := range []*checks.Finding{&memory, &links, &bus} {
		stopped(f, b.Ended[f.Check], n.Ended[f.Check])
	}
	if _, have := g.NVLink.Errors(); g.NVLink.Have == checks.NotSupported || g.NVLink.Have == checks.Read && len(g.NVLink.Links) == 0 {
		links.Verdict, links.Reason = checks.NotApplicable, "this GPU has no NVLink"
	} else if have == checks.NotSupported {
		links.Verdict, links.Reason = checks.NotApplicable, "this driver does not tell what NVLinks count"
	}
	if g.PCIe.Replays.Have == checks.NotSupported {
		bus.Verdict, bus.Reason = checks.NotApplicable, "this GPU counts no PCIe replays"
	}
	if g.ECC.Have == checks.NotSupported {
		memory.Verdict, memory.Reason = checks.NotApplicable, "this GPU counts no ECC errors"
	}
	if g.RowRemap.Have == checks.NotSupported {
		remap.Verdict, remap.Reason = checks.NotApplicable, "this GPU remaps no rows"
	}
	return []checks.Finding{memory, remap, links, bus}
}

// stopped leaves open what a check's counters counted where one of them stood at the end of its range at both ends of the
// job. What others counted is still said.
func stopped(f *checks.Finding, before, now map[string]uint64) {
	if f.Verdict != checks.Pass {
		return
	}
	var said []string
	for _, what := range slices.Sorted(maps.Keys(now)) {
		if n, was := before[what]; was && n == now[what] {
			said = append(said, fmt.Sprintf("%s stands at %d, and may have counted more than it shows", what, n))
		}
	}
	if len(said) == 0 {
		return
	}
	if f.Action == checks.Watch { // new errors of others
		said = append([]string{f.Reason}, said...)
	}
	f.Verdict, f.Action, f.Reason = checks.Unknown, checks.Watch, strings.Join(said, "; ")
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
