package xid

import (
	"strings"

	"github.com/assay-gpu/assay/checks"
)

// ParseDamaged reads a line that holds an XID or SXid whose number cannot be told: the line ends before it, or something else
// stands there. It reports false for a line that Parse reads, and for one in which the driver's tag stands within another's
// words, such as a process that is named so. The event has the code 0.
func ParseDamaged(line string) (Event, bool) {
	if i := strings.IndexByte(line, '\n'); i >= 0 {
		line = line[:i]
	}
	line = strings.TrimRight(line, " \t\r\x00")
	i := strings.Index(line, "Xid (")
	if i < 0 {
		return Event{}, false
	}
	e := Event{Switch: i > 0 && line[i-1] == 'S', Link: -1}
	if begin := tag(line, i); begin < 0 || begin > 0 && strings.IndexByte(" ;>]", line[begin-1]) < 0 {
		return Event{}, false
	}
	place, rest, whole := strings.Cut(line[i+len("Xid ("):], ")")
	if _, _, ok := parseCode(rest); whole && ok {
		return Event{}, false
	}
	if whole {
		if !strings.Contains(place, ":") || len(place) < len("00:00") {
			return Event{}, false // no address of the driver's; a process's name has no room for one
		}
		e.PCI, e.MIG = parsePlace(place)
		e.Text = clean(strings.TrimLeft(strings.TrimPrefix(rest, ":"), " "), maxRaw)
	} else if strings.Trim(place, "PI:GU.- 0123456789abcdefABCDEF") != "" || len(place) > len("PCI:00000000:00:00.0 GPU-I:00 GPU-CI:00") {
		return Event{}, false // a sentence, not an address that was cut
	}
	e.Raw = checks.OneLine(line)
	return e, true
}

// tag gives where the driver's name before the "Xid (" at i begins; -1 where there is none that counts.
func tag(line string, i int) int {
	before := line[:i]
	if strings.HasSuffix(before, "S") {
		before = strings.TrimRight(before[:len(before)-1], " \t")
		name := before[strings.LastIndexAny(before, " ;>]")+1:]
		if strings.HasPrefix(name, "nvidia-nvswitch") && strings.HasSuffix(name, ":") {
			return len(before) - len(name)
		}
		return -1
	}
	if before = strings.TrimRight(before, " \t"); strings.HasSuffix(before, "NVRM:") {
		return len(before) - len("NVRM:")
	}
	return -1
}

// Cut gives where in a line a second XID or SXid begins, with the driver's name before it; -1 when there is none. Two lines
// run together where a console, a relay or a full buffer lost the end of the first, and where a record holds line breaks. What
// counts has an address: the process's name in a line is its user's choice, and has no room for one.
func Cut(line string) int {
	first := strings.Index(line, "Xid (")
	if first < 0 {
		return -1
	}
	for at := first + len("Xid ("); ; {
		n := strings.Index(line[at:], "Xid (")
		if n < 0 {
			return -1
		}
		i := at + n
		at = i + len("Xid (")
		place, _, whole := strings.Cut(line[at:], ")")
		begin := tagInside(line, i)
		if !whole || begin <= first {
			continue
		}
		if pci, _ := parsePlace(place); pci != "" && strings.Count(place, ":") >= 2 {
			return begin
		}
	}
}

// tagInside is tag for a line that may have run into another in the middle of a word.
func tagInside(line string, i int) int {
	if !strings.HasSuffix(line[:i], "S") {
		return tag(line, i)
	}
	begin := strings.LastIndex(line[:i], "nvidia-nvswitch")
	if begin >= 0 && i-begin <= len("nvidia-nvswitch000: S") {
		return begin
	}
	return -1
}
