package logtext

import (
	"bytes"
	"strconv"
	"strings"
	"time"
)

// A clock reads the times that stand before messages. Some need what stood before: a time without a year, or one that
// counts from the line above.
type clock struct {
	local *time.Location
	now   time.Time
	last  time.Time     // of the line before
	since time.Duration // of the line before, since boot
	year  int           // of the last time without a year; 0 before the first
	month time.Month    // of that time
}

// A stripped line is a message and what stood before it.
type stripped struct {
	rest      []byte
	at        time.Time
	known     bool   // it begins as a tool prints the kernel's lines
	whole     bool   // a record as the kernel gives it
	dated     bool   // a time of day stands before it
	foreign   bool   // another program wrote it
	machine   string // the host that syslog names; empty when none does
	backwards bool   // its time since boot is before that of the line before: a new boot
}

// strip takes off what stands before the message.
func (c *clock) strip(b []byte) stripped {
	s := stripped{rest: b, at: c.last}
	if len(b) == 0 {
		return s
	}
	if rest, since, user, ok := rawKmsg(b); ok {
		s.known, s.whole, s.foreign, s.rest = true, true, user, rest
		c.sinceBoot(&s, since)
		return s
	}
	s.rest = c.priority(&s, s.rest)
	day := b[0] == '<' && c.protocol(&s)
	if day {
		// the header says all that stands before a message
	} else if rest, at, comma, ok := c.day(s.rest); ok {
		s.rest, s.at, s.known, s.dated, day = rest, at, true, true, true
		if !comma { // dmesg writes a comma before the fraction, and no host after
			s.host()
		}
	}
	if bytes.HasPrefix(s.rest, []byte("kernel: ")) {
		s.rest, s.known = s.rest[len("kernel: "):], true
	}
	s.talos()
	for len(s.rest) > 0 && s.rest[0] == '[' {
		end := bytes.IndexByte(s.rest, ']')
		if end < 0 || end > 64 {
			break
		}
		rest, ok := c.bracket(&s, string(s.rest[1:end]), s.rest[end+1:])
		if !ok {
			break
		}
		s.rest, s.known = rest, true
	}
	if i := bytes.IndexByte(s.rest, ' '); s.known && !day && i > 0 && bytes.HasPrefix(s.rest[i:], []byte(" kernel: ")) {
		s.rest = s.rest[i+len(" kernel: "):] // journalctl -o short-monotonic: the host, then the kernel
	}
	c.last = s.at
	return s
}

// rawKmsg reads "6,5001,90000000000,-;" of a record as /dev/kmsg gives it.
func rawKmsg(b []byte) (rest []byte, since time.Duration, user, ok bool) {
	if len(b) == 0 || b[0] < '0' || b[0] > '9' {
		return nil, 0, false, false
	}
	head, rest, ok := bytes.Cut(b, []byte(";"))
	if !ok || len(head) > 128 {
		return nil, 0, false, false
	}
	f := strings.Split(string(head), ",")
	if len(f) < 3 {
		return nil, 0, false, false
	}
	prio, err1 := strconv.ParseUint(f[0], 10, 16)
	_, err2 := strconv.ParseUint(f[1], 10, 63)
	usec, err3 := strconv.ParseInt(f[2], 10, 53)
	return rest, time.Duration(usec) * time.Microsecond, prio>>3 != 0, err1 == nil && err2 == nil && err3 == nil && usec >= 0
}

// facilities are what dmesg -x writes first; the kernel's own is the first.
var facilities = [...]string{
	"kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp",
	"local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7",
}

// priority takes off "<4>" and "kern  :warn  : ".
func (c *clock) priority(s *stripped, b []byte) []byte {
	if len(b) > 2 && b[0] == '<' {
		if i := bytes.IndexByte(b, '>'); i > 1 && i <= 4 {
			if p, err := strconv.ParseUint(string(b[1:i]), 10, 16); err == nil {
				s.known, s.foreign = true, p>>3 != 0
				return b[i+1:]
			}
		}
	}
	for i, f := range facilities {
		if !bytes.HasPrefix(b, []byte(f)) {
			continue
		}
		rest := bytes.TrimLeft(b[len(f):], " ")
		if len(rest) == 0 || rest[0] != ':' || len(b)-len(rest) > 10 {
			continue
		}
		end := bytes.Index(rest[1:], []byte(": "))
		if end < 0 || end > 8 || bytes.ContainsAny(bytes.TrimRight(rest[1:1+end], " "), " :[") {
			continue
		}
		s.known, s.foreign = true, i != 0
		return rest[1+end+2:]
	}
	return b
}

// protocol takes off "1 2026-01-02T03:04:05.6Z HOST kernel - - - ", which RFC 5424 has after the priority.
func (c *clock) protocol(s *stripped) bool {
	rest, ok := bytes.CutPrefix(s.rest, []byte("1 "))
	if !ok {
		return false
	}
	rest, at, _, ok := c.day(rest)
	f := bytes.SplitN(rest, []byte(" "), 5) // host, program, process, kind of message, structured data and the message
	if !ok || len(f) < 5 {
		return false
	}
	message, ok := structured(f[4])
	if !ok {
		return false
	}
	s.rest = bytes.TrimPrefix(message, []byte("\xef\xbb\xbf"))
	s.at, s.known, s.dated, s.machine = at, true, true, string(f[0])
	s.by(string(f[1]))
	return true
}

// structured takes off RFC 5424's structured data: "-", or elements like [meta sequenceId="29"] with a backslash before a quote
// within one.
func structured(b []byte) (message []byte, ok bool) {
	if rest, none := bytes.CutPrefix(b, []byte("-")); none {
		return bytes.TrimPrefix(rest, []byte(" ")), true
	}
	quoted := false
	for i := 0; i < len(b) && b[0] == '['; i++ {
		switch {
		case b[i] == '\\' && quoted:
			i++
		case b[i] == '"':
			quoted = !quoted
		case b[i] == ']' && !quoted && (i+1 == len(b) || b[i+1] != '['):
			return bytes.TrimPrefix(b[i+1:], []byte(" ")), true
		}
	}
	return nil, false
}

// host takes off "HOST IDENT[PID]: ". What is not the kernel's is foreign.
func (s *stripped) host() {
	sp := bytes.IndexByte(s.rest, ' ')
	if sp <= 0 {
		return
	}
	after := s.rest[sp+1:]
	colon := bytes.Index(after, []byte(": "))
	if colon < 0 {
		if colon = len(after) - 1; colon < 0 || after[colon] != ':' {
			// Without a program's name, as -o short writes for some; the host is not part of the message.
			s.rest = after
			return
		}
		after = append(bytes.Clone(after), ' ')
	}
	ident := after[:colon]
	if bytes.IndexByte(ident, ' ') >= 0 {
		s.rest = after
		return
	}
	s.machine = string(s.rest[:sp])
	name, _, _ := strings.Cut(string(ident), "[")
	s.by(name)
	s.rest = after[colon+2:]
}

// by takes in which program wrote the line. The fabric manager does so by a facility that is not the kernel's.
func (s *stripped) by(name string) {
	s.foreign = (s.foreign || name != "kernel") && !isFabricManager(name)
}

func isFabricManager(name string) bool {
	return name == "nv-fabricmanager" || name == "nvidia-fabricmanager" || name == "fabricmanager"
}

// talos takes off "203.0.113.9: kern: warning: [2026-01-02T03:04:05.6Z]: ".
func (s *stripped) talos() {
	ip, rest, ok := bytes.Cut(s.rest, []byte(": "))
	if !ok || bytes.ContainsAny(ip, " [") {
		return
	}
	fac, rest, ok1 := bytes.Cut(rest, []byte(": "))
	_, rest, ok2 := bytes.Cut(rest, []byte(": "))
	if !ok1 || !ok2 || len(rest) == 0 || rest[0] != '[' {
		return
	}
	stamp, rest, ok := bytes.Cut(rest[1:], []byte("]: "))
	at, err := time.Parse(time.RFC3339, string(stamp))
	if !ok || err != nil {
		return
	}
	s.rest, s.at, s.known, s.dated, s.foreign = rest, at, true, true, s.foreign || string(fac) != "kern"
}

// bracket reads what stands in one pair of brackets.
func (c *clock) bracket(s *stripped, in string, rest []byte) ([]byte, bool) {
	rest = bytes.TrimPrefix(rest, []byte(" "))
	in = strings.TrimLeft(in, " ")
	if in == "" {
		return nil, false
	}
	in, delta, _ := strings.Cut(in, "<") // dmesg --show-delta, whatever stands before
	in = strings.TrimRight(in, " ")
	switch {
	case in == "" || in[0] == '+': // dmesg --reltime, and with --notime: since the line before
		d, ok := seconds(strings.Trim(strings.TrimPrefix(in, "+")+delta, " >"))
		if !ok {
			return nil, false
		}
		s.at = s.at.Add(d)
		return rest, true
	case in[0] >= '0' && in[0] <= '9':
		d, ok := seconds(in)
		if !ok {
			return nil, false
		}
		if s.dated { // a time of day says more
			s.backwards, c.since = d < c.since-bootSlack, d
		} else {
			c.sinceBoot(s, d)
		}
		return rest, true
	case (in[0] == 'T' || in[0] == 'C') && len(in) > 1 && strings.Trim(in[1:], "0123456789") == "": // the caller, as T1234
		return rest, true
	case len(in) == len("Aug10 15:36"):
		if t, err := time.ParseInLocation("Jan02 15:04", in, c.local); err == nil {
			s.at, s.dated = c.withYear(t), true
			return rest, true
		}
	}
	if t, err := time.ParseInLocation("Mon Jan _2 15:04:05 2006", in, c.local); err == nil {
		s.at, s.dated = t.UTC(), true
		return rest, true
	}
	return nil, false
}

// bootSlack is how far lines of several CPUs may be out of order.
const bootSlack = 5 * time.Second

// sinceBoot takes a time since boot. When the boot was, the text does not say.
func (c *clock) sinceBoot(s *stripped, d time.Duration) {
	s.backwards = d < c.since-bootSlack
	c.since = d
	s.at = time.Time{}.Add(d)
	c.last = s.at
}

// seconds reads "1234.567890".
func seconds(in string) (time.Duration, bool) {
	whole, frac, ok := strings.Cut(in, ".")
	sec, err := strconv.ParseUint(whole, 10, 32)
	if !ok || err != nil || len(frac) == 0 || len(frac) > 9 || strings.Trim(frac, "0123456789") != "" {
		return 0, false
	}
	n, _ := strconv.ParseUint((frac + "00000000")[:9], 10, 64)
	return time.Duration(sec)*time.Second + time.Duration(n), true
}

// day reads a time of day with its date: RFC 3339 and its relatives, journalctl's short-full and short-unix, syslog's.
func (c *clock) day(b []byte) (rest []byte, at time.Time, comma, ok bool) {
	line := string(b[:min(len(b), 48)])
	cut := func(n int) []byte { return bytes.TrimPrefix(b[n:], []byte(" ")) }
	if len(line) < 15 {
		return nil, time.Time{}, false, false
	}
	if line[0] >= 'A' && line[0] <= 'Z' {
		if line[3] == ' ' && line[4] >= '1' && line[4] <= '2' && line[8] == '-' { // Sat 2024-08-10 15:36:05 UTC
			return c.full(line, b)
		}
		n := len("Aug 10 15:36:05")
		if line[3] != ' ' {
			return nil, time.Time{}, false, false
		}
		t, err := time.ParseInLocation("Jan _2 15:04:05", line[:n], c.local)
		if err != nil {
			return nil, time.Time{}, false, false
		}
		if n < len(line) && line[n] == '.' {
			end := n + 1
			for end < len(line) && line[end] >= '0' && line[end] <= '9' {
				end++
			}
			d, _ := seconds("0" + line[n:end])
			t, n = t.Add(d), end
		}
		return cut(n), c.withYear(t), false, true
	}
	if line[0] < '0' || line[0] > '9' {
		return nil, time.Time{}, false, false
	}
	sp := strings.IndexByte(line, ' ')
	if sp < 0 {
		return nil, time.Time{}, false, false
	}
	word, spaced := line[:sp], false
	if sp == len("2026-03-02") && len(line) >= len("2026-03-02 10:11:12") && line[4] == '-' { // a space for the T: templates of rsyslog's
		end := strings.IndexByte(line[sp+1:], ' ')
		if end < 0 {
			return nil, time.Time{}, false, false
		}
		spaced = true
		word, sp = line[:sp]+"T"+line[sp+1:sp+1+end], sp+1+end
	}
	if len(word) > 10 && word[10] == '.' {
		if d, ok := seconds(word); ok { // short-unix
			return cut(sp), time.Unix(0, 0).Add(d).UTC(), false, true
		}
	}
	if len(word) < len("2026-03-02T10:11:12") || word[4] != '-' || word[10] != 'T' {
		return nil, time.Time{}, false, false
	}
	comma = word[19:] != "" && word[19] == ',' && !spaced
	for _, layout := range [...]string{"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05-0700"} {
		if t, err := time.Parse(layout, word); err == nil { // a fraction is read too, after a comma or a full stop
			return cut(sp), t.UTC(), comma, true
		}
	}
	if t, err := time.ParseInLocation("2006-01-02T15:04:05", word, c.local); err == nil {
		return cut(sp), t.UTC(), comma, true
	}
	return nil, time.Time{}, false, false
}

// full reads journalctl -o short-full: weekday, date, time and zone by name. A zone that has no fixed meaning is taken for
// the local one.
func (c *clock) full(line string, b []byte) (rest []byte, at time.Time, comma, ok bool) {
	f := strings.SplitN(line, " ", 5)
	if len(f) < 5 {
		return nil, time.Time{}, false, false
	}
	loc := c.local
	if f[3] == "UTC" || f[3] == "GMT" {
		loc = time.UTC
	}
	t, err := time.ParseInLocation("2006-01-02 15:04:05", f[1]+" "+f[2], loc)
	if err != nil {
		return nil, time.Time{}, false, false
	}
	n := len(f[0]) + len(f[1]) + len(f[2]) + len(f[3]) + 4
	return b[n:], t.UTC(), false, true
}

// withYear gives a time its year: the last in which it is not in the future and, from then on, the next whenever December
// is followed by January. A log that spans more than a year without a line in between is taken for a shorter one.
func (c *clock) withYear(t time.Time) time.Time {
	if c.year == 0 {
		c.year = c.now.In(c.local).Year()
		if in(t, c.year).After(c.now.Add(24 * time.Hour)) {
			c.year--
		}
	} else if t.Month() < c.month-6 {
		c.year++
	}
	c.month = t.Month()
	return in(t, c.year).UTC()
}

func in(t time.Time, year int) time.Time {
	return time.Date(year, t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), t.Location())
}
