package catalog

import (
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/driver"
	"github.com/assay-gpu/assay/checks/ecc"
	"github.com/assay-gpu/assay/checks/inventory"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/recovery"
	"github.com/assay-gpu/assay/checks/rowremap"
	"github.com/assay-gpu/assay/checks/xid"
)

// Judge applies every check that reads a snapshot, in run order, grouped into incidents. Checks that policy turns off
// give nothing. A check of GPUs gives a finding for each GPU, or an Unknown for the node when there is none to judge:
// what was not tested never goes without saying. expected is the hardware accepted before, nil when there is none.
func Judge(s Snapshot, expected *checks.Inventory, p policy.Policy) []checks.Finding {
	var out []checks.Finding
	add := func(id string, fs ...checks.Finding) {
		if runs(p, id) {
			out = append(out, settle(fs, p)...)
		}
	}
	hung := p.Agent.HungChildren
	add(driver.ID, driver.JudgeInit(s.Node, s.Init, hung))
	eachGPU(s, driver.ID, true, add, func(g GPUState) checks.Finding { return driver.JudgeCall(g.GPU, g.Call, hung) })
	add(inventory.ID, inventory.Judge(s.Node, s.hardware(), expected, p.Inventory)...)
	eachGPU(s, recovery.ID, false, add, func(g GPUState) checks.Finding { return recovery.Judge(g.GPU, g.Recovery) })
	eachGPU(s, rowremap.ID, false, add, func(g GPUState) checks.Finding { return rowremap.Judge(g.GPU, g.RowRemap, p.RowRemap) })
	eachGPU(s, ecc.ID, false, add, func(g GPUState) checks.Finding { return ecc.Judge(g.GPU, g.ECC, p.ECC) })
	for i := range out {
		place(&out[i], s.Node, s.BootID, s.At)
	}
	return checks.GroupIncidents(out, p.Agent.IncidentGap.D(), p.Agent.IncidentCause.D())
}

func (s Snapshot) hardware() inventory.Reading {
	r := inventory.Reading{Count: s.Count, Driver: s.Driver}
	for _, g := range s.GPUs {
		r.GPUs = append(r.GPUs, g.GPU)
	}
	if !s.Init.OK {
		r.Count = -1 // nobody was asked, whatever identities are known from before
	}
	return r
}

// eachGPU judges every GPU. Without any, the check is Unknown for the node, unless it has judged the node otherwise.
func eachGPU(s Snapshot, id string, nodeJudged bool, add func(string, ...checks.Finding), judge func(GPUState) checks.Finding) {
	for _, g := range s.GPUs {
		add(id, judge(g))
	}
	if len(s.GPUs) == 0 && !nodeJudged {
		add(id, checks.Finding{Check: id, Subject: checks.Subject{Kind: checks.KindNode}, Reason: "no GPU could be asked"})
	}
}

func place(f *checks.Finding, node, boot string, at time.Time) {
	f.Subject.Node, f.BootID, f.At = node, boot, at
}

// A LogEvent is an event of the kernel log with its time. The kernel's clock since boot, added to the boot's time, is
// what readers should use: the wall clock may jump.
type LogEvent struct {
	xid.Event
	At time.Time
}

// JudgeLog judges what the kernel log of one boot says, in the order given, not yet grouped: group it together with the
// snapshot's findings. GPUs are named by the address in known, the hardware last read: a lost GPU can no longer be asked
// who it is. Rows that only carry data on the event before them give nothing, nor do checks that policy turns off.
func JudgeLog(events []LogEvent, known checks.Inventory, p policy.Policy) []checks.Finding {
	byPCI := make(map[string]checks.GPU, len(known.GPUs))
	for _, g := range known.GPUs {
		byPCI[g.PCI] = g
	}
	var out []checks.Finding
	for _, e := range events {
		if e.Detail {
			continue
		}
		f := xid.Judge(e.Event, p.XID)
		if !runs(p, f.Check) {
			continue
		}
		if g, ok := byPCI[e.PCI]; ok && !e.Switch && e.PCI != "" {
			index := g.Index
			f.Subject.GPUUUID, f.Subject.GPUIndex = g.UUID, &index
		}
		place(&f, known.Node, known.BootID, e.At)
		out = append(out, settle([]checks.Finding{f}, p)...)
	}
	return out
}
