package certificate

import (
	"slices"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

// Lifetime is how long a certificate of the level holds under p, grace not counted; 0 for NoLevel.
func Lifetime(p policy.Certificate, level checks.Level) time.Duration {
	switch level {
	case checks.QuickMIG:
		return p.QuickMIG.D()
	case checks.Quick:
		return p.Quick.D()
	case checks.Standard:
		return p.Standard.D()
	case checks.Soak:
		return p.Soak.D()
	case checks.Intake:
		return p.Intake.D()
	}
	return 0
}

// A Screen is what a certificate rests on: a suite that passed.
type Screen struct {
	Level     checks.Level
	Tested    []string // check ids
	NotTested []string
	Suite     string // digest
	Inventory checks.Inventory
	Adopted   bool
	At        time.Time // leader time
}

// New is the certificate that the screen earns under p, not yet numbered nor signed. Its lists are sorted copies.
func New(s Screen, p policy.Certificate) Certificate {
	expires := s.At.Add(Lifetime(p, s.Level))
	return Certificate{
		Node: s.Inventory.Node, GPUs: UUIDs(s.Inventory), Level: s.Level,
		Tested: sorted(s.Tested), NotTested: sorted(s.NotTested), Suite: s.Suite,
		Driver: s.Inventory.Driver, BootID: s.Inventory.BootID, NodeSerial: s.Inventory.NodeSerial, Adopted: s.Adopted,
		IssuedAt: s.At, Expires: expires, GraceUntil: expires.Add(p.Grace.D()),
	}
}

// UUIDs lists the inventory's GPUs, sorted, each once.
func UUIDs(inv checks.Inventory) []string {
	us := make([]string, 0, len(inv.GPUs))
	for _, g := range inv.GPUs {
		if g.UUID != "" {
			us = append(us, g.UUID)
		}
	}
	slices.Sort(us)
	return slices.Compact(us)
}

func sorted(vs []string) []string {
	if len(vs) == 0 {
		return nil
	}
	s := slices.Clone(vs)
	slices.Sort(s)
	return slices.Compact(s)
}

// Holds reports whether c is within its time at t, for placement: grace does not count. A time before it was issued
// is a clock that cannot be trusted, and then it does not hold.
func Holds(c Certificate, t time.Time) bool {
	return !t.Before(c.IssuedAt) && t.Before(c.Expires)
}

// HoldsForHooks is Holds with the grace that hooks, and only hooks, accept.
func HoldsForHooks(c Certificate, t time.Time) bool {
	return !t.Before(c.IssuedAt) && (t.Before(c.Expires) || t.Before(c.GraceUntil))
}

// Covers reports whether every GPU in uuids is covered. A job without GPUs is covered by any certificate.
func Covers(c Certificate, uuids []string) bool {
	for _, u := range uuids {
		if !slices.Contains(c.GPUs, u) {
			return false
		}
	}
	return true
}

// Meets reports whether c holds at t, is at least as deep as level, and will hold for minRemaining more.
func Meets(c Certificate, level checks.Level, t time.Time, minRemaining time.Duration) bool {
	return Holds(c, t) && c.Level >= level && c.Level != checks.NoLevel && !c.Expires.Before(t.Add(minRemaining))
}

// Ended says in words why the hardware or driver now seen is not what c was given for; empty if it still is. What the
// inventory could not read is empty there, and ends nothing.
func Ended(c Certificate, inv checks.Inventory) string {
	switch {
	case inv.BootID != "" && c.BootID != "" && inv.BootID != c.BootID:
		return "new boot"
	case inv.Driver != "" && c.Driver != "" && inv.Driver != c.Driver:
		return "driver changed from " + c.Driver + " to " + inv.Driver
	case inv.NodeSerial != "" && c.NodeSerial != "" && inv.NodeSerial != c.NodeSerial:
		return "host swapped: serial " + c.NodeSerial + " is now " + inv.NodeSerial
	case len(inv.GPUs) > 0 && !slices.Equal(UUIDs(inv), c.GPUs):
		return "the GPUs are not those covered"
	}
	return ""
}
