package catalog

import (
	"fmt"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/clocks"
	"github.com/assay-gpu/assay/checks/driver"
	"github.com/assay-gpu/assay/checks/ecc"
	"github.com/assay-gpu/assay/checks/fabric"
	"github.com/assay-gpu/assay/checks/inventory"
	"github.com/assay-gpu/assay/checks/modes"
	"github.com/assay-gpu/assay/checks/nvlink"
	"github.com/assay-gpu/assay/checks/pcie"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/recovery"
	"github.com/assay-gpu/assay/checks/retired"
	"github.com/assay-gpu/assay/checks/rowremap"
	"github.com/assay-gpu/assay/checks/thermal"
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
	eachGPU(s, rowremap.ID, false, add, likePeers(s, func(g GPUState) bool { return g.RowRemap.Have == checks.Read },
		func(g GPUState) checks.Finding { return rowremap.Judge(g.GPU, g.RowRemap, p.RowRemap) }))
	eachGPU(s, ecc.ID, false, add, likePeers(s, func(g GPUState) bool { return g.ECC.Have == checks.Read },
		func(g GPUState) checks.Finding { return ecc.Judge(g.GPU, g.ECC, p.ECC) }))
	eachGPU(s, retired.ID, false, add, func(g GPUState) checks.Finding { return retired.Judge(g.GPU, g.Retired, p.Retired) })
	links := nvlink.Judge(s.links(), p.NVLink)
	eachGPU(s, nvlink.ID, false, add, func(GPUState) (f checks.Finding) { f, links = links[0], links[1:]; return f })
	manager := fabric.JudgeManager(s.Host.FabricManager, p.Fabric)
	add(fabric.ID, manager)
	eachGPU(s, fabric.ID, manager.Verdict == checks.Unknown, add, func(g GPUState) checks.Finding { return fabric.Judge(g.GPU, g.Fabric) })
	eachGPU(s, pcie.ID, false, add, func(g GPUState) checks.Finding { return pcie.Judge(g.GPU, g.PCIe, p.PCIe) })
	eachGPU(s, clocks.ID, false, add, func(g GPUState) checks.Finding { return clocks.Judge(g.GPU, g.Clocks, p.Clocks) })
	eachGPU(s, thermal.ID, false, add, func(g GPUState) checks.Finding { return thermal.Judge(g.GPU, g.Thermal, p.Thermal) })
	add(modes.ID, modes.JudgeSoftware(s.Node, modes.Software{Driver: s.Driver, Library: s.Library, Mismatch: s.Init.Mismatch}))
	eachGPU(s, modes.ID, true, add, func(g GPUState) checks.Finding { return modes.Judge(g.GPU, g.Modes, p.Modes) })
	judgeHost(s.Host, add, p)
	for i := range out {
		place(&out[i], s.Node, s.BootID, s.At)
	}
	return checks.GroupIncidents(out, p.Agent.IncidentGap.D(), p.Agent.IncidentCause.D())
}

// links are the NVLinks of all GPUs, in their order.
func (s Snapshot) links() []nvlink.GPU {
	var out []nvlink.GPU
	for _, g := range s.GPUs {
		out = append(out, nvlink.GPU{GPU: g.GPU, Reading: g.NVLink})
	}
	return out
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

// likePeers leaves open what a GPU says it has not, while another of the same product on the node has it: that is no property
// of the hardware.
func likePeers(s Snapshot, has func(GPUState) bool, judge func(GPUState) checks.Finding) func(GPUState) checks.Finding {
	return func(g GPUState) checks.Finding {
		f := judge(g)
		if f.Verdict != checks.NotApplicable {
			return f
		}
		for _, o := range s.GPUs {
			if o.GPU.UUID != g.GPU.UUID && o.GPU.Name == g.GPU.Name && has(o) {
				f.Verdict = checks.Unknown
				f.Reason += fmt.Sprintf(", but GPU %d, the same product, answers", o.GPU.Index)
				return f
			}
		}
		return f
	}
}

func place(f *checks.Finding, node, boot string, at time.Time) {
	f.Subject.Node, f.BootID, f.At = node, boot, at
}
