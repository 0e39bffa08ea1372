package xid

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/cockroachdb/datadriven"
)

// TestTable prints which codes ask for what, by number alone: the whole table at one look.
func TestTable(t *testing.T) {
	datadriven.RunTest(t, "testdata/table", func(t *testing.T, d *datadriven.TestData) string {
		lines := map[string][]int{}
		var order []string
		add := func(line string, code int) {
			if _, ok := lines[line]; !ok {
				order = append(order, line)
			}
			lines[line] = append(lines[line], code)
		}
		verdict := func(e Event) string {
			f := Judge(e, policy.XID{})
			s := fmt.Sprintf("%s %s", f.Action, f.Verdict)
			if f.Hard {
				s += " hard"
			}
			return s
		}
		switch d.Cmd {
		case "xid":
			for _, code := range Codes() {
				add(verdict(Event{Code: code, Link: -1}), code)
			}
		case "sxid":
			for _, spans := range [][][2]int{fatalSwitch[:], warningSwitch[:]} {
				for _, s := range spans {
					for code := s[0]; code <= s[1]; code++ {
						add(verdict(Event{Switch: true, Code: code, Link: -1}), code)
					}
				}
			}
		}
		slices.Sort(order)
		var b strings.Builder
		for _, l := range order {
			fmt.Fprintf(&b, "%s: %s\n", l, ranges(lines[l]))
		}
		return b.String()
	})
}

func ranges(codes []int) string {
	var out []string
	for i := 0; i < len(codes); {
		j := i
		for j+1 < len(codes) && codes[j+1] == codes[j]+1 {
			j++
		}
		switch {
		case j > i:
			out = append(out, fmt.Sprintf("%d-%d", codes[i], codes[j]))
		default:
			out = append(out, fmt.Sprint(codes[i]))
		}
		i = j + 1
	}
	return strings.Join(out, " ")
}

func TestEveryActionWordIsDecided(t *testing.T) {
	used := map[string]bool{}
	for _, code := range Codes() {
		r, ok := Lookup(code)
		if !ok || r.Code != code || r.Name == "" || r.Severity == "" || r.Notes == "" {
			t.Errorf("xid %d: %+v, %t", code, r, ok)
		}
		if _, ok := actions[r.Word]; !ok {
			t.Errorf("xid %d: nothing decides the action word %q", code, r.Word)
		}
		used[r.Word] = true
	}
	for word := range actions {
		if !used[word] {
			t.Errorf("no XID has the action word %q", word)
		}
	}
	if n := len(Codes()); n != 173 {
		t.Errorf("%d codes in the table, want 173", n)
	}
}

func TestLookupOutsideTheTable(t *testing.T) {
	for _, code := range []int{-1, 0, 174, 999, 1 << 40} {
		if r, ok := Lookup(code); ok {
			t.Errorf("xid %d: %+v", code, r)
		}
	}
	if a := (Rule{Word: "no such word"}).Action(); a != checks.Watch {
		t.Errorf("an action word nobody decided asks for %v", a)
	}
}

// What holds for every finding of this package, whatever the code, the text and the site's action.
func TestJudgeNeverCertifiesAndNeverInventsAFault(t *testing.T) {
	texts := []string{"", "x", "table full", "marked for remapping", "A Fatal XC0 i0 Link 1 (0x1)", "changed from 0x0 (None) to 0x1 (a)", "changed from 0x0 (None) to 0x9 (a)"}
	for code := 1; code < 200; code++ {
		for _, text := range texts {
			for _, own := range []string{"", "none", "watch", "reset_gpu", "drain", "rma"} {
				e := Event{Code: code, Link: -1}
				e.parseText(text)
				f := Judge(e, policy.XID{Actions: map[int]string{code: own}})
				recovers := f.Action == checks.ResetGPU || f.Action == checks.Reboot || f.Action == checks.RMA
				switch {
				case f.Action.Harmless() && f.Verdict != checks.NotApplicable:
					t.Errorf("xid %d %q own %q: %v with %v", code, text, own, f.Verdict, f.Action)
				case f.Verdict == checks.Pass && (f.Action != checks.ResetGPU || f.Hard || !pendingOnly(code)):
					t.Errorf("xid %d %q own %q: a Pass with %v, hard %t", code, text, own, f.Action, f.Hard)
				case f.Verdict == checks.Unknown:
					t.Errorf("xid %d %q own %q: unknown", code, text, own)
				case f.Verdict == checks.Fail && f.Hard != recovers:
					t.Errorf("xid %d %q own %q: hard %t with %v", code, text, own, f.Hard, f.Action)
				}
			}
		}
	}
}

func TestRecovery(t *testing.T) {
	for _, tt := range []struct {
		text     string
		from, to int
		ok       bool
	}{
		{"GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)", 0, 4, true},
		{"GPU recovery action changed from 0x4 (Drain and Reset) to 0x0 (None)", 4, 0, true},
		{"GPU recovery action changed from 0x0 (None) to 0x1f", 0, 31, true},
		{"GPU recovery action changed from 0x0 (None) to 0x", 0, 0, false},
		{"GPU recovery action changed from 0x0 (None)", 0, 0, false},
		{"GPU recovery action changed from (None) to 0x1", 0, 1, false},
		{"GPU recovery action changed from 0x0 (None) to 0x-1", 0, 0, false},
		{"GPU recovery action changed from 0x0 (None) to 0xffffffffffffffffff", 0, 0, false},
		{"", 0, 0, false},
	} {
		from, to, ok := Recovery(tt.text)
		if ok != tt.ok || ok && (from != tt.from || to != tt.to) {
			t.Errorf("%q: got %d, %d, %t", tt.text, from, to, ok)
		}
	}
}
