package checks

import (
	"strconv"
	"strings"
)

// PCIAddress brings a PCI address into the form 0000:3b:00.0, whatever of prefix, domain width, letter case and function
// it came with; empty when s is none.
func PCIAddress(s string) string {
	s = strings.TrimPrefix(s, "PCI:")
	s, fn, hasFn := strings.Cut(s, ".")
	if !hasFn {
		fn = "0"
	}
	var domain uint64
	if strings.Count(s, ":") == 2 {
		d, rest, _ := strings.Cut(s, ":")
		v, err := strconv.ParseUint(d, 16, 32)
		if err != nil {
			return ""
		}
		domain, s = v, rest
	}
	bus, dev, ok := strings.Cut(s, ":")
	if !ok || !hexByte(bus) || !hexByte(dev) || len(fn) != 1 || fn[0] < '0' || fn[0] > '7' {
		return ""
	}
	var b [16]byte
	out := b[:0]
	digits := strconv.AppendUint(nil, domain, 16)
	for range 4 - min(4, len(digits)) {
		out = append(out, '0')
	}
	out = append(out, digits...)
	for _, part := range [2]string{bus, dev} {
		out = append(out, ':')
		if len(part) == 1 {
			out = append(out, '0')
		}
		out = append(out, part...)
	}
	out = append(out, '.', fn[0])
	return strings.ToLower(string(out))
}

func hexByte(s string) bool {
	if len(s) < 1 || len(s) > 2 {
		return false
	}
	_, err := strconv.ParseUint(s, 16, 8)
	return err == nil
}
