package xid

import (
	"fmt"
	"strings"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/recovery"
)

// Judge turns an event into a finding without time, node and boot id: the caller knows those. It does no I/O.
//
// An event that asks for no more than a restart of its job is NotApplicable, not a Pass, since a log line proves no
// health, and not Unknown, since it takes none away. So is an unknown code: it is watched, and changes no state. The one
// kind of Pass is a repair that waits for a reset (63, 160). A Fail is hard if it asks for reset_gpu, reboot or rma.
//
// A site's own action for a code, in policy, stands in place of the table, the text and the driver's verdict alike; a
// test's injected event asks for nothing all the same.
func Judge(e Event, site policy.XID) checks.Finding {
	f := checks.Finding{Check: ID, Code: e.Code, Subject: subject(e), Cause: e.Cause, Evidence: e.Raw}
	d := decide(e)
	if e.Switch {
		f.Check = SwitchID
	} else if name, ok := site.Actions[e.Code]; ok && !e.Injected {
		var a checks.Action
		if a.UnmarshalText([]byte(name)) == nil {
			d = decision{action: a, note: "action set by policy"}
		}
	}
	f.Action, f.Reason = d.action, reason(e, d.note)
	switch {
	case d.pending:
		f.Verdict = checks.Pass
	case d.action.Harmless():
		f.Verdict = checks.NotApplicable
	default:
		f.Verdict = checks.Fail
		f.Hard = !e.Switch && (d.action == checks.ResetGPU || d.action == checks.Reboot || d.action == checks.RMA) && !d.soft
	}
	return f
}

// A decision is what one event asks for and why it differs from what the table says, if it does.
type decision struct {
	action  checks.Action
	pending bool // a repair that waits for the action; not a fault
	soft    bool // a fault, yet the driver does not call for recovery at once
	note    string
}

func decide(e Event) decision {
	switch {
	case e.Injected:
		return decision{action: checks.None, note: "injected by a test"}
	case e.Switch:
		return decideSwitch(e)
	}
	rule, known := Lookup(e.Code)
	if !known {
		return decision{action: checks.Watch, note: "a code that is not known here"}
	}
	switch {
	case e.Code == 154:
		return decideVerdict(e.Text)
	case e.Code == 63 || e.Code == 64:
		return decideRemap(e.Text, rule)
	case e.Code == 74:
		return decideNVLink(e.Text, rule)
	case isNVLink5(e.Code):
		return decideNVLink5(e)
	}
	return decision{action: rule.Action(), pending: pendingOnly(e.Code)}
}

// decideVerdict reads the driver's own verdict: "GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)".
func decideVerdict(text string) decision {
	from, to, ok := Recovery(text)
	if !ok {
		return decision{action: checks.Watch, note: "a verdict that cannot be read"}
	}
	action, hard, name, known := recovery.Asks(to)
	switch {
	case !known:
		return decision{action: checks.Watch, note: fmt.Sprintf("recovery action %d is not known here", to)}
	case to == recovery.Nothing:
		return decision{action: checks.None, note: fmt.Sprintf("the driver takes back recovery action %d", from)}
	}
	return decision{action: action, soft: !hard, note: "the driver asks to " + name}
}

// Recovery reads the old and the new recovery action from the text of XID 154; false when it is cut or malformed. The
// values are those of package recovery.
func Recovery(text string) (from, to int, ok bool) {
	_, v, found := strings.Cut(text, "changed from ")
	if !found {
		return 0, 0, false
	}
	old, v, found := strings.Cut(v, " to ")
	if !found {
		return 0, 0, false
	}
	from, ok1 := recoveryValue(old)
	to, ok2 := recoveryValue(v)
	return from, to, ok1 && ok2
}

// recoveryValue reads "0x4 (Drain and Reset)".
func recoveryValue(s string) (int, bool) {
	s, _, _ = strings.Cut(strings.TrimSpace(s), " ")
	var v int
	if n, err := fmt.Sscanf(s, "0x%x", &v); err != nil || n != 1 || v < 0 {
		return 0, false
	}
	return v, true
}

// exhausted names what the driver writes when a bank has no row left to remap to.
var exhausted = [...]string{"table full", "table is full", "bank full", "bank is full", "no spare", "no more spare", "out of spare", "no resources"}

// decideRemap judges 63 and 64, where the text decides: no row left means the part goes back, a remap that was recorded
// waits for a reset.
func decideRemap(text string, rule Rule) decision {
	low := strings.ToLower(text)
	for _, word := range exhausted {
		if strings.Contains(low, word) {
			return decision{action: checks.RMA, note: "no spare row is left"}
		}
	}
	if rule.Code == 63 {
		return decision{action: rule.Action(), pending: true, note: "safe to compute on until the reset"}
	}
	if strings.Contains(low, "already pending") {
		return decision{action: rule.Action(), note: "a remap is pending already; the reset makes room for this one"}
	}
	return decision{action: rule.Action()}
}

// secondaryNVLink are the bits of XID 74's first register that other faults set: 1 and 20 (NVIDIA/NVSentinel 545).
const secondaryNVLink = 1<<1 | 1<<20

// decideNVLink judges 74 by its seven registers only as far as to leave alone what another fault caused.
func decideNVLink(text string, rule Rule) decision {
	regs, ok := registers(text)
	if ok && regs[0] != 0 && regs[0]&^secondaryNVLink == 0 && allZero(regs[1:]) {
		return decision{action: checks.Watch, note: "only bits that follow from another fault are set"}
	}
	return decision{action: rule.Action()}
}

// registers reads "(0x100000, 0x0, …)".
func registers(text string) ([]uint64, bool) {
	_, v, ok := strings.Cut(text, "(0x")
	if !ok {
		return nil, false
	}
	v, _, ok = strings.Cut(v, ")")
	if !ok {
		return nil, false
	}
	var out []uint64
	for s := range strings.SplitSeq("0x"+v, ",") {
		var r uint64
		if _, err := fmt.Sscanf(strings.TrimSpace(s), "0x%x", &r); err != nil {
			return nil, false
		}
		out = append(out, r)
	}
	return out, true
}

func allZero(rs []uint64) bool {
	for _, r := range rs {
		if r != 0 {
			return false
		}
	}
	return true
}

// decideNVLink5 judges 144 to 150 by the severity that the message states: a fatal one makes the node suspect and never
// more, since a peer may be at fault and the driver states its own verdict (154) when it wants a reset.
func decideNVLink5(e Event) decision {
	switch e.Fatal {
	case Fatal:
		return decision{action: checks.Drain, note: "the driver calls it fatal; the peer may be the cause"}
	case NonFatal:
		return decision{action: checks.Watch, note: "the driver calls it non-fatal"}
	}
	return decision{action: checks.Watch, note: "cut off before its severity"}
}

// decideSwitch judges an SXid. A fatal one ends what runs on the fabric and takes a reboot to clear; it is soft, since
// it cannot say which node's GPU is at fault.
func decideSwitch(e Event) decision {
	table := switchSeverity(e.Code)
	switch {
	case e.Detail:
		return decision{action: checks.None, note: "data on the SXid before it"}
	case e.Fatal == Fatal:
		return decision{action: checks.Reboot, note: "the switch driver calls it fatal"}
	case e.Fatal == NonFatal:
		return decision{action: checks.Watch, note: "the switch driver calls it non-fatal"}
	case table == "fatal":
		return decision{action: checks.Reboot, note: "fatal by the table"}
	case table == "warning":
		return decision{action: checks.Watch, note: "a warning by the table"}
	}
	return decision{action: checks.Watch, note: "a code that is not known here"}
}

func subject(e Event) checks.Subject {
	s := checks.Subject{Kind: checks.KindGPU, PCI: e.PCI, MIG: e.MIG, Port: e.Port}
	switch {
	case e.Switch:
		s.Kind = checks.KindSwitch
	case e.PCI == "":
		s.Kind = checks.KindNode // a GPU of this node; the line does not say which
	case e.MIG != "":
		s.Kind = checks.KindMIG
	}
	if e.Link >= 0 {
		link := e.Link
		s.Link = &link
	}
	return s
}

// reason is one line for a person: the number, its name, where, and what decided.
func reason(e Event, note string) string {
	var b strings.Builder
	switch rule, known := Lookup(e.Code); {
	case e.Switch:
		fmt.Fprintf(&b, "sxid %d", e.Code)
	case known:
		fmt.Fprintf(&b, "xid %d %s", e.Code, rule.Name)
	default:
		fmt.Fprintf(&b, "xid %d", e.Code)
	}
	if e.Switch && e.Text != "" {
		fmt.Fprintf(&b, " (%s)", clean(e.Text, 80))
	}
	if e.Cause > 0 {
		fmt.Fprintf(&b, ", caused by xid %d", e.Cause)
	}
	if note != "" {
		b.WriteString(": " + note)
	}
	return b.String()
}
