package agent

import (
	"fmt"
	"slices"
	"time"

	"github.com/assay-gpu/assay/coordinator/wire"
)

// Held is a certificate with its ends on the boot clock.
type Held struct {
	wire.GrantedCertificate
	Expires    time.Duration // boot clock; placement ends here
	GraceUntil time.Duration // boot clock; hooks accept it until here
	Untrusted  string        // why the signature proves nothing: the certificate is then Unknown, not void; empty: it is good
}

// Hold puts a granted certificate on the boot clock: received is the boot clock when it came, in boot bootID.
// A certificate of another boot does not hold. before is what was held until now: the ends of one serial never move
// later, however late a copy of it arrives.
func Hold(g *wire.GrantedCertificate, received time.Duration, verify func(wire.GrantedCertificate) error, before *Held) *Held {
	if g == nil {
		return nil
	}
	h := &Held{GrantedCertificate: *g, Expires: received + seconds(g.RemainingSeconds), GraceUntil: received + seconds(g.GraceRemainingSeconds)}
	if before != nil && before.Serial == h.Serial && before.BootID == h.BootID {
		h.Expires, h.GraceUntil = min(h.Expires, before.Expires), min(h.GraceUntil, before.GraceUntil)
	}
	h.GraceUntil = max(h.GraceUntil, h.Expires)
	if err := verify(*g); err != nil {
		h.Untrusted = err.Error()
	}
	return h
}

// maxLifetime bounds what a remaining time may say: far beyond any policy, well within a Duration.
const maxLifetime = 10 * 365 * 24 * time.Hour

// seconds turns a number of seconds from the wire into a duration between 0 and maxLifetime; not-a-number is 0.
func seconds(s float64) time.Duration {
	if !(s > 0) {
		return 0
	}
	if s > maxLifetime.Seconds() {
		return maxLifetime
	}
	return time.Duration(s * float64(time.Second))
}

// stale reports whether the certificate is of another suite than one of its level is now: it is then Unknown, not void.
func (h *Held) stale(s State) bool {
	return s.Suite != "" && h.Suite != "" && h.Suite != s.Suite
}

// holds reports whether the certificate lets a job on the GPUs uuids pass, and if not, why.
func (h *Held) holds(s State, uuids []string) (bool, string) {
	switch {
	case h == nil:
		return false, "no certificate"
	case h.BootID != s.BootID:
		return false, fmt.Sprintf("certificate %d is of another boot", h.Serial)
	case s.Driver != "" && h.Driver != "" && h.Driver != s.Driver:
		return false, fmt.Sprintf("certificate %d is for driver %s, the node runs %s", h.Serial, h.Driver, s.Driver)
	case h.Suspended:
		return false, fmt.Sprintf("certificate %d is suspended", h.Serial)
	case h.Untrusted != "":
		return false, fmt.Sprintf("certificate %d proves nothing: %s", h.Serial, h.Untrusted)
	case h.stale(s):
		return false, fmt.Sprintf("certificate %d is of another suite than what would be tested now", h.Serial)
	case s.Now >= h.GraceUntil:
		return false, fmt.Sprintf("certificate %d has expired, grace included", h.Serial)
	case s.Tombstone.Covers(h.Serial):
		return false, fmt.Sprintf("certificate %d is void here since a hard fault: %s", h.Serial, s.Tombstone.Reason)
	}
	for _, u := range uuids {
		if !slices.Contains(h.GPUs, u) {
			return false, fmt.Sprintf("certificate %d does not cover %s", h.Serial, u)
		}
	}
	return true, ""
}
