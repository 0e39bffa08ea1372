package xid

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/assay-gpu/assay/checks"
)

// isNVLink5 reports whether the code is one of NVLink 5's seven units.
func isNVLink5(code int) bool { return code >= 144 && code <= 150 }

// An NVLink is what one of the XIDs 144 to 150 says of an NVLink 5 unit:
// "NETIR_LINK_EVT Fatal XC0 i0 Link 09 (0x025525c6 0x00000000 …)".
type NVLink struct {
	Unit   string // as the driver names it
	Cross  bool   // XC1: the fault is contained across GPUs
	Intr   uint32 // the first word: unit, and why a link went down
	Status uint32 // the second word: the unit's error status
	Whole  bool   // both words were read and the list of words is closed
}

// Subcode is why a link went down: bits 20 to 25 of the first word, in both layouts.
func (n NVLink) Subcode() int { return int(n.Intr >> 20 & 0x3f) }

// parseNVLink5 reads unit, severity, cross-contain and injected flags, link and the words. A line that was cut keeps what
// it still says.
func (e *Event) parseNVLink5() {
	head, words, _ := strings.Cut(afterName(e.Text), "(")
	f := strings.Fields(head)
	if len(f) > 0 {
		e.NVLink.Unit = f[0]
	}
	if len(f) > 1 {
		e.Fatal = severity(f[1])
	}
	for i, w := range f {
		switch {
		case w == "i1":
			e.Injected = true
		case w == "XC1":
			e.NVLink.Cross = true
		case w == "Link" && i+1 < len(f):
			e.Link = linkNumber(f[i+1])
		}
	}
	words, _, closed := strings.Cut(words, ")")
	if w := strings.Fields(words); closed && len(w) >= 2 {
		intr, ok1 := word(w[0])
		status, ok2 := word(w[1])
		e.NVLink.Intr, e.NVLink.Status, e.NVLink.Whole = intr, status, ok1 && ok2
	}
}

// afterName gives of an NVLink 5 message the part from the unit on. A process may have ", " in its name, so that the rest of
// it stands before the unit, which alone is followed by severity, cross-contain and injected flags.
func afterName(text string) string {
	i := max(strings.LastIndex(text, " XC0 i"), strings.LastIndex(text, " XC1 i"))
	if i < 0 {
		i = len(text)
	}
	if at := strings.LastIndex(text[:i], ", "); at >= 0 {
		return text[at+len(", "):]
	}
	return text
}

// word reads "0x025001c6".
func word(s string) (uint32, bool) {
	s, hex := strings.CutPrefix(strings.TrimRight(s, ","), "0x")
	v, err := strconv.ParseUint(s, 16, 32)
	return uint32(v), hex && err == nil
}

// decideNVLink5 judges 144 to 150. The rule for the unit's words says what a fault asks for; the message's own severity
// bounds it from above: what the driver calls non-fatal takes no node out (leptonai/gpud 1174). Without a rule a fatal one
// makes the node suspect and never more, since a peer may be at fault and the driver states its own verdict (154) when it
// wants a reset.
func decideNVLink5(e Event) decision {
	ask, decoded := e.NVLink.rule(e.Code)
	if !decoded {
		switch {
		case e.Fatal == Fatal:
			return decision{action: checks.Drain, note: "not decoded; the driver calls it fatal; the peer may be the cause"}
		case e.Fatal == NonFatal:
			return decision{action: checks.Watch, peer: true, note: "not decoded; the driver calls it non-fatal"}
		}
		return decision{action: checks.Watch, note: "cut off before its severity"}
	}
	what := fmt.Sprintf("%s status 0x%x", e.NVLink.Unit, e.NVLink.Status)
	if c := e.NVLink.Subcode(); c != 0 {
		what = fmt.Sprintf("%s subcode %d", e.NVLink.Unit, c)
	}
	if ask == resetIfFatal {
		if ask = report; e.Fatal == Fatal {
			ask = reset
		}
	}
	d := decision{action: checks.Watch, note: what + ": " + ask.words()}
	switch {
	case ask == nothing:
		d.action, d.peer = checks.None, e.Fatal == NonFatal
	case e.Fatal == NonFatal:
		d.peer = true
		d.note += "; the driver calls it non-fatal"
	case ask == reset || ask == sympathetic:
		d.action, d.peer = checks.ResetGPU, ask == sympathetic
	case ask == peerDown:
		d.action, d.peer = checks.Drain, true
	}
	return d
}

// An ask is what NVIDIA's decode table wants done.
type ask uint8

const (
	nothing      ask = iota // ignore
	report                  // ignore; tell the vendor if it goes on
	verdict                 // the driver's own verdict (154) decides
	reset                   // reset the GPU
	resetIfFatal            // reset the GPU if the message calls it fatal, else report
	sympathetic             // reset the GPU; it generally follows from another fault
	peerDown                // the link's other end is where to look
	cables                  // bit errors: look at the link's signal and cables
	software                // taken down by software or a user
)

func (a ask) words() string {
	return [...]string{
		"may be ignored", "tell the vendor if it goes on", "the driver's own verdict (154) decides", "reset the GPU", "reset the GPU if fatal",
		"reset the GPU; it mostly follows from another fault", "the link's other end is where to look", "bit errors; look at signal and cables",
		"the link was taken down by software",
	}[a]
}

// A unit is one part of NVLink 5's hardware with what its error status asks for. The two layouts of the first word differ
// in how they number units: ten bits in drivers before R575, seven since. No number of the one fits another unit's number
// of the other where the names agree, so that a line tells its layout itself and no driver version is needed.
type unit struct {
	xid      int
	names    [2]string // in the older drivers and the newer
	old, new uint32    // the unit's number in the low bits of the first word
	bits     bool      // the status is a set of bits; otherwise one number
	status   map[uint32]ask
	subcode  map[int]ask // instead of the status: why the link went down
}

const (
	oldUnit = 1<<10 - 1
	newUnit = 1<<7 - 1
	poison  = 1 << 31 // the software's own bit: an interrupt that nothing explains
)

var tlwStatus = map[uint32]ask{1: nothing, 2: report, 4: reset, poison: report}

// units is NVIDIA's decode table for XIDs 144 to 150 (Xid catalog, sheet "XID 144-150 Decode"), as leptonai/gpud had it in
// October 2025.
var units = [...]unit{
	{144, [2]string{"SAW_MVB", "SAW_MVB"}, 0x021, 0x01, true, map[uint32]ask{1: report, 2: reset, 4: nothing, 8: report, 0x10: reset, 0x20: nothing}, nil},
	{145, [2]string{"RLW_CTRL", "RLW_CTRL"}, 0x062, 0x03, true, map[uint32]ask{poison: report}, nil},
	{145, [2]string{"RLW_REMAP", "RLW_REMAP"}, 0x082, 0x04, true, map[uint32]ask{
		1: verdict, 2: verdict, 4: verdict, 8: verdict, 0x10: verdict, 0x20: verdict, 0x40: reset, 0x80: reset, 0x100: nothing, 0x200: nothing, poison: report,
	}, nil},
	{145, [2]string{"RLW_RSPCOL", "RLW_RSPCOL"}, 0x0a2, 0x05, true, map[uint32]ask{1: nothing, 2: reset, poison: report}, nil},
	{145, [2]string{"RLW_RXPIPE", "RLW_RXPIPE"}, 0x0c2, 0x06, true, map[uint32]ask{1: resetIfFatal, 2: resetIfFatal, 4: resetIfFatal, 8: report, poison: report}, nil},
	{145, [2]string{"RLW_SRC_TRACK", "RLW_SRC_TRACK"}, 0x0e2, 0x07, true, map[uint32]ask{
		1: reset, 2: nothing, 4: verdict, 8: verdict, 0x10: reset, 0x20: reset, poison: report,
	}, nil},
	{145, [2]string{"RLW_TAGSTATE", "RLW_TAGSTATE"}, 0x102, 0x08, true, map[uint32]ask{
		1: nothing, 2: reset, 0x10000: nothing, 0x20000: reset, 0x100000: reset, poison: report,
	}, nil},
	{146, [2]string{"TLW_CTRL", "TLW_CTRL"}, 0x123, 0x09, true, tlwStatus, nil},
	{146, [2]string{"TLW_RX", "TLW_RX_PIPE0"}, 0x143, 0x0a, true, tlwStatus, nil},
	{146, [2]string{"TLW_RX", "TLW_RX_PIPE1"}, 0x143, 0x0b, true, tlwStatus, nil},
	{146, [2]string{"TLW_TX", "TLW_TX_PIPE0"}, 0x163, 0x0c, true, tlwStatus, nil},
	{146, [2]string{"TLW_TX", "TLW_TX_PIPE1"}, 0x163, 0x0d, true, tlwStatus, nil},
	{147, [2]string{"TREX", "TREX"}, 0x184, 0x0e, true, map[uint32]ask{1: report, poison: report}, nil},
	{148, [2]string{"NVLPW_CTRL", "NVLPW"}, 0x005, 0x0f, true, map[uint32]ask{poison: report}, nil},
	{149, [2]string{"NETIR", "NETIR_INT"}, 0x006, 0x18, false, map[uint32]ask{0: sympathetic}, nil},
	{149, [2]string{"NETIR_BER_EVENT", "NETIR_BER_EVENT"}, 0x226, 0x13, false, map[uint32]ask{0: cables, 1: cables, 2: cables, 3: cables}, nil},
	{149, [2]string{"NETIR_LINK_EVT", "NETIR_LINK_DOWN"}, 0x1c6, 0x11, false, nil, map[int]ask{
		0: sympathetic, 1: reset, 2: reset, 4: reset, 10: reset, 15: reset, 16: reset, 17: reset, 18: reset, 21: peerDown, 22: reset,
		32: peerDown, 33: peerDown, 34: peerDown, 35: peerDown, 36: peerDown, 37: peerDown, 38: software, 40: software, 42: reset, 43: reset,
	}},
	{149, [2]string{"NETIR_MFDE_EVENT", "NETIR_MFDE_EVENT"}, 0x246, 0x14, false, map[uint32]ask{1: reset, 3: nothing, 4: reset, 5: reset, 7: reset}, nil},
	{150, [2]string{"MSE_WATCHDOG", "MSE_WATCHDOG"}, 0, 0, false, map[uint32]ask{0: reset}, nil},
}

// rule finds what the table asks for; false when the line was cut or the table has no such unit, status or subcode.
func (n NVLink) rule(code int) (ask, bool) {
	if !n.Whole {
		return nothing, false
	}
	for i := range units {
		u := &units[i]
		older := n.Unit == u.names[0] && n.Intr&oldUnit == u.old
		newer := n.Unit == u.names[1] && n.Intr&newUnit == u.new
		if u.xid != code || !older && !newer {
			continue
		}
		if u.subcode != nil {
			a, ok := u.subcode[n.Subcode()]
			return a, ok && n.Status == 0
		}
		if n.Subcode() != 0 {
			return nothing, false
		}
		if !u.bits {
			a, ok := u.status[n.Status]
			return a, ok
		}
		a, ok := u.severest(n.Status)
		if a == resetIfFatal && (older && n.Intr&(oldUnit+1) != 0 || newer && n.Intr&(newUnit+1) != 0) {
			return reset, true // the table's second pattern, for these alone: the bit above the unit's number is set
		}
		return a, ok
	}
	return nothing, false
}

// severest gives what the bits of a status ask for together; false when none is known.
func (u *unit) severest(status uint32) (ask, bool) {
	rank := [...]int{nothing: 1, report: 2, verdict: 3, resetIfFatal: 4, reset: 5}
	found, ok := nothing, false
	for bit, a := range u.status {
		if status&bit != 0 && (!ok || rank[a] > rank[found]) {
			found, ok = a, true
		}
	}
	return found, ok
}
