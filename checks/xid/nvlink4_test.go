package xid

import (
	"fmt"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

// Each bit of the seven registers by itself: what it asks for, and what it is called.
func TestNVLink4EachBit(t *testing.T) {
	want := map[string]string{
		"1": "none 0 23 30 | watch peer 1 20 | drain: check the link's mechanical connections 8 9 12 16 17 24 28 | drain: ECC or parity 4 5 | drain: marginal signal 21 22 | drain: run field diagnostics 27 29",
		"2": "",
		"3": "drain: ECC or parity 0 1 2 6 | drain: a bit not expected 13 | drain: run field diagnostics 16 17 18 19",
		"4": "watch peer 16 17 | drain: follows from another fault 18",
		"5": "drain: ECC or parity 18 19 21 22 24 25 27 28 | watch 20 23 26 29",
		"6": "", "7": "",
	}
	for reg := range 7 {
		for bit := range 32 {
			var r [7]uint64
			r[reg] = 1 << bit
			f := judge74(t, r)
			expect := "drain: bits that the workflow does not name"
			for rule := range strings.SplitSeq(want[fmt.Sprint(reg+1)], " | ") {
				if f := strings.Fields(rule); len(f) > 0 {
					for i, w := range f {
						if w == fmt.Sprint(bit) && i > 0 {
							expect = strings.TrimRight(rule, "0123456789 ")
						}
					}
				}
			}
			action, note, _ := strings.Cut(expect, ": ")
			action, peer := strings.CutSuffix(action, " peer")
			if f.Action.String() != action || !strings.Contains(f.Reason, note) || f.Peer != (peer || strings.HasPrefix(note, "follows")) || f.Hard {
				t.Errorf("register %d bit %d: %v, peer %t: %s; want %s", reg+1, bit, f.Action, f.Peer, f.Reason, expect)
			}
			if *f.Subject.Link != 3 {
				t.Errorf("link %d", *f.Subject.Link)
			}
		}
	}
}

func TestNVLink4BitsTogether(t *testing.T) {
	for _, tt := range []struct {
		name string
		regs [7]uint64
		want checks.Action
		note string
	}{
		{"secondary beside a real one", [7]uint64{1<<20 | 1<<8}, checks.Drain, "mechanical"},
		{"mechanical before parity", [7]uint64{1<<4 | 1<<8}, checks.Drain, "mechanical"},
		{"parity before signal", [7]uint64{1<<4 | 1<<21}, checks.Drain, "parity"},
		{"signal before what may repeat", [7]uint64{1 << 21, 0, 1 << 16}, checks.Drain, "signal"},
		{"what may be ignored beside secondary", [7]uint64{1<<0 | 1<<1}, checks.Watch, "follow from another"},
		{"what may be ignored beside a threshold", [7]uint64{1 << 30, 0, 0, 0, 1 << 20}, checks.Watch, "none uncorrected"},
		{"secondary of both kinds", [7]uint64{1 << 1, 0, 0, 1 << 16}, checks.Watch, "follow from another"},
		{"all zero: nothing to go by", [7]uint64{}, checks.Drain, "NVLink error"},
	} {
		if f := judge74(t, tt.regs); f.Action != tt.want || !strings.Contains(f.Reason, tt.note) {
			t.Errorf("%s: %v: %s", tt.name, f.Action, f.Reason)
		}
	}
}

func judge74(t *testing.T, r [7]uint64) checks.Finding {
	t.Helper()
	text := fmt.Sprintf("(0x%x, 0x%x, 0x%x, 0x%x, 0x%x, 0x%x, 0x%x)", r[0], r[1], r[2], r[3], r[4], r[5], r[6])
	e, ok := Parse("NVRM: Xid (PCI:0000:D8:00): 74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link 3" + text)
	if !ok {
		t.Fatal("no event")
	}
	return Judge(e, policy.XID{})
}
