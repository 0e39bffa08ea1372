package xid

import (
	"strconv"
	"strings"

	"github.com/assay-gpu/assay/checks"
)

const (
	causedBy = " caused by previous Xid "
	onLink   = " on link "
)

// parseText reads what follows an XID's number: pid and name where the driver knew them, then the message.
func (e *Event) parseText(s string) {
	if v, ok := strings.CutPrefix(s, "pid="); ok {
		pid, rest, _ := strings.Cut(v, ",")
		e.PID = processID(pid)
		s = strings.TrimLeft(rest, " ")
	}
	if v, ok := strings.CutPrefix(s, "name="); ok {
		name, rest, _ := strings.Cut(v, ", ")
		if bare := strings.Trim(name, "'"); bare != "<unknown>" {
			e.Name = name
		}
		s = rest
	}
	if i := strings.LastIndex(s, causedBy); i >= 0 {
		e.Cause = leadingNumber(s[i+len(causedBy):])
	}
	e.Text = s
	switch {
	case isNVLink5(e.Code):
		e.parseNVLink5()
	case e.Code == 74:
		if i := strings.LastIndex(s, onLink); i >= 0 && leadingDigits(s[i+len(onLink):]) > 0 {
			e.Link = leadingNumber(s[i+len(onLink):])
		}
	case e.Code == 14:
		e.Injected = true
	}
}

func processID(s string) int {
	n, err := strconv.Atoi(strings.Trim(s, "' "))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// leadingNumber reads the digits that s starts with; 0 when there are none or too many.
func leadingNumber(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	v, err := strconv.Atoi(s[:n])
	if err != nil || n > 9 {
		return 0
	}
	return v
}

func severity(word string) Severity {
	switch strings.ToLower(word) {
	case "fatal":
		return Fatal
	case "nonfatal", "non-fatal":
		return NonFatal
	}
	return Unsaid
}

// linkNumber reads a link's number, which may be padded with zeros; -1 is the driver's word for none.
func linkNumber(s string) int {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil {
		return -1
	}
	return int(n)
}

// parseSwitchText reads what follows an SXid's number: "Fatal, Link 28 sourcetrack timeout error (First)", or a row of
// data on the SXid before it.
func (e *Event) parseSwitchText(s string) {
	e.Text = s
	if strings.HasPrefix(s, "Severity ") || strings.HasPrefix(s, "Data {") {
		e.Detail = true
		return
	}
	word, rest, _ := strings.Cut(s, ",")
	if e.Fatal = severity(word); e.Fatal != Unsaid {
		s = strings.TrimLeft(rest, " ")
		e.Text = s
	}
	if v, ok := strings.CutPrefix(s, "Link "); ok {
		n, _, _ := strings.Cut(v, " ")
		e.Link = linkNumber(n)
	}
}

// parseProse reads the sentences that name a fault without the driver's grammar: a GPU off the bus, and the fabric
// manager's word for an SXid.
func parseProse(line string) (Event, bool) {
	if i := strings.Index(line, "fallen off the bus"); i >= 0 {
		return parseFallen(line, i)
	}
	const fm = "detected NVSwitch "
	if i := strings.Index(line, fm); i >= 0 {
		return parseFabricManager(line, line[i+len(fm):])
	}
	return Event{}, false
}

func parseFallen(line string, at int) (Event, bool) {
	nvrm := strings.Index(line, "NVRM:")
	if nvrm < 0 || nvrm > at {
		return Event{}, false
	}
	e := Event{Code: FellOffBus, Link: -1, Prose: true, Raw: clean(line, maxRaw)}
	e.Text = clean(strings.TrimSpace(line[nvrm+len("NVRM:"):]), maxRaw)
	for f := range strings.FieldsSeq(line[nvrm:at]) {
		if a := checks.PCIAddress(strings.TrimRight(firstLine(f), ":,)")); a != "" {
			e.PCI = a
			break
		}
	}
	return e, true
}

// newlines are the ways in which a line break within one record is written: by the kernel, by journald's short form, by
// rsyslog.
var newlines = [...]string{`\x0a`, `\n`, "#012"}

// firstLine cuts s where the message went on in another line.
func firstLine(s string) string {
	for _, n := range newlines {
		if i := strings.Index(s, n); i >= 0 {
			s = s[:i]
		}
	}
	return s
}

// parseFabricManager reads "fatal error 20034 on fid 0 on NVSwitch pci bus id 00000000:86:00.0 physical id 3 port 33".
func parseFabricManager(line, s string) (Event, bool) {
	word, rest, _ := strings.Cut(s, " ")
	v, ok := strings.CutPrefix(rest, "error ")
	if !ok {
		return Event{}, false
	}
	e := Event{Switch: true, Code: leadingNumber(v), Link: -1, Fatal: severity(word), Prose: true, Raw: clean(line, maxRaw), Text: clean(s, maxRaw)}
	if e.Code == 0 || e.Fatal == Unsaid {
		return Event{}, false
	}
	if _, after, ok := strings.Cut(v, "pci bus id "); ok {
		a, tail, _ := strings.Cut(after, " ")
		e.PCI = checks.PCIAddress(a)
		if _, port, ok := strings.Cut(tail, "port "); ok {
			if n := linkNumber(strings.TrimSpace(port)); n >= 0 {
				e.Port = strconv.Itoa(n)
			}
		}
	}
	return e, true
}
