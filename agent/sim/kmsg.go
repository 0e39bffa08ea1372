package sim

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// KmsgOptions say how a record is written. The zero value is an error-level record without a dictionary.
type KmsgOptions struct {
	Priority   int      // syslog priority; 0 stands for 3, error
	Dictionary []string // rows such as SUBSYSTEM=pci
	Raw        bool     // write text as it stands, with no prefix and no escapes: what a reader must survive
}

// Kmsg appends one record to the kernel log of the node in dir, with the next sequence number.
func Kmsg(dir, text string, opts KmsgOptions) error { return appendKmsg(dir, []string{text}, opts) }

// appendKmsg appends records that come together, in one write.
func appendKmsg(dir string, texts []string, opts KmsgOptions) error {
	return locked(dir, func() error {
		s, err := Read(dir)
		if err != nil {
			return err
		}
		f, err := os.OpenFile(In(dir).Kmsg, os.O_RDWR|os.O_APPEND, 0)
		if err != nil {
			return fmt.Errorf("simulated kernel log: %w", err)
		}
		defer f.Close()
		var out []byte
		if opts.Raw {
			for _, t := range texts {
				out = append(out, t...)
			}
		} else {
			seq, err := nextSeq(f)
			if err != nil {
				return fmt.Errorf("simulated kernel log: %w", err)
			}
			for i, t := range texts {
				r := kmsgRecord{priority: opts.Priority, text: t, dictionary: opts.Dictionary}
				out = append(out, r.encode(seq+uint64(i), time.Since(s.BootedAt).Microseconds())...)
			}
		}
		_, err = f.Write(out)
		return err
	})
}

// tail is as much of the log's end as is searched for the last sequence number.
const tail = 256 << 10

// nextSeq is one more than the last well-formed record's sequence number.
func nextSeq(f *os.File) (uint64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	from := max(0, st.Size()-tail)
	b := make([]byte, st.Size()-from)
	if _, err := f.ReadAt(b, from); err != nil {
		return 0, err
	}
	for len(b) > 0 {
		b = bytes.TrimSuffix(b, []byte("\n"))
		i := bytes.LastIndexByte(b, '\n')
		if fields := strings.SplitN(string(b[i+1:]), ",", 4); len(fields) == 4 {
			_, perr := strconv.ParseUint(fields[0], 10, 16)
			if seq, err := strconv.ParseUint(fields[1], 10, 63); err == nil && perr == nil {
				return seq + 1, nil
			}
		}
		b = b[:i+1]
	}
	return 0, nil
}

// A kmsgRecord is one record as /dev/kmsg gives it: "prio,seq,usec,flags;text", then rows of dictionary.
// Source: Linux Documentation/ABI/testing/dev-kmsg.
type kmsgRecord struct {
	priority   int
	text       string
	dictionary []string
}

func (r kmsgRecord) encode(seq uint64, usec int64) []byte {
	prio := r.priority
	if prio == 0 {
		prio = 3
	}
	var b []byte
	b = fmt.Appendf(b, "%d,%d,%d,-;", prio, seq, usec)
	b = append(escape(b, r.text), '\n')
	for _, row := range r.dictionary {
		b = append(b, ' ')
		b = append(escape(b, row), '\n')
	}
	return b
}

// escape writes unprintable bytes and the backslash as \xNN, as the kernel does.
func escape(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 127 || c == '\\' {
			b = fmt.Appendf(b, `\x%02x`, c)
		} else {
			b = append(b, c)
		}
	}
	return b
}
