package nvml

import (
	"errors"
	"fmt"
	"maps"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/driver"
)

func failed(text string) driver.Call { return driver.Call{Err: text} }

// startRound lets the resident child ask again for suspects that have answered.
func (s *Supervisor) startRound() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quiet = false
	maps.DeleteFunc(s.suspects, func(_ string, x *suspect) bool { return x.answer != nil })
}

func (s *Supervisor) initBlocked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.blocked.Init != nil
}

// count adds the calls a child has made since it was last asked to the total.
func (s *Supervisor) count(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Calls += p.calls
	p.calls = 0
}

// suspect notes that a call on a GPU passed its deadline. Only a child that had not read the GPU before counts: one that
// had may itself be what is stuck.
func (s *Supervisor) suspect(key string, t target, call string, fresh bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.suspects[key]
	if x == nil {
		g := s.identity(key)
		if g.PCI == "" {
			g.PCI = t.PCI
		}
		g.Node = s.cfg.Node
		if g.UUID == "" {
			g.Index = t.Index
		}
		x = &suspect{gpu: g}
		s.suspects[key] = x
	}
	x.answer = nil
	s.hung(key, x, call, fresh)
}

// hung counts a hang and blocks the GPU at the limit. With the lock held.
func (s *Supervisor) hung(key string, x *suspect, call string, fresh bool) {
	if call == "" {
		call = "nvmlDeviceGetHandle"
	}
	x.call = call
	if fresh {
		x.count++
	}
	s.log.Error("driver call hung", "gpu", x.gpu.Index, "gpu_uuid", x.gpu.UUID, "pci", x.gpu.PCI, "call", call, "count", x.count, "limit", s.policy.HungChildren)
	if x.count >= s.policy.HungChildren {
		s.block(key, Block{
			Call: call, Count: x.count, GPU: x.gpu, Reason: fmt.Sprintf("%s hung in %d fresh processes in a row", call, x.count),
		})
	}
}

// retry makes sure that a goroutine retries the suspects, and returns what is closed when none is left to retry.
func (s *Supervisor) retry() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.retrying && !s.closed && !s.quiet && s.nextSuspect() != "" {
		s.retrying, s.settled, s.stopping = true, make(chan struct{}), make(chan struct{})
		go s.retryAll(s.settled, s.stopping)
	}
	return s.settledOrClosed()
}

// settledOrClosed is closed when no goroutine retries suspects. With the lock held.
func (s *Supervisor) settledOrClosed() <-chan struct{} {
	if s.retrying {
		return s.settled
	}
	c := make(chan struct{})
	close(c)
	return c
}

// stopRetries asks the retrying goroutine to end. With the lock held.
func (s *Supervisor) stopRetries() {
	if s.retrying {
		select {
		case <-s.stopping:
		default:
			close(s.stopping)
		}
	}
}

// nextSuspect is the suspect to retry next: of those that have not answered, the one with the fewest hangs, then the
// lowest index. With the lock held.
func (s *Supervisor) nextSuspect() string {
	best := ""
	for key, x := range s.suspects {
		if x.answer != nil {
			continue
		}
		b := s.suspects[best]
		if b == nil || x.count < b.count || x.count == b.count && x.gpu.Index < b.gpu.Index {
			best = key
		}
	}
	return best
}

// retryAll asks each suspect in a fresh child of its own until it answers or is blocked.
func (s *Supervisor) retryAll(settled chan struct{}, stopping <-chan struct{}) {
	defer close(settled)
	defer func() {
		s.mu.Lock()
		s.retrying = false
		s.mu.Unlock()
	}()
	for {
		select {
		case <-stopping:
			return
		default:
		}
		s.mu.Lock()
		key := s.nextSuspect()
		var t target
		if key != "" && s.blocked.Init == nil {
			g := s.suspects[key].gpu
			t = target{request{Do: doGPU, Index: g.Index, PCI: g.PCI}, key}
		}
		s.mu.Unlock()
		if t.key == "" || !s.attempt(t, stopping) {
			return
		}
	}
}

// rekey gives a suspect its name once it has said it, and returns the key it now goes by.
func (s *Supervisor) rekey(key string, g checks.GPU) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rememberLocked(g)
	name := keyOf(g)
	if x := s.suspects[key]; x != nil && name != key {
		delete(s.suspects, key)
		g.Node = s.cfg.Node
		x.gpu = g
		s.suspects[name] = x
	}
	return name
}

// attempt asks one suspect in a fresh child. It reports false when it could not ask.
func (s *Supervisor) attempt(t target, stopping <-chan struct{}) bool {
	p, err := s.start(false)
	if err != nil {
		return false
	}
	done := make(chan struct{})
	defer close(done)
	go func() { // an order to stop ends the child, and with it the wait for its answer
		select {
		case <-stopping:
			_ = p.cmd.Process.Kill()
		case <-done:
		}
	}()
	m, err := p.ask(request{Do: doNode}, "", s.limits().CallDeadline.D(), func(message) {})
	if err == nil && (m.Node == nil || m.Node.Err != "") {
		err = errDied
	}
	if err != nil { // not this GPU's doing: the resident child will meet it too
		s.lose(p, "died")
		return false
	}
	m, err = p.ask(t.request, t.key, s.limits().CallDeadline.D(), func(m message) {
		if m.Named != nil {
			t.key = s.rekey(t.key, m.Named.GPU)
			p.lastGPU = t.key
		}
	})
	s.count(p)
	stopped := false
	select {
	case <-stopping:
		stopped = true
	default:
	}
	s.mu.Lock()
	x := s.suspects[t.key]
	switch {
	case x == nil || stopped:
	case errors.Is(err, errHung):
		s.hung(t.key, x, p.lastCall, true)
	case err != nil || m.GPU == nil:
		st := s.blank(x.gpu)
		st.Call.Err = fmt.Sprint(err)
		x.answer = &st
	default:
		st := m.GPU.State
		if st.UUID == "" {
			st.GPU = x.gpu
		}
		st.Node = s.cfg.Node
		x.answer = &st
	}
	s.mu.Unlock()
	if errors.Is(err, errHung) {
		s.lose(p, "hung")
	} else {
		s.retire(p, false)
	}
	return !stopped
}
