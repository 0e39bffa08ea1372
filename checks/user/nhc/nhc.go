// Package nhc reads the configuration of LBNL's Node Health Check (mej/nhc) and says what of it assay does by itself, what can go
// on as a user check, and what cannot be taken over and why.
//
// A line is `MASK || CHECK`: the mask says on which hosts, by glob, /regular expression/ or {ranges}, with a leading ! for all
// others; the check is a shell command, mostly one of NHC's functions, or sets variables. Grammar and quirks are those of
// nhc_load_conf, mcheck and mcheck_range in NHC 1.5's scripts/common.nhc.
package nhc

import (
	"strings"
)

// A Line is one line of a configuration that means something: comments and empty lines are left out.
type Line struct {
	Number int    // of the first of the file's lines that it stands on
	Text   string // as it stands, continuations joined
	Mask   Mask
	Check  string   // the command as it stands; empty when NHC ignores the line
	Words  []string // the command's words, quotes taken off; nil when only a shell can say what they are
	Sets   []Set    // the variables that it sets, when that is all that it does
}

// A Set is a variable's assignment, with the value as it stands in the file.
type Set struct{ Name, Value string }

// Parse reads a configuration. Everything is a configuration: what NHC would ignore or choke on is a line with a fault in its
// mask, or without a check.
func Parse(text string) []Line {
	var out []Line
	var joined string
	first := 0
	n := 0
	add := func() {
		if l, ok := parseLine(joined); ok {
			l.Number = first
			out = append(out, l)
		}
		joined, first = "", 0
	}
	for raw := range strings.Lines(text) {
		n++
		raw = strings.TrimRight(raw, "\r\n")
		if first == 0 {
			first = n
		}
		// read without -r joins a line that ends in a backslash with the next.
		if strings.HasSuffix(raw, `\`) && !strings.HasSuffix(raw, `\\`) {
			joined += strings.TrimSuffix(raw, `\`)
			continue
		}
		joined += raw
		add()
	}
	if joined != "" {
		add()
	}
	return out
}

func parseLine(text string) (Line, bool) {
	l := Line{Text: strings.Trim(text, " \t")}
	target, check, ok := strings.Cut(l.Text, "||")
	target = strings.Trim(target, " \t")
	if target == "" && (!ok || strings.Trim(check, " \t") == "") || strings.HasPrefix(target, "#") {
		return l, false
	}
	l.Mask = parseMask(target)
	if !ok {
		l.Mask.Fault = "it has no ||, so NHC takes the whole line for a host's name and runs nothing"
		return l, true
	}
	l.Check = strings.Trim(check, " \t")
	switch {
	case target == "":
		l.Mask.Fault = "it has no mask, so NHC ignores it"
	case l.Check == "":
		l.Mask.Fault = "it has no check, so NHC ignores it"
	}
	words, plain := split(l.Check)
	if sets, only := assignments(words, l.Check); only {
		l.Sets = sets
	} else if plain {
		l.Words = make([]string, len(words))
		for i, w := range words {
			l.Words[i] = w.text
		}
	}
	return l, true
}

// word is one word of a command: what it is to the program, and as it stands.
type word struct{ text, raw string }

// split cuts a command into words as a shell does. plain reports that no shell is needed to know them: nothing is expanded,
// piped or redirected. A comment at the end is left out.
func split(s string) (words []word, plain bool) {
	plain = true
	for i := 0; i < len(s); {
		if s[i] == ' ' || s[i] == '\t' {
			i++
			continue
		}
		if s[i] == '#' {
			break
		}
		start := i
		var b strings.Builder
		for i < len(s) && s[i] != ' ' && s[i] != '\t' {
			switch c := s[i]; c {
			case '\'':
				end := strings.IndexByte(s[i+1:], '\'')
				if end < 0 {
					return append(words, word{b.String() + s[i+1:], s[start:]}), false
				}
				b.WriteString(s[i+1 : i+1+end])
				i += end + 2
			case '"':
				i++
				for i < len(s) && s[i] != '"' {
					if s[i] == '$' || s[i] == '`' {
						plain = false
					}
					if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("\"\\$`", s[i+1]) >= 0 {
						i++
					}
					b.WriteByte(s[i])
					i++
				}
				if i >= len(s) {
					return append(words, word{b.String(), s[start:]}), false
				}
				i++
			case '\\':
				i++
				if i < len(s) {
					b.WriteByte(s[i])
					i++
				}
			default:
				if strings.IndexByte("$`|&;<>()*?[{~!", c) >= 0 {
					plain = false
				}
				b.WriteByte(c)
				i++
			}
		}
		words = append(words, word{b.String(), s[start:i]})
	}
	return words, plain
}

// assignments gives the variables that a command sets, and whether it does nothing else.
func assignments(words []word, command string) ([]Set, bool) {
	if len(words) > 0 && words[0].raw == "export" {
		words = words[1:]
	}
	if strings.ContainsAny(command, "`;|&<>") {
		return nil, false // it may run something
	}
	var out []Set
	for _, w := range words {
		name, value, ok := strings.Cut(w.raw, "=")
		if !ok || !variable(name) || strings.Contains(value, "$(") {
			return nil, false
		}
		out = append(out, Set{name, value})
	}
	return out, len(out) > 0
}

func variable(s string) bool {
	for i, c := range s {
		if c != '_' && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
