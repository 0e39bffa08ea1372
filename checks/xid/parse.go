package xid

import (
	"strconv"
	"strings"

	"github.com/assay-gpu/assay/checks"
)

// Parse reads one line, or one kmsg record, of the kernel log. It reports false for a line that names no fault of a GPU
// or NVSwitch, and for one too damaged to tell which: see ParseDamaged. Of several in one line it reads the first: see Cut.
// The line may start with any prefix that dmesg, syslog, journald or kmsg puts before the message. Parse never panics,
// whatever the bytes, and allocates nothing for a line it refuses.
func Parse(line string) (Event, bool) {
	if i := strings.IndexByte(line, '\n'); i >= 0 {
		line = line[:i] // what follows is the device dictionary of a kmsg record
	}
	i := strings.Index(line, "Xid (")
	if i < 0 {
		return parseProse(line)
	}
	isSwitch := i > 0 && line[i-1] == 'S'
	if !isSwitch && !afterNVRM(line[:i]) {
		return Event{}, false
	}
	e := Event{Switch: isSwitch, Link: -1}
	place, rest, ok := strings.Cut(line[i+len("Xid ("):], ")")
	if !ok {
		return Event{}, false
	}
	code, text, ok := parseCode(rest)
	if !ok {
		return Event{}, false
	}
	e.Code = code
	e.PCI, e.MIG = parsePlace(place)
	if isSwitch && e.PCI == "" && tag(line, i) < 0 {
		return Event{}, false
	}
	e.Raw = clean(line, maxRaw)
	if isSwitch {
		e.parseSwitchText(clean(text, maxRaw))
	} else {
		e.parseText(clean(firstLine(text), maxRaw))
	}
	return e, true
}

// afterNVRM reports whether the text before Xid ends in the driver's tag. It and parseCode insist on the driver's spaces: what
// is left then is longer than the 15 bytes of a process's name, which its user chooses and the kernel prints.
func afterNVRM(before string) bool {
	tag := strings.TrimRight(before, " \t")
	return len(tag) < len(before) && strings.HasSuffix(tag, "NVRM:")
}

// parseCode reads ": 79" and what follows the next comma.
func parseCode(s string) (code int, rest string, ok bool) {
	s, ok = strings.CutPrefix(s, ": ")
	if !ok {
		return 0, "", false
	}
	s = strings.TrimLeft(s, " ")
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	if n == 0 || n > 9 {
		return 0, "", false
	}
	code, err := strconv.Atoi(s[:n])
	if err != nil || code == 0 {
		return 0, "", false
	}
	s = strings.TrimRight(s[n:], " \t\r\x00")
	switch {
	case s == "":
	case s[0] == ',':
		s = strings.TrimLeft(s[1:], " ")
	case s[0] == ' ':
		s = strings.TrimLeft(s, " ")
	default:
		return 0, "", false
	}
	return code, s, true
}

// parsePlace reads "PCI:0000:3b:00 GPU-I:03 GPU-CI:00". What cannot be read stays empty.
func parsePlace(s string) (pci, mig string) {
	var gi, ci string
	for s != "" {
		var f string
		f, s, _ = strings.Cut(strings.TrimLeft(s, " "), " ")
		switch {
		case strings.HasPrefix(f, "GPU-I:"):
			gi = instance(f[len("GPU-I:"):])
		case strings.HasPrefix(f, "GPU-CI:"):
			ci = instance(f[len("GPU-CI:"):])
		case pci == "":
			pci = checks.PCIAddress(f)
		}
	}
	switch {
	case gi == "":
		return pci, ""
	case ci == "":
		return pci, gi
	}
	return pci, gi + "/" + ci
}

// instance reads a MIG instance number; empty when there is none.
func instance(s string) string {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || n == noInstance {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

// clean cuts s to n bytes of valid UTF-8 without a trailing line end.
func clean(s string, n int) string {
	s = strings.TrimRight(s, "\r\x00")
	if len(s) > n {
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
