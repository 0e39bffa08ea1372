package logtext

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const verboseText = `Mon 2026-03-02 10:11:12.123456 UTC [s=a1;i=1;b=0123456789abcdef0123456789abcdef;m=5f5e100;t=64c0a0b0f2e40;x=7]
    _SOURCE_MONOTONIC_TIMESTAMP=99000000
    _TRANSPORT=kernel
    PRIORITY=3
    SYSLOG_IDENTIFIER=kernel
    _BOOT_ID=0123456789abcdef0123456789abcdef
    MESSAGE=NVRM: one
            _TRANSPORT=forged
            NVRM: two
Mon 2026-03-02 10:11:13.123456 UTC [s=a1;i=2;b=0123456789abcdef0123456789abcdef;m=5f5e101;t=64c0a0b0f2e41;x=8]
    _TRANSPORT=stdout
    SYSLOG_IDENTIFIER=kernel
    MESSAGE=NVRM: another program's
-- Boot fedcba9876543210fedcba9876543210 --
Tue 2026-03-03 10:11:12.000000 UTC [s=a1;i=3;b=fedcba9876543210fedcba9876543210;m=10;t=64c0a0b0f2e42;x=9]
    _TRANSPORT=kernel
    MESSAGE=[94B blob data]
Tue 2026-03-03 10:11:13.000000 UTC [s=a1;i=4;b=fedcba9876543210fedcba9876543210;m=11;t=64c0a0b0f2e43;x=a]
    MESSAGE=NVRM: three
    _TRANSPORT=kernel
`

// The journal's form for people who want all fields: one entry each, further lines of a message with it, and nobody's words
// taken for fields.
func TestVerbose(t *testing.T) {
	r := NewReader(strings.NewReader(verboseText), Options{Now: read})
	var got []string
	for {
		l, err := r.Next()
		if err != nil {
			break
		}
		got = append(got, fmt.Sprintf("%q %s whole=%t %d", l.Text, l.Boot, l.Whole, l.At.UnixMicro()))
	}
	want := []string{
		fmt.Sprintf(`"NVRM: one\n_TRANSPORT=forged\nNVRM: two" 01234567-89ab-cdef-0123-456789abcdef whole=true %d`, 0x64c0a0b0f2e40-1_000_000),
		fmt.Sprintf(`"NVRM: three" fedcba98-7654-3210-fedc-ba9876543210 whole=true %d`, 0x64c0a0b0f2e43),
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") || r.Foreign != 1 || r.Broken != 1 || r.Lines != 4 {
		t.Errorf("got\n%s\nwant\n%s\n%d foreign, %d broken, %d entries", strings.Join(got, "\n"), strings.Join(want, "\n"), r.Foreign, r.Broken, r.Lines)
	}
}

// Colours are no part of a line; a message that journalctl left out is missed.
func TestColoursAndMessagesLeftOut(t *testing.T) {
	for _, c := range []struct {
		name, in, text string
		at             time.Duration
		broken         int
	}{
		{"dmesg --color=always", "\x1b[32m[  100.500000] \x1b[0m\x1b[33mNVRM: \x1b[0mXid (PCI:0000:3b:00): 79\n", "NVRM: Xid (PCI:0000:3b:00): 79", 100500 * time.Millisecond, 0},
		{"with the level", "\x1b[32m[  100.500000] \x1b[0m\x1b[01;31mNVRM: a\x1b[0m\x1b[K\n", "NVRM: a", 100500 * time.Millisecond, 0},
		{"an escape that is none", "[  100.500000] a\x1b[31 b\x1bc\n", "a\x1b[31 b\x1bc", 100500 * time.Millisecond, 0},
		{"the kernel's, left out", "Mar 02 10:11:12 node-a kernel: [94B blob data]\n", "", 0, 1},
		{"another program's, left out", "Mar 02 10:11:12 node-a python[42]: [1.2K blob data]\n", "", 0, 0},
		{"words that look like it", "[  100.500000] foo: [xB blob data]\n", "foo: [xB blob data]", 100500 * time.Millisecond, 0},
	} {
		out, r, err := all(strings.NewReader(c.in), nil)
		text, at := "", time.Duration(0)
		if len(out) == 1 {
			text, at = out[0].text, out[0].at.Sub(time.Time{})
		}
		if err != nil || len(out) > 1 || text != c.text || r.Broken != c.broken || c.text != "" && at != c.at {
			t.Errorf("%s: %q after %s, %d broken, %v", c.name, text, at, r.Broken, err)
		}
	}
}
