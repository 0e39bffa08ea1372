package kmsg

import (
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

func TestParseRecord(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     Record
	}{
		{"an error of the kernel", "3,5001,90000000000,-;NVRM: Xid (PCI:0000:91:00): 79, GPU has fallen off the bus.\n",
			Record{Seq: 5001, Since: 90000 * time.Second, Priority: 3, Text: "NVRM: Xid (PCI:0000:91:00): 79, GPU has fallen off the bus."}},
		{"facility above the level", "30,7,1,-;systemd[1]: x\n", Record{Seq: 7, Since: time.Microsecond, Priority: 6, Facility: 3, Text: "systemd[1]: x"}},
		{"a dictionary", "6,1,2,-;mlx5_core 0000:4b:00.0 enp75s0np0: Link down\n SUBSYSTEM=pci\n DEVICE=+pci:0000:4b:00.0\n",
			Record{Seq: 1, Since: 2 * time.Microsecond, Priority: 6, Text: "mlx5_core 0000:4b:00.0 enp75s0np0: Link down",
				Dict: []string{"SUBSYSTEM=pci", "DEVICE=+pci:0000:4b:00.0"}}},
		{"a caller", "4,1,2,c,caller=T1234;half", Record{Seq: 1, Since: 2 * time.Microsecond, Priority: 4, Fragment: true, Caller: "T1234", Text: "half"}},
		{"fields of a later kernel", "4,1,2,-,new=1,caller=C3;x", Record{Seq: 1, Since: 2 * time.Microsecond, Priority: 4, Caller: "C3", Text: "x"}},
		{"a semicolon in the text", "4,1,2,-;a;b", Record{Seq: 1, Since: 2 * time.Microsecond, Priority: 4, Text: "a;b"}},
		{"no text", "4,1,2,-;", Record{Seq: 1, Since: 2 * time.Microsecond, Priority: 4}},
		{"escapes that print", `4,1,2,-;a\x5cb \xc3\xa4`, Record{Seq: 1, Since: 2 * time.Microsecond, Priority: 4, Text: `a\b ä`}},
		{"escapes that do not", `4,1,2,-;a\x0ab\x1b[31m\xff`, Record{Seq: 1, Since: 2 * time.Microsecond, Priority: 4, Text: `a\x0ab\x1b[31m\xff`}},
		{"bytes that are no text", "4,1,2,-;a\x00\xfe\t", Record{Seq: 1, Since: 2 * time.Microsecond, Priority: 4, Text: `a\x00\xfe\x09`}},
		{"no prefix", "NVRM: Xid (PCI:0000:91:00): 79", Record{Malformed: true, Text: "NVRM: Xid (PCI:0000:91:00): 79"}},
		{"cut within the prefix", "3,500", Record{Malformed: true, Text: "3,500"}},
		{"two fields", "3,500;x", Record{Malformed: true, Text: "3,500;x"}},
		{"a sequence number past all sense", "3,99999999999999999999,1,-;x", Record{Malformed: true, Text: "3,99999999999999999999,1,-;x"}},
		{"a negative time", "3,1,-1,-;x", Record{Malformed: true, Text: "3,1,-1,-;x"}},
		{"nothing", "", Record{Malformed: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := ParseRecord([]byte(tt.in))
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
			if ok == got.Malformed {
				t.Errorf("ok %v with malformed %v", ok, got.Malformed)
			}
		})
	}
}

func FuzzParseRecord(f *testing.F) {
	for _, s := range []string{
		"3,5001,90000000000,-;NVRM: Xid (PCI:0000:91:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n",
		"6,5001,90000000000,-;mlx5_core 0000:4b:00.0 enp75s0np0: Link down\n SUBSYSTEM=pci\n DEVICE=+pci:0000:4b:00.0\n",
		"[6100041.100012] NVRM: Xid (PCI:0000:91:00): 79", "4,1,2,c,caller=T1;a\\x0ab", "3,500", ",,,;", " A=b", "\xff\xfe;\x00", "4,1,2,-;\\x", "4,1,2,-;\\xzz",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, ok := ParseRecord(b)
		if ok == r.Malformed {
			t.Fatalf("ok %v with malformed %v", ok, r.Malformed)
		}
		for _, s := range append([]string{r.Text, r.Caller}, r.Dict...) {
			if !utf8.ValidString(s) {
				t.Fatalf("not UTF-8: %q", s)
			}
			if i := strings.IndexFunc(s, func(c rune) bool { return unicode.IsControl(c) }); i >= 0 {
				t.Fatalf("a control byte in %q", s)
			}
		}
		if len(r.Text) > 4*len(b) || len(r.Dict) > maxDict || r.Since < 0 {
			t.Fatalf("out of bounds: %+v", r)
		}
	})
}
