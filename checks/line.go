package checks

import "strings"

// maxLine bounds what is kept of one line, in bytes. The kernel's own limit for a record is 1 KiB.
const maxLine = 1024

// OneLine makes of s, part of a log line, what a finding may carry: at most 1 KiB of valid text without a line end.
func OneLine(s string) string {
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		s = s[:i]
	}
	s = strings.TrimRight(s, "\r\x00")
	if len(s) > maxLine {
		s = s[:maxLine]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
