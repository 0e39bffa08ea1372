package logtext

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"
)

// A Reader reads a log line by line. Which form it has, the first line tells; lines of one text may differ in what stands
// before their message.
type Reader struct {
	o    Options
	in   *bufio.Reader
	line []byte
	form form
	err  error

	Lines   int // lines or records read so far
	Known   int // those in a form that is known, or from the kernel for sure
	Foreign int // those that matter and that another program wrote
	Broken  int // those that may matter and that are not whole

	boot  string
	boots int
	begun bool   // a line of the first boot has been given
	over  boots  // which are past
	host  string // the last that a line of text named
	clock clock
	raw   record
	tree  *json.Decoder
	array bool // within dmesg's array
}

type form uint8

const (
	unknown form = iota
	text
	jsonLines
	jsonTree // one document over many lines
	export
	verbose
)

// NewReader reads the log from r.
func NewReader(r io.Reader, o Options) *Reader {
	if o.Local == nil {
		o.Local = time.UTC
	}
	return &Reader{o: o, in: bufio.NewReaderSize(r, maxLine), boots: 1, clock: clock{local: o.Local, now: o.Now}}
}

// Next gives the next line that may matter. At the end the error is io.EOF; another one is the source's own.
func (r *Reader) Next() (Line, error) {
	for {
		if r.form == export || r.form == jsonTree || r.form == verbose {
			next := r.nextRecord
			switch r.form {
			case jsonTree:
				next = r.nextObject
			case verbose:
				next = r.nextVerbose
			}
			if l, ok := next(); ok || r.err != nil {
				return l, r.err
			}
			continue
		}
		b, err := r.readLine()
		if err != nil {
			return Line{}, err
		}
		if len(b) == 0 {
			continue
		}
		if r.form == unknown {
			switch r.form = formOf(b); r.form {
			case export:
				r.raw = record{}
				r.raw.take(b)
				continue
			case verbose:
				r.raw, _ = verboseHead(b)
				continue
			case jsonTree:
				r.tree = json.NewDecoder(io.MultiReader(strings.NewReader(string(b)+"\n"), r.in))
				continue
			}
		}
		r.Lines++
		var l Line
		var ok bool
		if r.form == jsonLines {
			l, ok = r.jsonLine(b)
		} else {
			l, ok = r.textLine(b)
		}
		if ok {
			return l, nil
		}
	}
}

func formOf(first []byte) form {
	switch {
	case string(bytes.TrimRight(first, " ")) == "{":
		return jsonTree
	case first[0] == '{' || first[0] == 0x1e || bytes.HasPrefix(first, []byte("data: {")):
		return jsonLines
	case bytes.HasPrefix(first, []byte("__CURSOR=")), bytes.HasPrefix(first, []byte("__REALTIME_TIMESTAMP=")), bytes.HasPrefix(first, []byte("_BOOT_ID=")),
		bytes.HasPrefix(first, []byte("MESSAGE=")), bytes.HasPrefix(first, []byte("PRIORITY=")), bytes.HasPrefix(first, []byte("_TRANSPORT=")):
		return export
	}
	if _, ok := verboseHead(first); ok {
		return verbose
	}
	return text
}

// readLine gives the next line without its end. Of one that is too long it gives the beginning.
func (r *Reader) readLine() ([]byte, error) {
	b, err := r.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		r.line = append(r.line[:0], b...)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = r.in.ReadSlice('\n')
		}
		b = r.line
	}
	if err != nil && (len(b) == 0 || !errors.Is(err, io.EOF)) {
		return nil, err
	}
	return bytes.TrimRight(b, "\r\n"), nil
}

// textLine reads a line of text.
func (r *Reader) textLine(b []byte) (Line, bool) {
	if b[0] == '-' && r.separator(b) {
		return Line{}, false
	}
	if bytes.IndexByte(b, escape) >= 0 {
		if b = uncoloured(b); len(b) == 0 {
			return Line{}, false
		}
	}
	if bytes.HasSuffix(b, []byte(blobEnd)) {
		if s := r.clock.strip(b); s.known && !s.foreign && isBlob(s.rest) {
			r.Known++
			r.Broken++
			return Line{}, false
		}
	}
	if r.o.Want != nil && !r.o.Want(b) {
		if r.Known == 0 { // a text of which no line matters is still one of the kernel's if any line looks so
			if s := r.clock.strip(b); s.known {
				r.Known++
			}
		}
		return Line{}, false
	}
	s := r.clock.strip(b)
	if s.known {
		r.Known++
	}
	if s.foreign {
		r.Foreign++
		return Line{}, false
	}
	first := bytes.HasPrefix(s.rest, []byte("Linux version "))
	if s.machine != "" && s.machine != r.host {
		if r.host != "" {
			r.over.another()
		}
		r.host = s.machine
	}
	if r.begun && (s.backwards || first) {
		r.boots++
		r.boot = "boot-" + strconv.Itoa(r.boots)
	}
	r.over.begin(r.host, r.boot, first)
	r.begun = true
	return Line{Text: s.rest, Whole: s.whole, At: s.at, Boot: r.boot}, true
}

// separator reads "-- Boot 0123… --", which journalctl writes between boots, and skips its other remarks.
func (r *Reader) separator(b []byte) bool {
	if !bytes.HasPrefix(b, []byte("-- ")) {
		return bytes.HasPrefix(b, []byte("----"))
	}
	r.Known++
	f := bytes.Fields(b)
	switch {
	case len(f) == 4 && string(f[1]) == "Boot":
		r.boot = BootID(string(f[2]))
		r.boots++
		r.over.begin(r.host, r.boot, true)
	case len(f) == 3 && string(f[1]) == "Reboot":
		r.boots++
		r.boot = "boot-" + strconv.Itoa(r.boots)
		r.over.begin(r.host, r.boot, true)
	}
	return true
}

// BootID writes a boot id as the kernel does, 8-4-4-4-12; journald leaves the dashes out.
func BootID(s string) string {
	if len(s) != 32 {
		return s
	}
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}
