package nvml

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// endWait is how long a killed child is waited for before the next one starts.
const endWait = time.Second

func trim(b []byte) string { return strings.TrimSpace(string(b)) }

// start starts a child and starts NVML in it, with the driver's events if asked for. Both outcomes that are no child are counted: nvmlInit hanging, and an error.
func (s *Supervisor) start(events bool) (*process, error) {
	var cgroup *os.File
	if s.cfg.Cgroup != "" {
		if err := os.MkdirAll(s.cfg.Cgroup, 0o755); err == nil {
			cgroup, _ = os.Open(s.cfg.Cgroup)
		}
	}
	if cgroup != nil {
		defer cgroup.Close()
	}
	p, err := startProcess(s.cfg.Argv, s.cfg.Env, cgroup, s.cfg.Event)
	if err != nil && cgroup != nil { // a cgroup is for accounting; without one the child does as well
		p, err = startProcess(s.cfg.Argv, s.cfg.Env, nil, s.cfg.Event)
	}
	if err != nil {
		return nil, fmt.Errorf("start NVML probe: %w", err)
	}
	p.kill, p.events = s.kill, events
	m, err := p.ask(request{Do: doInit, Events: events}, "", s.limits().InitDeadline.D(), func(message) {})
	switch {
	case errors.Is(err, errHung):
		call := p.lastCall
		if call == "" {
			call = "nvmlInit"
		}
		s.lose(p, "init_hung")
		s.initHangs(call)
		return nil, errHung
	case err != nil:
		s.lose(p, "died")
		return nil, err
	case m.Init == nil:
		s.lose(p, "died")
		return nil, errors.New("NVML probe answered another question")
	case m.Init.Err != "":
		s.lose(p, "init_failed")
		return nil, errors.New(m.Init.Err)
	}
	s.mu.Lock()
	s.initHung = 0
	s.mu.Unlock()
	return p, nil
}

// initHangs counts a fresh child in which NVML did not start, and blocks NVML when it was the last allowed.
func (s *Supervisor) initHangs(call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.initHung++
	s.log.Error("driver call hung", "call", call, "count", s.initHung, "limit", s.policy.HungChildren)
	if s.initHung < s.policy.HungChildren {
		return
	}
	s.blockInit(call, fmt.Sprintf("%s hung in %d fresh processes in a row", call, s.initHung), s.initHung)
}

// blockInit notes that NVML is not started any more. With the lock held.
func (s *Supervisor) blockInit(call, reason string, count int) {
	if s.blocked.Init != nil {
		return
	}
	s.blocked.Init = &Block{Call: call, Since: time.Now().UTC(), Reason: reason, Count: count}
	s.saveBlocked()
}

// lose ends a child that hung, died or failed, and counts why.
func (s *Supervisor) lose(p *process, why string) {
	s.mu.Lock()
	s.stats.Restarts[why]++
	s.mu.Unlock()
	s.log.Warn("probe child lost", "why", why, "call", p.lastCall, "gpu", p.lastGPU)
	if s.cfg.Restart != nil {
		s.cfg.Restart(why)
	}
	s.retire(p, true)
}

// retire ends a child. One that does not end is watched until it does.
func (s *Supervisor) retire(p *process, bad bool) {
	s.mu.Lock()
	s.stats.Calls += p.calls
	s.mu.Unlock()
	p.calls = 0
	if p.end(endWait) {
		return
	}
	call := p.lastCall
	if p.lastGPU != "" {
		call += " on " + p.lastGPU
	}
	s.mu.Lock()
	s.stuck[p] = call
	after := max(0, s.policy.StuckChild.D()-time.Since(p.killedAt))
	s.mu.Unlock()
	s.log.Error("probe child outlives SIGKILL", "call", call, "pid", p.cmd.Process.Pid, "asked", bad)
	go func() {
		select {
		case <-p.Done():
		case <-time.After(after):
			s.blockStuck(p)
			<-p.Done()
		}
		s.mu.Lock()
		delete(s.stuck, p)
		s.mu.Unlock()
	}()
}

// blockStuck blocks what a child that will not die was asked.
func (s *Supervisor) blockStuck(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reason := fmt.Sprintf("a process that called %s is still there %s after SIGKILL", p.lastCall, s.policy.StuckChild.D())
	if p.lastGPU == "" {
		s.blockInit(p.lastCall, reason, 0)
		return
	}
	gpu := s.identity(p.lastGPU)
	s.block(p.lastGPU, Block{Call: p.lastCall, Reason: reason, GPU: gpu})
}

// stuckCall names the last call of a child that is still there this long after it was killed; empty if there is none.
func (s *Supervisor) stuckCall(after time.Duration) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, call := range s.stuck {
		if !p.gone() && time.Since(p.killedAt) >= after {
			return call
		}
	}
	return ""
}

// block notes that a GPU is not asked any more. With the lock held.
func (s *Supervisor) block(key string, b Block) {
	if _, already := s.blocked.GPUs[key]; already {
		return
	}
	b.Since = time.Now().UTC()
	s.blocked.GPUs[key] = b
	delete(s.suspects, key)
	s.log.Error("GPU blocked until the next boot", "gpu", b.GPU.Index, "gpu_uuid", b.GPU.UUID, "pci", b.GPU.PCI, "call", b.Call, "reason", b.Reason)
	s.saveBlocked()
}

func (s *Supervisor) saveBlocked() {
	if err := s.blocked.save(s.cfg.RunDir); err != nil {
		s.log.Error("blocked file not written; a restarted agent will ask again", "err", err)
	}
}
