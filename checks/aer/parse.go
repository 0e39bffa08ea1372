package aer

import (
	"strconv"
	"strings"

	"github.com/assay-gpu/assay/checks"
)

// Parse reads one line of the kernel log, with any prefix. It reports false for a line that is none of the AER driver's, or
// that says no more than that all is set up. It never panics, and allocates nothing for a line it refuses.
func Parse(line string) (Event, bool) {
	if i := strings.IndexByte(line, '\n'); i >= 0 {
		line = line[:i]
	}
	line = strings.TrimRight(line, "\r\x00") // as what is kept of it
	var e Event
	var at int // where what the device says begins
	ok := false
	switch {
	case find(line, "PCIe Bus Error: ", &at):
		ok = e.parseFound(line[at+len("PCIe Bus Error: "):])
	case find(line, "aer_status: ", &at):
		e.Kind, ok = Found, true // firmware speaks; its own record has the severity
	case find(line, "no AER-aware driver", &at):
		at, e.Kind, ok = strings.LastIndex(line[:at], "device has"), Below, true
	case find(line, "can't recover (no error_detected callback)", &at):
		e.Kind, ok = Below, strings.HasSuffix(line[:at], "AER: ") // others than the AER driver recover, and fail to
	case find(line, "evice recovery failed", &at):
		at, e.Kind = at-1, Unrecovered
		ok = at >= 0 && strings.HasSuffix(line[:at], "AER: ")
	case find(line, "DPC: containment event", &at):
		e.Kind, e.Severity, ok = Received, Fatal, true // the port has taken its link down, whatever the error was
		if _, source, said := strings.Cut(line[at:], "received from "); said {
			e.Source = checks.PCIAddress(source)
		}
	case find(line, "AER: ", &at):
		ok = e.parseReceived(line[at+len("AER: "):])
	case find(line, ":    [", &at):
		at++
		ok = e.parseBit(line[at:])
	}
	if !ok || at < 0 {
		return Event{}, false
	}
	if e.Driver, e.Device, ok = speaker(line[:at]); !ok {
		return Event{}, false
	}
	if id, old := strings.CutPrefix(e.Source, "id="); old {
		e.Source = fromID(id, e.Device)
	}
	if strings.HasSuffix(e.Source, ":00:00.0") {
		e.Source = "" // the port was not told: any device below it
	}
	e.Raw = checks.OneLine(line)
	return e, true
}

func find(line, what string, at *int) bool {
	*at = strings.Index(line, what)
	return *at >= 0
}

// speaker reads "… pcieport 0000:00:02.0: AER: ": who speaks, before what is said.
func speaker(before string) (driver, device string, ok bool) {
	before = strings.TrimSuffix(strings.TrimRight(before, " "), "AER:")
	before = strings.TrimRight(before, " ")
	before, ok = strings.CutSuffix(before, ":")
	i := strings.LastIndexAny(before, " ;") // a raw record's head ends in a semicolon
	if !ok || strings.Count(before[i+1:], ":") != 2 {
		return "", "", false
	}
	if device = checks.PCIAddress(before[i+1:]); device == "" {
		return "", "", false
	}
	if i > 0 && before[i] == ' ' {
		driver = before[:i]
		driver = checks.OneLine(driver[strings.LastIndexAny(driver, " ;")+1:])
	}
	return driver, device, true
}

// parseReceived reads "Multiple Corrected error received: 0000:00:00.0" and its later wordings.
func (e *Event) parseReceived(s string) bool {
	s, e.Multiple = strings.CutPrefix(s, "Multiple ")
	var ok bool
	if e.Severity, s, ok = severity(s); !ok {
		return false
	}
	s, ok = strings.CutPrefix(s, " error ")
	s = strings.TrimPrefix(s, "message ")
	if s, ok2 := strings.CutPrefix(s, "received"); ok && ok2 {
		s = strings.TrimPrefix(strings.TrimPrefix(s, ":"), " from")
		s, _, _ = strings.Cut(strings.TrimLeft(s, " "), " ")
		if strings.HasPrefix(s, "id=") {
			e.Source = s
		} else {
			e.Source = checks.PCIAddress(s)
		}
		return true
	}
	return false
}

// parseFound reads "severity=Uncorrected (Fatal), type=Transaction Layer, id=0010(Receiver ID)".
func (e *Event) parseFound(s string) bool {
	e.Kind = Found
	s, ok := strings.CutPrefix(s, "severity=")
	if !ok {
		return false
	}
	if e.Severity, s, ok = severity(s); !ok {
		return false
	}
	if _, v, ok := strings.Cut(s, "type="); ok {
		v, _, _ = strings.Cut(v, ",")
		e.Layer = checks.OneLine(v)
	}
	if _, v, ok := strings.Cut(s, " id="); ok && len(v) >= 4 {
		e.Source = "id=" + v[:4]
	}
	return true
}

// parseBit reads "   [ 5] Surprise Down Error    (First)".
func (e *Event) parseBit(s string) bool {
	_, s, _ = strings.Cut(s, "[")
	n, name, ok := strings.Cut(s, "] ")
	if _, err := strconv.ParseUint(strings.TrimLeft(n, " "), 10, 5); !ok || err != nil {
		return false
	}
	name, _, _ = strings.Cut(name, "  ")
	e.Kind, e.Bit = Bit, checks.OneLine(strings.TrimSpace(name))
	return e.Bit != ""
}

func severity(s string) (sev Severity, rest string, ok bool) {
	for _, w := range [...]string{"Corrected", "Correctable"} {
		if rest, ok := strings.CutPrefix(s, w); ok {
			return Corrected, rest, true
		}
	}
	for _, w := range [...]string{"Uncorrected", "Uncorrectable"} {
		rest, ok := strings.CutPrefix(s, w)
		if !ok {
			continue
		}
		if rest, ok := strings.CutPrefix(rest, " (Fatal)"); ok {
			return Fatal, rest, true
		}
		rest, _ = strings.CutPrefix(rest, " (Non-Fatal)")
		return NonFatal, rest, true
	}
	return Unsaid, s, false
}

// fromID reads a requester id, as 0010 for bus 0, device 2, function 0, in the domain of the device that speaks.
func fromID(id, device string) string {
	id, _, _ = strings.Cut(id, "(")
	v, err := strconv.ParseUint(id, 16, 16)
	if err != nil {
		return ""
	}
	domain, _, _ := strings.Cut(device, ":")
	const hex = "0123456789abcdef"
	b := []byte(domain + ":bb:dd.f")
	n := len(domain)
	bus, dev, fn := v>>8, v>>3&31, v&7
	b[n+1], b[n+2], b[n+4], b[n+5], b[n+7] = hex[bus>>4], hex[bus&15], hex[dev>>4], hex[dev&15], hex[fn]
	return string(b)
}
