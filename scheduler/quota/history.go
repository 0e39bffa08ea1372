package quota

import (
	"math"
	"slices"
)

// A History is what each account and user has used: seconds times billing units, fading with a half-life.
type History struct {
	tree *Tree
	raw  []float64
	d    float64 // what one second leaves of one
}

// DefaultHalfLife is Slurm's PriorityDecayHalfLife, in seconds.
const DefaultHalfLife = 7 * 24 * 3600

// NewHistory is an empty history. halfLife is in seconds; with 0 nothing fades.
//
// Slurm's decay is 1 - 0.693/halfLife a second, with 0.693 for ln 2 and only the first terms of the series; so is this one.
func NewHistory(t *Tree, halfLife float64) *History {
	d := 1.0
	if halfLife > 0 {
		d = 1 - 0.693/halfLife
	}
	return &History{tree: t, raw: make([]float64, t.Len()), d: d}
}

// Clone is a copy that goes its own way.
func (h *History) Clone() *History {
	return &History{tree: h.tree, raw: slices.Clone(h.raw), d: h.d}
}

// Fade lets dt seconds pass over all that was used before.
func (h *History) Fade(dt float64) {
	f := max(math.Pow(h.d, dt), 0x1p-1022) // as Slurm: never all the way to nothing
	for i := range h.raw {
		h.raw[i] *= f
	}
}

// Add writes down that id used billing units for the last dt seconds, under a QOS with that usage factor, for itself and
// every account above it. Call Fade(dt) first, once, then Add for each job: Slurm fades what was used within the period as
// if all of it were as old as the period.
func (h *History) Add(id ID, dt, billing, usageFactor float64) {
	u := dt * math.Pow(h.d, dt) * billing * usageFactor
	for at := id; at >= 0; at = h.tree.entries[at].parent {
		h.raw[at] += u
	}
}

// Raw is the faded usage of id and all below it.
func (h *History) Raw(id ID) float64 { return h.raw[id] }

// Left is what dt seconds leave of one.
func (h *History) Left(dt float64) float64 { return math.Pow(h.d, dt) }

// Set says what id has used, faded until now, all below it counted in.
func (h *History) Set(id ID, raw float64) { h.raw[id] = raw }
