package logtext

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"
)

// jsonLine reads one object of journalctl -o json, json-sse or json-seq.
func (r *Reader) jsonLine(b []byte) (Line, bool) {
	b = bytes.TrimPrefix(bytes.TrimPrefix(b, []byte{0x1e}), []byte("data: "))
	if len(b) == 0 || b[0] != '{' {
		return Line{}, false
	}
	// A message that is no valid text is an array of numbers; only then do the words not stand in the line.
	if r.o.Want != nil && !r.o.Want(b) && !numbersMessage(b) {
		if bytes.Contains(b, []byte(`"MESSAGE"`)) {
			r.Known++
		}
		r.bootOf(b)
		return Line{}, false
	}
	var o entry
	if json.Unmarshal(b, &o) != nil || o.Message == nil {
		r.Broken++ // cut off, or another program's JSON about the kernel log
		return Line{}, false
	}
	r.Known++
	return r.journalLine(o.record())
}

// bootOf notes the boot of an entry that is not read. Only a new one costs more than a search.
func (r *Reader) bootOf(b []byte) {
	const name = `"_BOOT_ID":"`
	i := bytes.Index(b, []byte(name))
	if i < 0 || len(b) < i+len(name)+32 || string(b[i+len(name):i+len(name)+32]) == r.boot {
		return
	}
	var o entry
	if json.Unmarshal(b, &o) == nil {
		r.ofBoot(o.record())
	}
}

// ofBoot notes the boot that an entry of the journal is of.
func (r *Reader) ofBoot(rec record) {
	if rec.boot != "" {
		r.boot = rec.boot
		r.over.begin(rec.machine, BootID(rec.boot), true)
	}
}

// An entry is one of journald's as JSON has it.
type entry struct {
	Message    json.RawMessage `json:"MESSAGE"`
	Realtime   json.RawMessage `json:"__REALTIME_TIMESTAMP"`
	Monotonic  json.RawMessage `json:"__MONOTONIC_TIMESTAMP"`
	Source     json.RawMessage `json:"_SOURCE_MONOTONIC_TIMESTAMP"`
	Boot       json.RawMessage `json:"_BOOT_ID"`
	Transport  json.RawMessage `json:"_TRANSPORT"`
	Identifier json.RawMessage `json:"SYSLOG_IDENTIFIER"`
	Machine    json.RawMessage `json:"_MACHINE_ID"`
}

func (o entry) record() record {
	return record{
		message: jsonText(o.Message), realtime: string(jsonText(o.Realtime)), monotonic: string(jsonText(o.Monotonic)), source: string(jsonText(o.Source)),
		boot: string(jsonText(o.Boot)), transport: string(jsonText(o.Transport)), identifier: string(jsonText(o.Identifier)),
		machine: string(jsonText(o.Machine)),
	}
}

// nextObject reads one object of journalctl -o json-pretty, or one element of what dmesg -J prints: {"dmesg": [{"pri": …,
// "time": …, "msg": …}, …]}.
func (r *Reader) nextObject() (Line, bool) {
	if r.array {
		if !r.tree.More() {
			r.err = io.EOF
			return Line{}, false
		}
		return r.dmesgElement()
	}
	var o struct {
		entry
		Dmesg json.RawMessage `json:"dmesg"`
	}
	if err := r.tree.Decode(&o); err != nil {
		r.err = unexpectedIn(err)
		return Line{}, false
	}
	if o.Dmesg != nil {
		r.tree, r.array = json.NewDecoder(bytes.NewReader(o.Dmesg)), true
		if t, err := r.tree.Token(); err != nil || t != json.Delim('[') {
			r.err = &FormError{"dmesg is no list"}
		}
		return Line{}, false
	}
	r.Lines++
	r.Known++
	return r.journalLine(o.record())
}

func (r *Reader) dmesgElement() (Line, bool) {
	var e struct {
		Pri  int         `json:"pri"`
		Fac  string      `json:"fac"`
		Time json.Number `json:"time"`
		Msg  string      `json:"msg"`
	}
	if err := r.tree.Decode(&e); err != nil {
		r.err = unexpectedIn(err)
		return Line{}, false
	}
	r.Lines++
	r.Known++
	b := []byte(e.Msg)
	if r.o.Want != nil && !r.o.Want(b) {
		return Line{}, false
	}
	if e.Pri>>3 != 0 || e.Fac != "" && e.Fac != "kern" {
		r.Foreign++
		return Line{}, false
	}
	l := Line{Text: b, Whole: true}
	if d, ok := seconds(strings.TrimSpace(e.Time.String())); ok {
		s := stripped{}
		r.clock.sinceBoot(&s, d)
		l.At = s.at
	}
	return l, true
}

// unexpectedIn tells the end of the text, where it may end, from one within an object.
func unexpectedIn(err error) error {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF):
		return io.EOF
	case errors.As(err, &syntax):
		return &FormError{"not JSON: " + err.Error()}
	}
	return err
}

func numbersMessage(b []byte) bool {
	i := bytes.Index(b, []byte(`"MESSAGE"`))
	if i < 0 {
		return false
	}
	rest := bytes.TrimLeft(b[i+len(`"MESSAGE"`):], " :")
	return len(rest) > 0 && rest[0] == '['
}

// jsonText gives a field's text: a string, an array of bytes, or the first of several values.
func jsonText(raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return nil
	}
	switch raw[0] {
	case '"':
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return nil
		}
		return []byte(s)
	case '[':
		var several []json.RawMessage
		if json.Unmarshal(raw, &several) != nil || len(several) == 0 {
			return nil
		}
		if several[0][0] == '"' || several[0][0] == '[' {
			return jsonText(several[0])
		}
		out := make([]byte, 0, len(several))
		for _, n := range several {
			v, err := strconv.ParseUint(string(n), 10, 8)
			if err != nil {
				return nil
			}
			out = append(out, byte(v))
		}
		return out
	}
	return nil
}

// A record is one entry of the journal.
type record struct {
	message                                                           []byte
	realtime, monotonic, source, boot, transport, identifier, machine string
	any                                                               bool // a field has been read
}

// journalLine makes a line of an entry; false for one that the kernel did not write.
func (r *Reader) journalLine(rec record) (Line, bool) {
	r.ofBoot(rec)
	if r.o.Want != nil && !r.o.Want(rec.message) || len(rec.message) == 0 {
		return Line{}, false
	}
	// The transport is journald's own word; the identifier is the writer's, and counts only where the other is missing.
	ours := rec.transport == "kernel" || rec.transport == "" && rec.identifier == "kernel" || isFabricManager(rec.identifier)
	if !ours {
		r.Foreign++
		return Line{}, false
	}
	return Line{Text: rec.message, Whole: true, At: rec.at(), Boot: BootID(rec.boot)}, true
}

// at is when the kernel logged the entry: journald's time of day for it, less what passed until journald had it.
func (rec record) at() time.Time {
	usec, err := strconv.ParseInt(rec.realtime, 10, 64)
	if err != nil {
		return time.Time{}
	}
	mono, err1 := strconv.ParseInt(rec.monotonic, 10, 64)
	source, err2 := strconv.ParseInt(rec.source, 10, 64)
	if err1 == nil && err2 == nil && mono >= source && source >= 0 {
		usec -= mono - source
	}
	return time.UnixMicro(usec).UTC()
}

// nextRecord reads one entry of journalctl -o export: NAME=value lines, or NAME, eight bytes of length and that many of
// value; an empty line ends it.
func (r *Reader) nextRecord() (Line, bool) {
	for {
		b, err := r.readLine()
		if errors.Is(err, io.EOF) && r.raw.any {
			return r.endRecord()
		}
		if err != nil {
			r.err = err
			return Line{}, false
		}
		if len(b) == 0 {
			if !r.raw.any {
				continue
			}
			return r.endRecord()
		}
		if bytes.IndexByte(b, '=') >= 0 {
			r.raw.take(b)
			continue
		}
		name := string(b)
		var size [8]byte
		if _, err := io.ReadFull(r.in, size[:]); err != nil {
			r.err = unexpected(err)
			return Line{}, false
		}
		n := binary.LittleEndian.Uint64(size[:])
		value := make([]byte, min(n, maxField))
		if _, err := io.ReadFull(r.in, value); err != nil {
			r.err = unexpected(err)
			return Line{}, false
		}
		if left := n - uint64(len(value)) + 1; left < 1<<40 { // the rest, and the line's end
			if _, err := io.CopyN(io.Discard, r.in, int64(left)); err != nil {
				r.err = unexpected(err)
				return Line{}, false
			}
		} else {
			r.err = &FormError{"a field of the journal's export says it has " + strconv.FormatUint(n, 10) + " bytes"}
			return Line{}, false
		}
		r.raw.field(name, value)
	}
}

func (r *Reader) endRecord() (Line, bool) {
	rec := r.raw
	r.raw = record{}
	r.Lines++
	r.Known++
	return r.journalLine(rec)
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (rec *record) take(b []byte) {
	name, value, _ := bytes.Cut(b, []byte("="))
	rec.field(string(name), bytes.Clone(value))
}

func (rec *record) field(name string, value []byte) {
	rec.any = true
	switch name {
	case "MESSAGE":
		rec.message = value
	case "__REALTIME_TIMESTAMP":
		rec.realtime = string(value)
	case "__MONOTONIC_TIMESTAMP":
		rec.monotonic = string(value)
	case "_SOURCE_MONOTONIC_TIMESTAMP":
		rec.source = string(value)
	case "_BOOT_ID":
		rec.boot = string(value)
	case "_TRANSPORT":
		rec.transport = string(value)
	case "SYSLOG_IDENTIFIER":
		rec.identifier = string(value)
	case "_MACHINE_ID":
		rec.machine = string(value)
	}
}

// A FormError says that a text breaks the rules of its form.
type FormError struct{ What string }

func (e *FormError) Error() string { return "log: " + e.What }

// Hint says what may help.
func (e *FormError) Hint() string {
	return "write the log anew: journalctl -k -o export, or -o json, or dmesg"
}
