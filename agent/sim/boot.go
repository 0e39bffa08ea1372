package sim

import (
	"fmt"
	"time"
)

// Reboot gives the node in dir a new boot id and an empty kernel log, and heals what a reboot heals: volatile counters
// are zero, a pending remap and a pending ECC mode are in force, and every fault that does not persist is gone. A fault
// that heals after N reboots is gone after the Nth.
func Reboot(dir string) error {
	return change(dir, func(s *State) error {
		s.Boots++
		for i := range s.GPUs {
			s.GPUs[i].reboot(models[s.Model])
		}
		keep := keeps(&s.Persists, &s.HealsAfterReboots)
		if !keep {
			s.Init = ""
			if s.DCGM != "" {
				s.DCGM, s.Diag = "up", ""
			}
		}
		s.Host.reboot(keep)
		return s.boot(dir)
	})
}

// keeps says whether faults stay through this reboot, and counts it.
func keeps(persists *bool, healsAfter *int) bool {
	switch {
	case *healsAfter > 1:
		*healsAfter--
		return true
	case *healsAfter == 1:
		*healsAfter, *persists = 0, false
		return false
	}
	return *persists
}

func (g *GPU) reboot(m model) {
	keep := keeps(&g.Persists, &g.HealsAfterReboots)
	g.VolatileCorrected, g.VolatileUncorrected = 0, 0
	g.ECCEnabled, g.MIG = g.ECCPending, g.MIGPending
	if !keep {
		g.heal(m)
	}
}

// heal clears all that does not stay with the board for life.
func (g *GPU) heal(m model) {
	g.RemapPending, g.RecoveryAction, g.Lost, g.Missing, g.Hang = false, 0, false, false, ""
	g.CUDAHang, g.CUDAError = false, 0
	was := g.Parts
	g.Parts = m.healthy()
	g.Persistence, g.MIG, g.MIGPending, g.ACS = was.Persistence, was.MIG, was.MIGPending, was.ACS
	g.RetiredSingle, g.RetiredDouble, g.BanksNone, g.RatesSince = was.RetiredSingle, was.RetiredDouble, was.BanksNone, was.RatesSince
	g.DCGMError = 0
}

// Reset is a GPU reset: volatile counters are zero, a pending remap and a pending ECC mode are in force, the driver asks
// for no recovery and a hung call is free again. A lost or missing GPU cannot be reset; a fault that persists stays.
func Reset(dir string, gpu int) error {
	return change(dir, func(s *State) error {
		g, err := s.gpu(gpu)
		if err != nil {
			return err
		}
		if g.Lost || g.Missing {
			return fmt.Errorf("reset GPU %d of %s: the driver reaches it no more", gpu, s.Node)
		}
		g.settle(time.Now())
		g.VolatileCorrected, g.VolatileUncorrected = 0, 0
		g.ECCEnabled, g.MIG = g.ECCPending, g.MIGPending
		if !g.Persists && g.HealsAfterReboots == 0 {
			g.heal(models[s.Model])
		}
		return nil
	})
}
