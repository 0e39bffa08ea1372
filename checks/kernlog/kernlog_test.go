package kernlog

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-gpu/assay/checks/aer"
	"github.com/assay-gpu/assay/checks/hostlog"
	"github.com/assay-gpu/assay/checks/nic"
	"github.com/assay-gpu/assay/checks/nvrm"
	"github.com/assay-gpu/assay/checks/xid"
)

// corpus gives the lines of every log and every story that the checks' tests have.
func corpus(tb testing.TB) []string {
	tb.Helper()
	var files []string
	for _, pattern := range []string{"../xid/testdata/kernel-log/*.txt", "../aer/testdata/parse", "../nvrm/testdata/judge", "../nic/testdata/judge", "../hostlog/testdata/judge"} {
		f, err := filepath.Glob(pattern)
		if err != nil || len(f) == 0 {
			tb.Fatalf("%s: %v, %v", pattern, f, err)
		}
		files = append(files, f...)
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

// all asks every check, whatever words the line holds.
func all(line string) (Event, bool) {
	if line, _, _ = strings.Cut(line, "\n"); quotes(line) {
		return nil, false
	}
	return parse(line, 0xff)
}

// The words let through every line that any check knows, and the machine finds a word wherever it stands.
func TestTheWordsHideNothing(t *testing.T) {
	kinds := map[string]int{}
	for _, line := range corpus(t) {
		want, ok := all(line)
		got, found := Parse(line)
		if ok != found || got != want {
			t.Errorf("%q: got %v, without the words %v", line, got, want)
		}
		if ok {
			kinds[fmt.Sprintf("%T", want)]++
		}
	}
	for _, k := range []string{"xid.Event", "aer.Event", "nvrm.Event", "nic.Event", "hostlog.Event"} {
		if kinds[k] < 10 {
			t.Errorf("%d lines of %s in the corpus: %v", kinds[k], k, kinds)
		}
	}
}

// Lines that have run together say what each of them says, wherever the first was cut: but for the XID that was cut off
// itself, which is then known to have been one.
func TestLinesThatRanTogetherLoseNoXID(t *testing.T) {
	const second = "NVRM: Xid (PCI:0000:40:00): 79, GPU has fallen off the bus."
	read := func(line string) (out []Event) {
		for e := range Events(line) {
			out = append(out, e)
		}
		return out
	}
	want := read(second)
	if len(want) != 1 {
		t.Fatalf("%+v", want)
	}
	for _, line := range corpus(t) {
		line, _, _ = strings.Cut(line, `\x0a`)
		i := strings.Index(line, "NVRM: Xid (")
		if i < 0 || xid.Cut(line) >= 0 {
			continue
		}
		for n := i + len("NVRM: Xid ("); n <= len(line); n++ {
			got := read(line[:n] + second)
			if len(got) != 2 || got[1] != want[0] {
				t.Fatalf("%q says %+v", line[:n]+second, got)
			}
			first, ok := Parse(line[:n])
			if !ok || bare(got[0]) != bare(first) {
				t.Fatalf("%q says %+v, and before another line %+v", line[:n], first, got[0])
			}
		}
	}
	if got := read("usb 1-1: new device"); len(got) != 0 {
		t.Fatalf("%+v", got)
	}
}

// journald keeps a message of several lines whole; in a kmsg record rows of the device's dictionary follow the message.
func TestAMessageOfSeveralLines(t *testing.T) {
	for _, c := range []struct {
		name, message string
		want          int
	}{
		{"four lines are one sentence", "NVRM: The NVIDIA GPU 0000:17:00.0\nNVRM: (PCI ID: 10de:2330)\nNVRM: installed in this system has\nNVRM: fallen off the bus and is not responding to commands.", 2},
		{"each of two counts", "NVRM: Xid (PCI:0000:3b:00): 45, pid=1, name=a, Ch 1\nNVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=a, GPU has fallen off the bus.", 2},
		{"rows of the dictionary are no lines", "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n SUBSYSTEM=pci\nNVRM: Xid (PCI:0000:3b:00): 48", 1},
		{"a file's name may hold a line's end", "a[4242]: segfault at 0 ip 000055aa12 sp 00007ffe12 error 4 in b\nNVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.[55aa+1000]", 0},
	} {
		n := 0
		for range Events(c.message) {
			n++
		}
		if n != c.want {
			t.Errorf("%s: %d events, want %d", c.name, n, c.want)
		}
	}
}

// Of a whole message, what stands further down than something else of the kernel's, or behind it, is a user's.
func TestAWholeMessage(t *testing.T) {
	const xid79 = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=a, GPU has fallen off the bus."
	for _, c := range []struct {
		name, message string
		want          int
	}{
		{"an XID", xid79, 1},
		{"and one more in the same message", xid79 + "\n" + xid79, 2},
		{"with rows of the dictionary", xid79 + "\n SUBSYSTEM=pci\n DEVICE=+pci:0000:3b:00.0", 1},
		{"a row that is all there is", "mlx5_core 0000:4b:00.0: Link down\n SUBSYSTEM=pci", 1},
		{"the switch driver's", "nvidia-nvswitch3: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 LTSSM Fault Up", 1},
		{"the driver's prose", "NVRM: GPU at PCI:0000:3b:00: GPU has fallen off the bus.", 1},
		{"the fabric manager's", "[Mar 02 2026 10:11:12] [ERROR] [tid 7] detected NVSwitch fatal error 20034 on fid 0 on NVSwitch pci bus id 00000000:86:00.0 physical id 3 port 5", 1},
		{"a file's name after something else", "overlayfs: cannot open /tmp/x\n" + xid79, 0},
		{"the same as /dev/kmsg writes it", `overlayfs: cannot open /tmp/x\x0a` + xid79 + `\x0ay`, 0},
		{"a file's name without the end of a line", "overlayfs: cannot open /tmp/" + xid79, 0},
		{"nothing", "usb 1-1: new device\nfoo", 0},
	} {
		n := 0
		for range Message(c.message) {
			n++
		}
		if n != c.want {
			t.Errorf("%s: %d events, want %d", c.name, n, c.want)
		}
	}
	for _, line := range corpus(t) { // each line of the corpus that is a message says as much when it is known to be whole
		var a, b int
		for range Events(line) {
			a++
		}
		for range Message(line) {
			b++
		}
		if a != b && begins(line) {
			t.Errorf("%q: %d events, whole %d", line, a, b)
		}
	}
}

func TestTheMachineFindsWhatContainsFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ws := make([]word, rapid.IntRange(1, 8).Draw(t, "words"))
		for i := range ws {
			ws[i] = word{rapid.StringMatching("[abc ]{1,5}").Draw(t, "word"), 1 << i}
		}
		m := newScanner(ws)
		line := rapid.StringMatching("[abcd ]{0,40}").Draw(t, "line")
		var want uint8
		for _, w := range ws {
			if strings.Contains(line, w.text) {
				want |= w.topics
			}
		}
		if got := topics(m, line); got != want {
			t.Fatalf("%q in %v: got %b, want %b", line, ws, got, want)
		}
	})
}

// What stands before a message changes nothing of what is read from it, but for the line that is kept as it was.
func FuzzPrefix(f *testing.F) {
	for _, line := range corpus(f) {
		for _, p := range []string{"", "[6100041.100012] ", "Aug 10 15:36:05 node kernel: ", "4,5001,90000000000,-;", "203.0.113.9: kern: warning: [2026-01-02T03:04:05.6Z]: ", "[    5.100012] [ T1234] "} {
			f.Add(p, line)
		}
	}
	f.Fuzz(func(t *testing.T, prefix, line string) {
		whole, ok := Parse(line)
		if prefix != "" && !strings.ContainsAny(prefix[len(prefix)-1:], " ;") || strings.ContainsAny(prefix, "\n\\#") {
			return // a prefix ends in a space, or in a raw record's semicolon, and is one line
		}
		if topics(machine, prefix) != 0 || len(prefix)+len(line) > 1000 || quotes(prefix+line) && !quotes(line) {
			return // a prefix that holds a message, or the beginning of one that quotes
		}
		got, found := Parse(prefix + line)
		if ok && (!found || bare(got) != bare(whole)) {
			t.Fatalf("%q says %+v, and after %q %+v", line, whole, prefix, got)
		}
	})
}

// bare is an event without its line. Who speaks of a PCIe error is told by the word before, which a prefix may be.
func bare(e Event) Event {
	switch e := e.(type) {
	case xid.Event:
		e.Raw = ""
		return e
	case aer.Event:
		e.Raw, e.Driver = "", ""
		return e
	case nvrm.Event:
		e.Raw = ""
		return e
	case nic.Event:
		e.Raw = ""
		return e
	case hostlog.Event:
		e.Raw = ""
		return e
	}
	return e
}

// Whatever the bytes: no panic, the same answer each time, the words hide nothing, what is kept is one line of text, and
// read again, it says the same.
func FuzzParse(f *testing.F) {
	for _, line := range corpus(f) {
		f.Add(line)
		f.Add("4,1,2,-;" + line + "\n SUBSYSTEM=pci")
		f.Add(line[:len(line)*2/3])
	}
	f.Fuzz(func(t *testing.T, line string) {
		e, ok := Parse(line)
		if again, ok2 := Parse(line); ok != ok2 || again != e {
			t.Fatalf("once %+v, then %+v", e, again)
		}
		if want, ok2 := all(line); ok != ok2 || e != want {
			t.Fatalf("with the words %+v, without %+v", e, want)
		}
		if !ok {
			return
		}
		raw := evidence(e)
		if len(raw) > 3*1024 || strings.ContainsRune(raw, '\n') || strings.ToValidUTF8(raw, "") != raw {
			t.Fatalf("kept %q", raw)
		}
		if len(line) < 1000 && strings.ToValidUTF8(line, "") == line {
			if again, ok := Parse(raw); !ok || bare(again) != bare(e) {
				t.Fatalf("%q says %+v, what was kept of it %+v", line, e, again)
			}
		}
		first, _, _ := strings.Cut(line, "\n")
		if cut, ok := Parse(first); !ok || bare(cut) != bare(e) {
			t.Fatalf("rows after the line change it: %+v, without them %+v", e, cut)
		}
	})
}

func evidence(e Event) string {
	switch e := e.(type) {
	case xid.Event:
		return e.Raw
	case aer.Event:
		return e.Raw
	case nvrm.Event:
		return e.Raw
	case nic.Event:
		return e.Raw
	case hostlog.Event:
		return e.Raw
	}
	return ""
}

func TestParseAllocatesNothingForOtherLines(t *testing.T) {
	for _, line := range []string{
		"[1231000.378609] usb 1-1: new high-speed USB device number 2 using xhci_hcd", "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  595.58.03",
		"pcieport 0000:00:02.0: AER: enabled with IRQ 33", "mlx5_core 0000:4b:00.0: firmware version: 28.39.1002", "EDAC MC: Ver: 3.0.0", "", strings.Repeat("x", 1000),
		string(bytes.Repeat([]byte{0xff}, 1000)),
	} {
		if n := testing.AllocsPerRun(100, func() { Parse(line) }); n != 0 {
			t.Errorf("%.40q: %v allocations", line, n)
		}
	}
}

// BenchmarkParse is one line: what says nothing of ours, what holds a word and says nothing, and an XID. packaging/bench/kernlog.sh
// compares whole files with grep -E.
func BenchmarkParse(b *testing.B) {
	for _, bb := range []struct{ name, line string }{
		{"nothing", "[1231000.378609] usb 1-1: new high-speed USB device number 2 using xhci_hcd"},
		{"a word", "[1231000.378609] mlx5_core 0000:4b:00.0: firmware version: 28.39.1002"},
		{"xid", "[6100041.100012] NVRM: Xid (PCI:0000:91:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."},
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
