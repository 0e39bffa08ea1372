package aer

import (
	"os"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks"
)

// Whatever the bytes: no panic, addresses as they are written everywhere, one line of text. What stands before the driver's name
// changes nothing, nor do a record's rows after it, and what is kept of a line says the same again. Two lines joined by the end of
// a line say what the first says.
func FuzzParse(f *testing.F) {
	for _, file := range []string{"../xid/testdata/kernel-log/05-aer-new-wordings.txt", "../xid/testdata/kernel-log/03-aer-surprise-down-then-xid79-no-pid.txt"} {
		b, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			f.Add(strings.TrimSuffix(line, "\n"))
		}
	}
	for _, line := range []string{
		"pcieport 0000:3a:01.0: AER: Uncorrectable (Fatal) error message received from 0000:3b:00.0", "pcieport 0000:3a:02.0: DPC: containment event, status:0x1f01 source:0x0000",
		"pcieport 0000:3a:01.0:    [ 5] SDES                   (First)", "nvidia 0000:3b:00.0: AER: aer_status: 0x00004000, aer_mask: 0x00000000",
		"pcieport 0000:00:02.0: AER: Corrected error received: id=0010", "nvidia 0000:3b:00.0: AER: can't recover (no error_detected callback)",
		"pcieport 10000:e0:06.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)", "pcieport 0000:00:1c.5: AER: device recovery failed",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		e, ok := Parse(line)
		if again, ok2 := Parse(line); ok != ok2 || again != e {
			t.Fatalf("once %+v, then %+v", e, again)
		}
		if !ok {
			return
		}
		for _, a := range []string{e.Device, e.Source} {
			if a != "" && checks.PCIAddress(a) != a {
				t.Fatalf("address %q reads as %q", a, checks.PCIAddress(a))
			}
		}
		for _, s := range []string{e.Raw, e.Layer, e.Bit, e.Driver} {
			if strings.ContainsRune(s, '\n') || strings.ToValidUTF8(s, "") != s {
				t.Fatalf("%q is not one line of text", s)
			}
		}
		if e.Device == "" || e.Severity > Fatal || e.Kind > Unrecovered {
			t.Fatalf("%+v", e)
		}
		same := func(what, other string) {
			t.Helper()
			got, ok := Parse(other)
			got.Raw, got.Driver, e.Raw, e.Driver = "", "", "", "" // the word before the device's address may be the prefix's
			if !ok || got != e {
				t.Fatalf("%q says %+v; %s %+v, %t", line, e, what, got, ok)
			}
		}
		raw := e.Raw
		if first, _, _ := strings.Cut(line, "\n"); len(first) < 1000 && strings.ToValidUTF8(first, "") == first && checks.OneLine(first) == first {
			same("what is kept of it", raw)
			same("behind a time", "[12345.678901] "+line)
			same("in a raw record", "3,7,8,-;"+line)
			same("before another line", first+"\npcieport 0000:00:01.0: AER: Uncorrectable (Fatal) error message received from 0000:01:00.0")
			same("with a record's rows", first+"\n SUBSYSTEM=pci\n DEVICE=+pci:0000:3a:01.0")
		}
	})
}
