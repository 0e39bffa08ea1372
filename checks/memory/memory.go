// Package memory judges a node's own memory: all of it is there, and it keeps what is written to it.
//
// Firmware maps a bad module out at boot and says so nowhere but in the total, which is therefore compared with policy, or
// with the most this node has shown. Error counters are the EDAC driver's, of this boot: an uncorrected error is a fault;
// many corrected ones on one module foretell it, and are watched. Sources: Linux Documentation/driver-api/edac.rst;
// mcelog.conf for the corrected limit (10 in 24 h on one module); Azure/azurehpc-health-checks for comparing the total.
package memory

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/strike"
	"github.com/assay-gpu/assay/checks/tally"
)

// ID is the check's catalog id.
const ID = "memory"

// A Reading is the node's memory.
type Reading struct {
	Have    checks.Availability `json:"have"`
	Err     string              `json:"err,omitempty"`
	Total   uint64              `json:"total"`             // bytes the kernel uses: MemTotal
	Learned uint64              `json:"learned,omitempty"` // the most this node has shown; Track fills it
	EDAC    checks.Availability `json:"edac"`
	EDACErr string              `json:"edac_err,omitempty"`
	Modules []Module            `json:"modules,omitempty"`
}

// A Module is one memory module, or one controller where the driver does not tell modules apart.
type Module struct {
	Name        string       `json:"name"`            // mc0/dimm3, or mc0
	Label       string       `json:"label,omitempty"` // the slot, where firmware names it
	Corrected   uint64       `json:"corrected"`       // errors in this boot
	Uncorrected uint64       `json:"uncorrected"`     // errors in this boot
	Past        strike.Delta `json:"past"`            // how Corrected rose; Track fills it
}

// Track fills in what is remembered, and takes the reading into book and learned. at is on the boot clock.
func Track(book *strike.Book, learned *uint64, at time.Duration, r Reading, p policy.Memory) Reading {
	if r.Have == checks.Read {
		*learned = max(*learned, r.Total)
	}
	r.Learned = *learned
	r.Modules = slices.Clone(r.Modules)
	for i, m := range r.Modules {
		r.Modules[i].Past = book.Count(ID+" "+m.Name, "corrected", at, m.Corrected, p.Corrected.Within.D(), strike.Counter32)
	}
	return r
}

// Judge does no I/O.
func Judge(r Reading, p policy.Memory) checks.Finding {
	if r.Have != checks.Read {
		return tally.Unread(ID, "memory", r.Err)
	}
	t := tally.New(ID)
	want, why := p.Bytes, "policy wants"
	if want == 0 {
		want, why = r.Learned, "this node has shown"
	}
	if least := float64(want) * (1 - p.Tolerance); float64(r.Total) < least {
		t.Fault(checks.Drain, "%s of memory, %s %s", tally.Bytes(r.Total), why, tally.Bytes(want))
	}
	if r.EDAC == checks.Unread {
		t.Doubt("error counters not read: %s", r.EDACErr)
	}
	for _, m := range r.Modules {
		name := m.Name
		if m.Label != "" {
			name += " (" + m.Label + ")"
		}
		if m.Uncorrected > p.MaxUncorrected {
			t.Fault(checks.Drain, "%s: %d uncorrected errors in this boot", name, m.Uncorrected)
		}
		if m.Past.Full && m.Past.Rise > p.Corrected.Max {
			text := fmt.Sprintf("%s: %d corrected errors within %s", name, m.Past.Rise, p.Corrected.Within)
			if p.Corrected.Action == checks.Drain.String() {
				t.Fault(checks.Drain, "%s", text)
			} else {
				t.Watch("%s", text)
			}
		}
	}
	well := tally.Bytes(r.Total)
	switch {
	case r.EDAC == checks.NotSupported:
		well += "; this kernel counts no memory errors"
	case len(r.Modules) > 0:
		well += fmt.Sprintf("; no uncorrected error on %d modules", len(r.Modules))
	}
	return t.Finding(evidence(r), well)
}

func evidence(r Reading) string {
	var b strings.Builder
	fmt.Fprintf(&b, "total=%d learned=%d", r.Total, r.Learned)
	for _, m := range r.Modules {
		if m.Corrected > 0 || m.Uncorrected > 0 {
			fmt.Fprintf(&b, " %s=%d/%d", m.Name, m.Corrected, m.Uncorrected)
		}
	}
	return b.String()
}
