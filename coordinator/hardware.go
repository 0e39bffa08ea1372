package coordinator

import (
	"cmp"
	"slices"
	"strings"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/rma"
)

// partID names a board: by its serial, which stays when its firmware gives it another UUID, or by that.
func partID(g checks.GPU) string { return cmp.Or(g.Serial, g.UUID) }

func (t *tx) part(id string) rma.Part {
	if p, ok := t.parts[id]; ok {
		return p
	}
	return t.base.parts[id]
}

func (t *tx) keepPart(id string, p rma.Part) {
	p.Serial = id
	t.parts[id] = p
	t.put(keyHardware+id, p)
}

// hardware keeps the ledger of parts: where each is, and what it failed with.
func (t *tx) hardware(before, after lifecycle.Node) {
	if !slices.Equal(before.Inventory.GPUs, after.Inventory.GPUs) {
		for _, g := range after.Inventory.GPUs {
			t.fit(after.Name, g, before.Inventory.GPUs)
		}
	}
	if k := after.Case; k != nil && k.Cause != lifecycle.CauseOrder && (before.Case == nil || before.Case.ID != k.ID || before.Case.Cause != k.Cause) {
		t.failed(after, k, "")
	}
	if k := before.Case; k != nil && (after.Case == nil || after.Case.ID != k.ID) {
		t.failed(before, k, t.caseOf(k.ID).Outcome)
	}
}

// fit notes that a board is in its slot, and that the one which was there is gone.
func (t *tx) fit(node string, g checks.GPU, was []checks.GPU) {
	id := partID(g)
	if id == "" {
		return
	}
	for _, old := range was {
		if gone := partID(old); old.PCI == g.PCI && gone != id && gone != "" {
			if p, news := t.part(gone).Gone(t.now); news {
				t.keepPart(gone, p)
			}
		}
	}
	p, news := t.part(id).Fit(node, g.PCI, t.now)
	if news {
		p.UUID, p.Product = g.UUID, g.Name
		t.keepPart(id, p)
	}
}

// failed notes a case, or its outcome, with the board that it is about.
func (t *tx) failed(n lifecycle.Node, k *lifecycle.Case, outcome string) {
	g, ok := boardOf(n, k.Part)
	if !ok {
		return
	}
	t.fit(n.Name, g, nil)
	t.keepPart(partID(g), t.part(partID(g)).Failed(rma.Fault{At: t.now, Case: k.ID, Cause: k.Cause, Node: n.Name, Slot: g.PCI, Outcome: outcome}))
}

// boardOf finds the board that a case names, among those seen or accepted: one that fell off the bus is seen no more.
func boardOf(n lifecycle.Node, part string) (checks.GPU, bool) {
	uuid := strings.TrimPrefix(part, string(checks.KindGPU)+"/")
	for _, list := range [][]checks.GPU{n.Inventory.GPUs, n.Expected.GPUs} {
		for _, g := range list {
			if g.UUID == uuid && partID(g) != "" {
				return g, true
			}
		}
	}
	return checks.GPU{}, false
}
