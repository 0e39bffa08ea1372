package xid

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

// corpus gives the lines of every log in testdata.
func corpus(tb testing.TB) []string {
	tb.Helper()
	files, err := filepath.Glob("testdata/kernel-log/*")
	if err != nil || len(files) < 15 {
		tb.Fatalf("%d logs in testdata, %v", len(files), err)
	}
	var out []string
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, strings.Split(string(b), "\n")...)
	}
	return out
}

func FuzzParse(f *testing.F) {
	for _, line := range corpus(f) {
		f.Add(line)
		f.Add("4,1,2,-;" + line + "\n SUBSYSTEM=pci")
		f.Add(line[:len(line)*2/3])
	}
	f.Fuzz(func(t *testing.T, line string) {
		e, ok := Parse(line)
		d, damaged := ParseDamaged(line)
		switch {
		case ok && damaged:
			t.Fatalf("read as %+v, and damaged as %+v", e, d)
		case damaged:
			e = d
		case !ok:
			return
		}
		if (e.Code == 0) != damaged || e.Code < 0 {
			t.Fatalf("code %d", e.Code)
		}
		if i := Cut(line); i >= 0 && (i == 0 || !strings.Contains(line[i:], "Xid (") || !strings.Contains(line[:i], "Xid (")) {
			t.Fatalf("cut at %d", i)
		}
		for _, s := range []string{e.Raw, e.Text, e.Name, e.PCI, e.MIG, e.Port} {
			if !utf8.ValidString(s) || strings.ContainsRune(s, '\n') {
				t.Fatalf("%q is not one line of text", s)
			}
		}
		if len(e.Raw) > 3*maxRaw || len(e.Text) > 3*maxRaw {
			t.Fatalf("%d bytes kept of a line", len(e.Raw))
		}
		if e.PCI != "" && checks.PCIAddress(e.PCI) != e.PCI {
			t.Fatalf("address %q reads as %q", e.PCI, checks.PCIAddress(e.PCI))
		}
		f := Judge(e, policy.XID{})
		if (f.Verdict == checks.Unknown) != damaged || f.Reason == "" || f.Hard && f.Verdict != checks.Fail || f.Action.Harmless() && f.Verdict == checks.Fail {
			t.Fatalf("%+v", f)
		}
	})
}

// A line cut anywhere, and two lines run into each other anywhere, must not make a fault out of nothing.
func TestParseOfCutLines(t *testing.T) {
	for _, line := range corpus(t) {
		whole, ok := Parse(line)
		for i := range len(line) {
			e, got := Parse(line[:i])
			if got && !ok {
				t.Fatalf("%q is no event, but cut to %d bytes it is xid %d", line, i, e.Code)
			}
			if got && e.PCI != whole.PCI && e.PCI != "" {
				t.Fatalf("%q cut to %d bytes is on %q", line, i, e.PCI)
			}
			if got && len(line) > i && e.Code != whole.Code && !strings.HasPrefix(itoa(whole.Code), itoa(e.Code)) {
				t.Fatalf("%q cut to %d bytes has code %d", line, i, e.Code)
			}
		}
	}
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + string(rune('0'+n%10))
}

func TestParseAllocatesNothingForOtherLines(t *testing.T) {
	for _, line := range []string{
		"usb 1-1: new high-speed USB device number 2 using xhci_hcd", "NVRM: GPU at PCI:0000:91:00: GPU-00000000-0000-0000-0000-000000000001",
		"NVRM: Xid (PCI:0000:3f", "python3: Xid (PCI:0000:01:00): 79, no", "", strings.Repeat("x", 1000),
	} {
		if n := testing.AllocsPerRun(100, func() { Parse(line) }); n != 0 {
			t.Errorf("%.40q: %v allocations", line, n)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for _, bb := range []struct{ name, line string }{
		{"other", "[1231000.378609] usb 1-1: new high-speed USB device number 2 using xhci_hcd"},
		{"xid", "[6100041.100012] NVRM: Xid (PCI:0000:91:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."},
		{"sxid", "[6100053.200584] nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 LTSSM Fault Up"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(bb.line)))
			for b.Loop() {
				Parse(bb.line)
			}
		})
	}
}
