package nvml

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
)

// A round is one reading of all GPUs by the resident child. It ends by itself: each request has a deadline. When nobody
// waits for it any more it ends after the request in flight, so that a hang is still counted.
type round struct {
	s    *Supervisor
	done chan struct{}

	mu        sync.Mutex
	abandoned bool
	initErr   string
	ready     bool // NVML was started and counted
	finished  bool // every GPU that may be asked was asked
	count     int
	read      map[string]catalog.GPUState // by key
}

func (r *round) abandon() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.abandoned = true
}

func (r *round) wanted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.abandoned
}

// run reads. The caller holds the turn.
func (r *round) run() {
	s := r.s
	if s.main != nil && s.main.gone() {
		s.lose(s.main, "died")
		s.main = nil
	}
	if s.main != nil && s.main.events != s.wantEvents() {
		s.retire(s.main, false)
		s.main = nil
	}
	s.startRound()
	if !r.ensure() {
		return
	}
	for _, t := range s.targets(r.count) {
		if !r.wanted() || !r.ensure() {
			return
		}
		r.gpu(t)
	}
	r.mu.Lock()
	r.finished = true
	r.mu.Unlock()
	s.learn(r)
}

// ensure makes sure there is a resident child that has counted the GPUs. It reports false when there is none to be had.
func (r *round) ensure() bool {
	s := r.s
	for s.main == nil || !r.ready {
		if s.initBlocked() {
			return false
		}
		fresh := s.main == nil
		if fresh {
			p, err := s.start(s.wantEvents())
			if err != nil {
				r.fail("nvmlInit " + err.Error())
				if !errors.Is(err, errHung) {
					r.fail(err.Error())
					return false
				}
				if !r.wanted() {
					return false
				}
				continue
			}
			s.main = p
		}
		again, ok := r.node(fresh)
		if ok {
			return true
		}
		if !again || !r.wanted() {
			return false
		}
	}
	return true
}

// node asks for driver version and count. again: a fresh child may do better.
func (r *round) node(fresh bool) (again, ok bool) {
	s, p := r.s, r.s.main
	m, err := p.ask(request{Do: doNode}, "", s.limits().CallDeadline.D(), func(message) {})
	switch {
	case errors.Is(err, errHung):
		call := p.lastCall
		s.main = nil
		s.lose(p, "hung")
		if fresh {
			s.initHangs(call)
		}
		r.fail(call + " " + errHung.Error())
		return true, false
	case err != nil:
		s.main = nil
		s.lose(p, "died")
		r.fail(err.Error())
		return !fresh, false
	case m.Node == nil || m.Node.Err != "":
		s.main = nil // NVML is of no use; the next round starts it anew
		s.lose(p, "init_failed")
		text := "no count"
		if m.Node != nil {
			text = m.Node.Err
		}
		r.fail(text)
		return !fresh, false
	}
	s.mu.Lock()
	s.driver, s.library = m.Node.Driver, m.Node.Library
	s.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ready, r.count, r.initErr = true, m.Node.Count, ""
	return false, true
}

func (r *round) fail(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.initErr = text
}

// A target is one GPU to ask for, and how.
type target struct {
	request
	key string // UUID, PCI address or "index:N", whichever is known, in this order
}

// gpu asks for one GPU. One that hangs becomes a suspect, and the child is lost.
func (r *round) gpu(t target) {
	s, p := r.s, r.s.main
	key, fresh := t.key, !r.s.main.answered[t.key]
	m, err := p.ask(t.request, key, s.limits().CallDeadline.D(), func(m message) {
		if m.Named != nil { // it said who it is before it hung
			key = keyOf(m.Named.GPU)
			p.lastGPU = key
			s.remember(m.Named.GPU)
		}
	})
	s.count(p)
	switch {
	case errors.Is(err, errHung):
		s.suspect(key, t, p.lastCall, fresh)
		s.main = nil
		s.lose(p, "hung")
	case err != nil || m.GPU == nil:
		text := fmt.Sprint(err)
		if err == nil {
			text = "the probe answered another question"
		}
		s.main = nil
		s.lose(p, "died")
		r.add(key, t, catalog.GPUState{GPU: checks.GPU{Index: t.Index, PCI: t.PCI}, Call: failed(text)})
	case m.GPU.Gone:
	default:
		st := m.GPU.State
		if st.UUID != "" {
			key = keyOf(st.GPU)
			p.answered[key] = true
		}
		r.add(key, t, st)
	}
}

// add notes what was read of a GPU, under its own name where it has one.
func (r *round) add(key string, t target, st catalog.GPUState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if st.UUID == "" {
		st.GPU = r.s.named(key, t, r.count)
		key = keyOf(st.GPU)
	}
	st.Node = r.s.cfg.Node
	r.read[key] = st
}

// targets lists what to ask for: all GPUs the driver counts, by index; or, when some may not be asked, all others by
// their address, since an index could turn out to be one of them.
func (s *Supervisor) targets(count int) []target {
	s.mu.Lock()
	defer s.mu.Unlock()
	excluded := map[string]bool{}
	byAddress := true
	for key := range s.suspects {
		excluded[key] = true
	}
	for key := range s.blocked.GPUs {
		excluded[key] = true
	}
	avoid := map[string]bool{} // addresses not to be asked
	for key := range excluded {
		pci := s.identity(key).PCI
		byAddress = byAddress && pci != ""
		avoid[pci] = true
	}
	var out []target
	if len(excluded) == 0 || !byAddress {
		for i := range count {
			key := s.keyAt(i, count)
			if !excluded[key] && !excluded[indexKey(i)] {
				out = append(out, target{request{Do: doGPU, Index: i}, key})
			}
		}
		return out
	}
	addresses := gpuAddresses(s.cfg.Sysfs)
	for _, g := range s.known {
		addresses = append(addresses, g.PCI)
	}
	slices.Sort(addresses)
	for i, pci := range slices.Compact(addresses) {
		if pci == "" || avoid[pci] {
			continue
		}
		key := pci
		index := i
		for _, g := range s.known {
			if g.PCI == pci {
				key, index = keyOf(g), g.Index
			}
		}
		out = append(out, target{request{Do: doGPU, Index: index, PCI: pci}, key})
	}
	return out
}

func indexKey(i int) string { return "index:" + strconv.Itoa(i) }

// keyOf names a GPU by the best there is.
func keyOf(g checks.GPU) string { return cmp.Or(g.UUID, g.PCI, indexKey(g.Index)) }
