package topo

import "strings"

// A line is one logical line of a Slurm configuration file: its assignments, in order.
type line struct {
	at   int // number of the physical line it starts on
	keys []key
}

type key struct{ name, value string } // name in lower case

// lines cuts text as Slurm's parser does: # starts a comment unless escaped, a backslash at the end joins the next line,
// keys are case-blind, values may be quoted, blanks and tabs separate. Words without an equal sign are faults.
func lines(text string, fault func(at int, format string, args ...any)) []line {
	var out []line
	at, start, joined := 0, 0, ""
	for raw := range strings.Lines(text) {
		at++
		if joined == "" {
			start = at
		}
		s := strings.TrimRight(uncomment(raw), " \t\r\n")
		if rest, ok := strings.CutSuffix(s, `\`); ok {
			joined += rest // nothing between: a list may be cut anywhere
			continue
		}
		l := line{at: start}
		for i, w := range words(joined + s) {
			if i == 0 && strings.EqualFold(w, "include") {
				fault(start, "another file that this line includes is not read: put its lines here")
				break
			}
			k, v, ok := strings.Cut(w, "=")
			if !ok || k == "" {
				fault(start, "%q is no assignment; want Key=Value", clip(w))
				continue
			}
			l.keys = append(l.keys, key{strings.ToLower(k), strings.ReplaceAll(v, `"`, "")})
		}
		joined = ""
		if len(l.keys) > 0 {
			out = append(out, l)
		}
	}
	if strings.TrimSpace(joined) != "" {
		fault(start, "the file ends in a line that a backslash continues")
	}
	return out
}

// uncomment cuts s at the first # that no backslash precedes.
func uncomment(s string) string {
	for i := range len(s) {
		if s[i] == '#' && (i == 0 || s[i-1] != '\\') {
			return s[:i]
		}
	}
	return s
}

// words splits at blanks outside quotes.
func words(s string) []string {
	quoted := false
	return strings.FieldsFunc(s, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return !quoted && (r == ' ' || r == '\t' || r == '\r' || r == '\n')
	})
}

// clip keeps a hostile line from filling a screen.
func clip(s string) string {
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return s
}
