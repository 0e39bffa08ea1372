package nvml

import (
	"cmp"
	"slices"

	"github.com/assay-gpu/assay/checks"
)

// keyAt is the key of the GPU the driver counts as i of count, as far as is known. With the lock held.
func (s *Supervisor) keyAt(i, count int) string {
	if len(s.known) == count {
		for _, g := range s.known {
			if g.Index == i {
				return keyOf(g)
			}
		}
	}
	if a := gpuAddresses(s.cfg.Sysfs); len(a) == count {
		return a[i]
	}
	return indexKey(i)
}

// identity is who a key stands for, as last known. With the lock held.
func (s *Supervisor) identity(key string) checks.GPU {
	if b, ok := s.blocked.GPUs[key]; ok {
		return b.GPU
	}
	if x, ok := s.suspects[key]; ok {
		return x.gpu
	}
	for _, g := range s.known {
		if key == keyOf(g) || key == g.PCI || key == indexKey(g.Index) {
			return g
		}
	}
	for i, a := range gpuAddresses(s.cfg.Sysfs) {
		if a == key {
			return checks.GPU{Index: i, PCI: a}
		}
	}
	return checks.GPU{}
}

// named is who a target that did not say so itself must be.
func (s *Supervisor) named(key string, t target, count int) checks.GPU {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.identity(key)
	if g == (checks.GPU{}) {
		g.PCI = t.PCI
	}
	g.Node, g.Index = s.cfg.Node, t.Index
	return g
}

// remember notes who a GPU is.
func (s *Supervisor) remember(g checks.GPU) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rememberLocked(g)
}

func (s *Supervisor) rememberLocked(g checks.GPU) {
	g.Node = s.cfg.Node
	s.known = slices.DeleteFunc(slices.Clone(s.known), func(k checks.GPU) bool {
		return k.UUID == g.UUID || k.PCI == g.PCI
	})
	s.known = append(s.known, g)
	slices.SortFunc(s.known, func(a, b checks.GPU) int { return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.PCI, b.PCI)) })
}

// learn takes the identities of a whole round: GPUs read now are known; others stay known while the driver does not count
// them away.
func (s *Supervisor) learn(r *round) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range r.read {
		if st.UUID != "" {
			s.rememberLocked(st.GPU)
		}
	}
	met := map[string]bool{}
	for key := range r.read {
		met[key] = true
	}
	for key := range s.suspects {
		met[key] = true
	}
	for key := range s.blocked.GPUs {
		met[key] = true
	}
	if len(met) >= r.count { // all that is counted was met: what else was known is gone
		s.known = slices.DeleteFunc(slices.Clone(s.known), func(g checks.GPU) bool { return !met[keyOf(g)] })
	}
}
