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
// What NVML raised, without a line, is judged by its number alone, and says so in its evidence.
//
// An event whose number cannot be told is Unknown: it may have been any. It is watched, and takes no certificate away.
//
// A site's own action for a code, in policy, stands in place of the table, the text and the driver's verdict alike; a
// test's injected event asks for nothing all the same.
func Judge(e Event, site policy.XID) checks.Finding {
	f := checks.Finding{Check: ID, Code: e.Code, Subject: subject(e), Cause: e.Cause, Evidence: e.Raw}
	if e.NVML {
		f.Evidence = fmt.Sprintf("NVML event nvmlEventTypeXidCriticalError %d; no line of the kernel log that says so was read", e.Code)
	}
	if e.Code == 0 {
		return unreadable(f, e)
	}
	d := decide(e)
	if e.Switch {
		f.Check = SwitchID
	} else if name, ok := site.Actions[e.Code]; ok && !e.Injected {
		var a checks.Action
		if a.UnmarshalText([]byte(name)) == nil {
			d = decision{action: a, note: "action set by policy"}
		}
	}
	f.Action, f.Reason, f.Peer, f.Back = d.action, reason(e, d.note), d.peer, d.back
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

func unreadable(f checks.Finding, e Event) checks.Finding {
	what := "an XID"
	if e.Switch {
		f.Check, what = SwitchID, "an SXid"
	}
	f.Verdict, f.Action = checks.Unknown, checks.Watch
	f.Reason = what + " whose number cannot be read: its line is cut off or damaged"
	return f
}

// A decision is what one event asks for and why it differs from what the table says, if it does.
type decision struct {
	action  checks.Action
	pending bool // a repair that waits for the action; not a fault
	soft    bool // a fault, yet the driver does not call for recovery at once
	peer    bool // another part's fault may be the cause
	back    bool // the driver takes its verdict back
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
		return decideRemap(driverWords(e), rule)
	case e.Code == 74:
		return decideNVLink4(e.Text, rule)
	case isNVLink5(e.Code):
		return decideNVLink5(e)
	case e.Code == 160:
		return decideRepair(driverWords(e), rule)
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
	case !known && name != "":
		return decision{action: checks.Watch, note: fmt.Sprintf("the driver asks to %s (%d): a person has to look", name, to)}
	case !known:
		return decision{action: checks.Watch, note: fmt.Sprintf("recovery action %d is not known here", to)}
	case to == recovery.Nothing:
		return decision{action: checks.None, back: true, note: fmt.Sprintf("the driver takes back recovery action %d", from)}
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
