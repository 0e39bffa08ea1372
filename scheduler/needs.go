package scheduler

import (
	"time"

	"github.com/assay-gpu/assay/checks"
)

// Needs is what g needs of a node's certificate at its start: a level, and how much longer it must hold.
func (g *Gang) Needs() (checks.Level, time.Duration) { return g.level(), g.remaining() }

// Insists reports whether g still waits for as few switches as it named.
func (g *Gang) Insists() bool { return g.insists() }
