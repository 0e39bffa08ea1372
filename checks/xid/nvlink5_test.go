package xid

import (
	"fmt"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

// The table as a whole: how many rules it has and what they ask for, as reference pages count them.
func TestNVLink5Table(t *testing.T) {
	asks, perXID := map[string]int{}, map[int]int{}
	note := func(u unit, a ask) {
		perXID[u.xid]++
		switch a {
		case reset, sympathetic, peerDown:
			asks["reset"]++
		case verdict:
			asks["154"]++
		default:
			asks["ignore"]++
		}
	}
	for _, u := range units {
		for _, a := range u.status {
			note(u, a)
		}
		for _, a := range u.subcode {
			note(u, a)
		}
		if u.old&^oldUnit != 0 || u.new&^newUnit != 0 {
			t.Errorf("%v: a unit's number is too wide", u.names)
		}
		if u.xid != 150 && u.old&newUnit == u.new {
			t.Errorf("%v: nothing tells its layouts apart", u.names)
		}
	}
	if got, want := fmt.Sprint(asks, perXID), "map[154:8 ignore:45 reset:41] map[144:6 145:33 146:20 147:2 148:1 149:31 150:1]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Every rule in both layouts, through the line: what it asks for, fatal and not, and that no other layout's number passes.
func TestNVLink5Layouts(t *testing.T) {
	line := func(u unit, name string, intr, status uint32, severity string) Event {
		t.Helper()
		e, ok := Parse(fmt.Sprintf("NVRM: Xid (PCI:0000:0a:00): %d, %s %s XC1 i0 Link 07 (0x%08x 0x%08x 0x00000000 0x00000000 0x00000000 0x00000000)", u.xid, name, severity, intr, status))
		if !ok || e.NVLink.Unit != name || !e.NVLink.Cross || e.Link != 7 || e.Injected || !e.NVLink.Whole {
			t.Fatalf("%+v", e)
		}
		return e
	}
	check := func(u unit, subcode int, status uint32, want ask) {
		for i, number := range []uint32{u.old, u.new} {
			intr := number | uint32(subcode)<<20
			e := line(u, u.names[i], intr, status, "Fatal")
			if got, ok := e.NVLink.rule(u.xid); !ok || got != want {
				t.Errorf("%s 0x%x 0x%x: got %v, %t, want %v", u.names[i], intr, status, got, ok, want)
			}
			f := Judge(e, policy.XID{})
			action := map[ask]checks.Action{
				nothing: checks.None, reset: checks.ResetGPU, sympathetic: checks.ResetGPU, resetIfFatal: checks.ResetGPU, peerDown: checks.Drain,
				report: checks.Watch, verdict: checks.Watch, cables: checks.Watch, software: checks.Watch,
			}[want]
			if f.Action != action || f.Hard != (action == checks.ResetGPU) || f.Peer != (want == sympathetic || want == peerDown) {
				t.Errorf("%s 0x%x 0x%x: %v hard %t peer %t: %s", u.names[i], intr, status, f.Action, f.Hard, f.Peer, f.Reason)
			}
			if f := Judge(line(u, u.names[i], intr, status, "Nonfatal"), policy.XID{}); f.Verdict != checks.NotApplicable || f.Action > checks.Watch {
				t.Errorf("%s 0x%x 0x%x, non-fatal: %v %v", u.names[i], intr, status, f.Verdict, f.Action)
			}
			if e := line(u, u.names[i], intr^0x40, status, "Fatal"); Judge(e, policy.XID{}).Action != checks.Drain {
				t.Errorf("%s 0x%x: decoded with another unit's number", u.names[i], intr^0x40)
			}
		}
	}
	for _, u := range units {
		for status, a := range u.status {
			check(u, 0, status, a)
		}
		for c, a := range u.subcode {
			check(u, c, 0, a)
		}
	}
}

func TestNVLink5Lines(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"several status bits: the severest", "145, RLW_REMAP Fatal XC0 i0 Link 1 (0x00000004 0x00000141 0x0 0x0 0x0 0x0)", "reset_gpu hard: RLW_REMAP status 0x141: reset the GPU"},
		{"bits that no rule knows beside one that does", "145, RLW_REMAP Fatal XC0 i0 Link 1 (0x00000004 0x00400001 0x0 0x0 0x0 0x0)", "watch: RLW_REMAP status 0x400001: the driver's own verdict (154) decides"},
		{"only bits that no rule knows", "145, RLW_REMAP Fatal XC0 i0 Link 1 (0x00000004 0x00400000 0x0 0x0 0x0 0x0)", "drain: not decoded; the driver calls it fatal; the peer may be the cause"},
		{"a status is a number, not bits", "149, NETIR_MFDE_EVENT Fatal XC0 i0 Link 1 (0x00000014 0x00000006 0x0 0x0 0x0 0x0)", "drain: not decoded; the driver calls it fatal; the peer may be the cause"},
		{"the link's own subcode, none known", "149, NETIR_LINK_DOWN Fatal XC0 i0 Link 1 (0x00500011 0x00000000 0x0 0x0 0x0 0x0)", "drain: not decoded; the driver calls it fatal; the peer may be the cause"},
		{"a subcode on a unit without", "145, RLW_CTRL Fatal XC0 i0 Link 1 (0x00500003 0x80000000 0x0 0x0 0x0 0x0)", "drain: not decoded; the driver calls it fatal; the peer may be the cause"},
		{"a link down with a status too", "149, NETIR_LINK_DOWN Fatal XC0 i0 Link 1 (0x00100011 0x00000001 0x0 0x0 0x0 0x0)", "drain: not decoded; the driver calls it fatal; the peer may be the cause"},
		{"the bit above an old unit's number", "145, RLW_RXPIPE Fatal XC0 i0 Link 1 (0x000004c2 0x00000001 0x0 0x0 0x0 0x0)", "reset_gpu hard: RLW_RXPIPE status 0x1: reset the GPU"},
		{"and above a new one's", "145, RLW_RXPIPE Fatal XC0 i0 Link 1 (0x00000086 0x00000001 0x0 0x0 0x0 0x0)", "reset_gpu hard: RLW_RXPIPE status 0x1: reset the GPU"},
		{"the same, which the driver calls non-fatal", "145, RLW_RXPIPE Nonfatal XC0 i0 Link 1 (0x00000086 0x00000001 0x0 0x0 0x0 0x0)", "watch: RLW_RXPIPE status 0x1: reset the GPU; the driver calls it non-fatal"},
		{"where the table asks for no such bit", "145, RLW_RXPIPE Fatal XC0 i0 Link 1 (0x00000086 0x00000008 0x0 0x0 0x0 0x0)", "watch: RLW_RXPIPE status 0x8: tell the vendor if it goes on"},
		{"cut in its words", "145, RLW_REMAP Fatal XC0 i0 Link 1 (0x00000004 0x00000040", "drain: not decoded; the driver calls it fatal; the peer may be the cause"},
		{"cut before its severity", "145, RLW_REMAP", "watch: cut off before its severity"},
		{"a unit from the future", "149, NETIR_NEW_EVT Fatal XC0 i0 Link 1 (0x00000011 0x0 0x0 0x0 0x0 0x0)", "drain: not decoded; the driver calls it fatal; the peer may be the cause"},
		{"a digit in the unit, and pid and name", "146, pid='<unknown>', name=<unknown>, TLW_RX_PIPE1 Fatal XC0 i0 Link 1 (0x0000000b 0x00000004 0x0 0x0 0x0 0x0)", "reset_gpu hard: TLW_RX_PIPE1 status 0x4: reset the GPU"},
		{"injected", "149, NETIR_LINK_DOWN Fatal XC0 i1 Link 1 (0x00100011 0x00000000 0x0 0x0 0x0 0x0)", "none: injected by a test"},
		{"words that are no numbers", "149, NETIR_LINK_DOWN Fatal XC0 i0 Link 1 (0x00z00011 0x0 0x0)", "drain: not decoded; the driver calls it fatal; the peer may be the cause"},
	} {
		e, ok := Parse("NVRM: Xid (PCI:0000:0a:00): " + tt.text)
		f := Judge(e, policy.XID{})
		got := f.Action.String()
		if f.Hard {
			got += " hard"
		}
		_, note, _ := strings.Cut(f.Reason, ": ")
		if got += ": " + note; !ok || got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
}
