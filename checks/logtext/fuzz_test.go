package logtext

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"
	"time"
)

var read = time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)

type got struct {
	text, boot string
	at         time.Time
}

// all reads a text to its end.
func all(in io.Reader, want func([]byte) bool) ([]got, *Reader, error) {
	r := NewReader(in, Options{Now: read, Want: want})
	var out []got
	for {
		l, err := r.Next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return out, r, err
		}
		out = append(out, got{string(l.Text), l.Boot, l.At})
	}
}

func corpus(tb testing.TB) [][]byte {
	tb.Helper()
	files, err := filepath.Glob("../xid/testdata/kernel-log/*.txt")
	if err != nil || len(files) < 10 {
		tb.Fatal(files, err)
	}
	var out [][]byte
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, b)
	}
	for _, s := range []string{
		"kern  :err   : [Fri Aug 30 11:53:09 2024] a\n<3>[ 1.5] b\n<13>[ 1.5] c\n[Aug30 11:43] d\n[  +0.000844] e\n",
		"2024-08-30T11:43:09,123456+02:00 a b\n2025-08-10T15:56:05+0000 h kernel: c\nSun 2025-08-10 15:36:05 UTC h kernel: d\n1754840165.123456 h kernel: e\n",
		"-- Boot 0123456789abcdef0123456789abcdef --\nAug 10 15:36:05.5 h kernel: a\n-- Reboot --\nAug 10 15:36:05 h kernel[0]: b\n",
		"6,5001,90000000000,-;a\n SUBSYSTEM=pci\n12,5002,90000000001,-;b\n4,5003,5,-,caller=T7;c\n",
		"203.0.113.9: kern: warning: [2026-01-02T03:04:05.6Z]: a\n",
		`{"__REALTIME_TIMESTAMP":"1754840165500000","__MONOTONIC_TIMESTAMP":"2","_SOURCE_MONOTONIC_TIMESTAMP":"1","_TRANSPORT":"kernel","MESSAGE":"a"}` + "\n" + `{"_TRANSPORT":["kernel"],"MESSAGE":[97,98]}` + "\n",
		"{\n\t\"_TRANSPORT\" : \"kernel\",\n\t\"MESSAGE\" : \"a\"\n}\n{\n\t\"MESSAGE\" : \"b\"\n}\n",
		"{\n   \"dmesg\": [\n      {\"pri\": 6, \"time\": 1.5, \"msg\": \"a\"},{\"pri\": 12, \"time\": 2.5, \"msg\": \"b\"}\n   ]\n}\n",
		"__CURSOR=s\n__REALTIME_TIMESTAMP=1\n_TRANSPORT=kernel\nMESSAGE=a\n\nMESSAGE\n\x02\x00\x00\x00\x00\x00\x00\x00ab\n_TRANSPORT=kernel\n\n",
		verboseText, "\x1b[32m[  100.500000] \x1b[0m\x1b[33mNVRM: \x1b[0ma\n", "Mar 02 10:11:12 node-a kernel: [94B blob data]\n",
	} {
		out = append(out, []byte(s))
	}
	return out
}

// Whatever the text: no panic; in whatever pieces it comes, the same lines; what is refused beforehand is only that; and a
// text of lines is read like its lines.
func FuzzReader(f *testing.F) {
	for _, b := range corpus(f) {
		f.Add(b)
		f.Add(b[:len(b)*2/3])
		f.Add(bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		whole, r, err := all(bytes.NewReader(in), nil)
		if len(whole) > r.Lines {
			t.Fatalf("%d lines of %d", len(whole), r.Lines)
		}
		pieces, _, err2 := all(iotest.OneByteReader(bytes.NewReader(in)), nil)
		if (err == nil) != (err2 == nil) || !same(whole, pieces) {
			t.Fatalf("in pieces it reads %+v (%v), whole %+v (%v)", pieces, err2, whole, err)
		}
		for _, g := range whole {
			if bytes.ContainsRune([]byte(g.text), '\n') && r.form == text {
				t.Fatalf("%q holds a line's end", g.text)
			}
		}
		if r.form != text || bytes.Contains(in, []byte("\n\n")) {
			return
		}
		// Without what a line before it tells, a line has the same message.
		n := 0
		for line := range bytes.Lines(in) {
			one, r, _ := all(bytes.NewReader(line), nil)
			if r.form != text {
				return
			}
			for _, g := range one {
				if n >= len(whole) || whole[n].text != g.text {
					t.Fatalf("alone a line says %q, in the text it is none or another", g.text)
				}
				n++
			}
		}
		if n != len(whole) {
			t.Fatalf("%d lines alone, %d together", n, len(whole))
		}
	})
}

func same(a, b []got) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].text != b[i].text || a[i].boot != b[i].boot || !a[i].at.Equal(b[i].at) {
			return false
		}
	}
	return true
}

// What was read, printed as dmesg prints it with a time of day, reads the same again.
func FuzzPrintedAgain(f *testing.F) {
	for _, b := range corpus(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		first, _, _ := all(bytes.NewReader(in), nil)
		var printed bytes.Buffer
		var want []got
		for _, g := range first {
			s := (&clock{local: time.UTC, now: read}).strip([]byte(g.text))
			if g.at.Year() < 1970 || g.at.Year() > 2200 || s.known || s.foreign || len(g.text) == 0 || bytes.ContainsAny([]byte(g.text), "\r\n\x00") || bytes.HasPrefix([]byte(g.text), []byte("Linux version ")) ||
				bytes.HasSuffix([]byte(g.text), []byte(blobEnd)) || bytes.ContainsRune([]byte(g.text), escape) {
				continue // no time of day; or the message itself begins as a tool's prefix does
			}
			printed.WriteString(g.at.Format("2006-01-02T15:04:05,000000+00:00") + " " + g.text + "\n")
			want = append(want, got{g.text, "", g.at.Truncate(time.Microsecond)})
		}
		again, _, err := all(&printed, nil)
		if err != nil || !same(again, want) {
			t.Fatalf("printed and read again: %+v, %v; want %+v", again, err, want)
		}
	})
}

func TestALineTooLongKeepsItsBeginning(t *testing.T) {
	in := "[    1.000000] " + string(bytes.Repeat([]byte("x"), 3*maxLine)) + "\n[    2.000000] next\n"
	out, r, err := all(bytes.NewReader([]byte(in)), nil)
	if err != nil || len(out) != 2 || len(out[0].text) > maxLine || out[1].text != "next" || r.Lines != 2 {
		t.Errorf("%d lines, %v", len(out), err)
	}
}

func TestAnExportsLengthIsNotBelieved(t *testing.T) {
	in := "_TRANSPORT=kernel\nMESSAGE\n\xff\xff\xff\xff\xff\xff\xff\x7fab"
	if _, _, err := all(bytes.NewReader([]byte(in)), nil); err == nil {
		t.Error("a field of 2^63 bytes is read")
	}
}

func TestWhatIsNotWantedIsCounted(t *testing.T) {
	in := "[    1.000000] a\n[    2.000000] b\n[    3.000000] a\n"
	out, r, err := all(bytes.NewReader([]byte(in)), func(b []byte) bool { return bytes.HasSuffix(b, []byte("b")) })
	if err != nil || len(out) != 1 || r.Lines != 3 || r.Known == 0 {
		t.Errorf("%+v, %d lines, %d known, %v", out, r.Lines, r.Known, err)
	}
}
