// Package kmsg reads the kernel log: /dev/kmsg, or a file that stands for it.
//
// Records carry the kernel's own sequence number. It, with the boot id, orders them and shows gaps; time of day does not,
// since the kernel's clock drifts by hours on long-running nodes (node-problem-detector #479). The reader holds one
// buffer and no queue: in a flood the kernel overwrites what was not read in time, and the gap is counted.
// Format: Linux Documentation/ABI/testing/dev-kmsg.
package kmsg

import (
	"bytes"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// A Record is one record of the kernel log.
type Record struct {
	BootID    string
	Seq       uint64        // rises by one with each record of a boot; of a malformed record: the last one known
	Since     time.Duration // since boot, by the kernel's clock
	At        time.Time     // Since as time of day
	Priority  int           // syslog level, 0 emergency to 7 debug
	Facility  int           // syslog facility, 0 the kernel
	Fragment  bool          // a part of a line; the rest follows in the next record
	Caller    string        // thread or CPU, as T1234; empty when the kernel does not say
	Text      string        // valid UTF-8; control bytes as \xNN
	Dict      []string      // KEY=value rows
	Lost      uint64        // records before this one that could not be read any more
	Malformed bool          // not a record; Text is what stood there
}

// ParseRecord parses one record: a head line "prio,seq,usec,flags[,more];text", then rows " KEY=value". It reports false
// for anything else, with what stood there as Text.
func ParseRecord(b []byte) (Record, bool) {
	b = bytes.TrimSuffix(b, []byte("\n"))
	head, rows, _ := bytes.Cut(b, []byte("\n"))
	bad := Record{Malformed: true, Text: clean(head)}
	prefix, text, ok := bytes.Cut(head, []byte(";"))
	if !ok {
		return bad, false
	}
	f := strings.Split(string(prefix), ",")
	if len(f) < 3 {
		return bad, false
	}
	prio, err1 := strconv.ParseUint(f[0], 10, 32)
	seq, err2 := strconv.ParseUint(f[1], 10, 63)
	usec, err3 := strconv.ParseUint(f[2], 10, 53) // 285 years of microseconds: a time.Duration holds them
	if err1 != nil || err2 != nil || err3 != nil {
		return bad, false
	}
	r := Record{
		Seq: seq, Since: time.Duration(usec) * time.Microsecond, Priority: int(prio & 7), Facility: int(prio >> 3), Text: clean(text),
	}
	if len(f) > 3 {
		r.Fragment = f[3] == "c"
		for _, more := range f[4:] {
			if caller, ok := strings.CutPrefix(more, "caller="); ok {
				r.Caller = clean([]byte(caller))
			}
		}
	}
	for len(rows) > 0 && len(r.Dict) < maxDict {
		var row []byte
		row, rows, _ = bytes.Cut(rows, []byte("\n"))
		if row, ok := bytes.CutPrefix(row, []byte(" ")); ok {
			r.Dict = append(r.Dict, clean(row))
		}
	}
	return r, true
}

// maxDict bounds the rows kept of one record; the kernel writes two.
const maxDict = 16

// clean undoes the kernel's \xNN escapes where that gives printable text, and makes the rest valid, printable UTF-8.
func clean(b []byte) string {
	plain := true
	for _, c := range b {
		if c < ' ' || c >= utf8.RuneSelf-1 || c == '\\' {
			plain = false
			break
		}
	}
	if plain {
		return string(b)
	}
	raw := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		if b[i] == '\\' && i+3 < len(b) && b[i+1] == 'x' {
			if v, err := strconv.ParseUint(string(b[i+2:i+4]), 16, 8); err == nil {
				raw = append(raw, byte(v))
				i += 3
				continue
			}
		}
		raw = append(raw, b[i])
	}
	var out strings.Builder
	out.Grow(len(raw))
	for len(raw) > 0 {
		r, n := utf8.DecodeRune(raw)
		if r == utf8.RuneError && n == 1 || r != ' ' && !unicode.IsPrint(r) {
			for _, c := range raw[:n] {
				const hex = "0123456789abcdef"
				out.WriteString(`\x`)
				out.WriteByte(hex[c>>4])
				out.WriteByte(hex[c&15])
			}
		} else {
			out.WriteRune(r)
		}
		raw = raw[n:]
	}
	return out.String()
}
