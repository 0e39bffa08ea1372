package logtext

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
)

// verboseHead reads the line with which journalctl -o verbose begins an entry: the time, and the entry's cursor in brackets,
// "Mon 2026-03-02 10:11:12.123456 UTC [s=…;i=…;b=…;m=…;t=…;x=…]". The time in the cursor needs no zone.
func verboseHead(b []byte) (record, bool) {
	open := bytes.Index(b, []byte(" [s="))
	if open < len("Mon 2026-03-02 10:11:12 U") || open > 64 || b[len(b)-1] != ']' || b[0] < 'A' || b[0] > 'Z' || b[3] != ' ' || b[8] != '-' {
		return record{}, false
	}
	rec := record{any: true}
	for f := range strings.SplitSeq(string(b[open+2:len(b)-1]), ";") {
		name, value, _ := strings.Cut(f, "=")
		switch name {
		case "b":
			rec.boot = value
		case "t":
			if usec, err := strconv.ParseUint(value, 16, 63); err == nil {
				rec.realtime = strconv.FormatUint(usec, 10)
			}
		case "m":
			if usec, err := strconv.ParseUint(value, 16, 63); err == nil {
				rec.monotonic = strconv.FormatUint(usec, 10)
			}
		}
	}
	return rec, rec.boot != ""
}

// nextVerbose reads one entry of journalctl -o verbose: its head, then a field a line, four characters in. Further lines of a
// field stand under its value, and so deeper: none can pass for a field.
func (r *Reader) nextVerbose() (Line, bool) {
	deeper := 0 // how deep further lines of the message stand; 0 when the field before was another
	for {
		b, err := r.readLine()
		if errors.Is(err, io.EOF) && r.raw.any {
			return r.endVerbose(record{})
		}
		if err != nil {
			r.err = err
			return Line{}, false
		}
		if len(b) == 0 || bytes.HasPrefix(b, []byte("-- ")) {
			continue
		}
		if b[0] != ' ' {
			if head, ok := verboseHead(b); ok {
				if l, ok := r.endVerbose(head); ok {
					return l, true
				}
			}
			deeper = 0
			continue
		}
		field, isField := bytes.CutPrefix(b, []byte("    "))
		switch {
		case isField && len(field) > 0 && field[0] != ' ':
			deeper = 0
			if bytes.HasPrefix(field, []byte("MESSAGE=")) {
				deeper = len("    MESSAGE=")
			}
			r.raw.take(field)
		case deeper > 0 && len(b) >= deeper && len(bytes.TrimLeft(b[:deeper], " ")) == 0 && len(r.raw.message) < maxField:
			r.raw.message = append(append(r.raw.message, '\n'), b[deeper:]...)
		}
	}
}

// endVerbose makes a line of the entry that has been read, and begins the next.
func (r *Reader) endVerbose(next record) (Line, bool) {
	rec := r.raw
	r.raw = next
	r.Lines++
	r.Known++
	if isBlob(rec.message) && (rec.transport == "kernel" || rec.transport == "" && rec.identifier == "kernel") {
		r.Broken++
		return Line{}, false
	}
	return r.journalLine(rec)
}

// blobEnd ends what journalctl prints in place of a message with bytes that it does not print, unless it is asked for --all.
const blobEnd = "B blob data]"

// isBlob reports whether a message is "[94B blob data]": what it said is not in the text.
func isBlob(message []byte) bool {
	size, ok := bytes.CutPrefix(bytes.TrimSuffix(message, []byte(blobEnd)), []byte("["))
	return ok && len(size) > 0 && len(bytes.Trim(size, "0123456789.KMG")) == 0 && bytes.HasSuffix(message, []byte(blobEnd))
}

// escape begins a colour of the terminal's: dmesg --color=always.
const escape = 0x1b

// uncoloured takes the colours out of a line, as \x1b[31m. A message of the kernel's has none: it writes the byte as text.
func uncoloured(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		if b[i] == escape && i+1 < len(b) && b[i+1] == '[' {
			end := i + 2
			for end < len(b) && (b[end] >= '0' && b[end] <= '9' || b[end] == ';') {
				end++
			}
			if end < len(b) && (b[end] == 'm' || b[end] == 'K') {
				i = end
				continue
			}
		}
		out = append(out, b[i])
	}
	return out
}
