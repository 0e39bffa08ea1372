package nvml

import (
	"cmp"
	"slices"
	"strings"
	"time"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/driver"
)

// blank is a GPU of which nothing was read.
func (s *Supervisor) blank(g checks.GPU) catalog.GPUState {
	g.Node = s.cfg.Node
	return catalog.GPUState{GPU: g}
}

// assemble makes the snapshot of a round that has ended, or as far as it has come; late says why no more was waited for.
func (s *Supervisor) assemble(r *round, late error) (catalog.Snapshot, error) {
	stuck := s.stuckCall(s.limits().StuckChild.D())
	r.mu.Lock()
	defer r.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return catalog.Snapshot{}, errClosed
	}
	snap := catalog.Snapshot{
		At: time.Now(), Node: s.cfg.Node, BootID: s.boot, NodeSerial: s.serial, Driver: s.driver, Library: s.library, Count: r.count,
		Init: driver.Init{OK: r.ready, Err: r.initErr, HungCount: s.initHung, ChildStuck: stuck},
	}
	if b := s.blocked.Init; b != nil {
		snap.Init.OK, snap.Init.Err, snap.Init.HungCount = false, b.Reason, b.Count
	}
	if snap.Init.OK {
		snap.Init.Err = ""
	} else if snap.Init.Err == "" && late != nil {
		snap.Init.Err = "not read: " + late.Error()
	}
	snap.Init.Mismatch = strings.Contains(snap.Init.Err, returns[gonvml.ERROR_LIB_RM_VERSION_MISMATCH])
	states := map[string]catalog.GPUState{}
	for key, st := range r.read {
		states[key] = st
	}
	for key, x := range s.suspects {
		if x.answer != nil {
			states[key] = *x.answer
			continue
		}
		st := s.blank(x.gpu)
		st.Call = driver.Call{Hung: x.call, HungCount: x.count}
		states[key] = st
	}
	for key, b := range s.blocked.GPUs {
		st := s.blank(b.GPU)
		st.Call = driver.Call{Hung: b.Call, HungCount: b.Count, Blocked: true, Err: b.Reason}
		states[key] = st
	}
	at := map[string]bool{} // addresses accounted for
	for _, st := range states {
		at[st.PCI] = true
	}
	// A GPU that was known and not met is shown as unread, unless as many as the driver counts were met: then it is gone.
	if !r.finished || len(states) < r.count {
		for _, g := range s.known {
			if _, met := states[keyOf(g)]; met || g.PCI != "" && at[g.PCI] {
				continue
			}
			st := s.blank(g)
			st.Call.Err = cmp.Or(snap.Init.Err, errText(late), "not read")
			states[keyOf(g)] = st
		}
	}
	for _, st := range states {
		snap.GPUs = append(snap.GPUs, st)
	}
	slices.SortFunc(snap.GPUs, func(a, b catalog.GPUState) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.PCI, b.PCI))
	})
	return snap, nil
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return "not read: " + err.Error()
}
