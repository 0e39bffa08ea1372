// Package slurmconf reads slurm.conf and judges whether assay's hooks can work under it. It is pure: files come
// through functions, and findings are values. It imports neither fmt nor os, as the hook that carries it must
// start in a millisecond.
//
// Source: Slurm 22.05, slurm.conf(5), and how its slurmctld reads odd lines.
package slurmconf

import (
	"path"
	"strconv"
	"strings"
)

// A Value is one setting and the line it is from.
type Value struct {
	Key  string // as written; keys differ in more than case
	Text string // without quotation marks
	File string
	Line int // of its first physical line, from 1
}

// Where is the value's place as file:line, or "" for a setting that is not there.
func (v Value) Where() string {
	if v.File == "" {
		return ""
	}
	return v.File + ":" + strconv.Itoa(v.Line)
}

// A Problem is a line that could not be read or an included file that could not be had.
type Problem struct {
	File string
	Line int
	Text string
}

// A Config is what a slurm.conf and the files it includes set.
type Config struct {
	File     string
	Values   []Value
	Problems []Problem
}

// Get returns the setting in force: of several, slurmctld takes the last.
func (c Config) Get(key string) (Value, bool) {
	for i := len(c.Values) - 1; i >= 0; i-- {
		if strings.EqualFold(c.Values[i].Key, key) {
			return c.Values[i], true
		}
	}
	return Value{}, false
}

// Count returns how often key is set.
func (c Config) Count(key string) int {
	n := 0
	for _, v := range c.Values {
		if strings.EqualFold(v.Key, key) {
			n++
		}
	}
	return n
}

const (
	maxDepth = 8     // of Include in Include
	maxFiles = 1_000 // included in all; a file that includes itself twice would otherwise double at each level
)

// Parse reads file and all it includes through read. It returns what could be read in any case; Problems tells the rest.
func Parse(file string, read func(path string) ([]byte, error)) Config {
	p := parser{read: read, dir: path.Dir(file)}
	p.c.File = file
	p.file(file, 0, Value{})
	return p.c
}

type parser struct {
	c       Config
	read    func(string) ([]byte, error)
	dir     string
	cluster string // ClusterName so far, for %c
	files   int
}

func (p *parser) problem(file string, line int, text string) {
	p.c.Problems = append(p.c.Problems, Problem{file, line, text})
}

func (p *parser) file(name string, depth int, from Value) {
	at := func(text string) {
		if from.File == "" {
			p.problem(name, 0, text)
		} else {
			p.problem(from.File, from.Line, text)
		}
	}
	if depth > maxDepth {
		at("Include of " + name + " is nested more than " + strconv.Itoa(maxDepth) + " deep: a file that includes itself?")
		return
	}
	if p.files++; p.files > maxFiles {
		if p.files == maxFiles+1 {
			at("more than " + strconv.Itoa(maxFiles) + " files included: the rest is not read")
		}
		return
	}
	data, err := p.read(name)
	if err != nil {
		at("cannot read " + name + ": " + err.Error())
		return
	}
	joined, first, number := "", 0, 0
	flush := func() {
		if joined != "" {
			p.line(name, first, joined, depth)
		}
		joined = ""
	}
	for raw := range strings.Lines(string(data)) {
		number++
		text := uncomment(strings.TrimRight(raw, "\r\n"))
		if joined == "" {
			first = number
		}
		if rest, more := strings.CutSuffix(text, `\`); more {
			joined += rest
			if joined == "" {
				joined = " "
			}
			continue
		}
		joined += text
		flush()
	}
	flush()
}

// uncomment cuts a line at its first # that no backslash escapes.
func uncomment(s string) string {
	if !strings.Contains(s, "#") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && s[i+1] == '#':
			b.WriteByte('#')
			i++
		case s[i] == '#':
			return b.String()
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// lineKeys open a line whose other pairs belong to the thing it names, and set nothing for the cluster.
var lineKeys = [...]string{"NodeName", "PartitionName", "FrontendName", "NodeSet", "DownNodes", "SwitchName"}

// line reads one logical line: an Include or KEY=VALUE pairs.
func (p *parser) line(file string, number int, s string, depth int) {
	s = strings.Trim(s, " \t")
	if len(s) > len("include") && strings.EqualFold(s[:len("include")], "include") && (s[len("include")] == ' ' || s[len("include")] == '\t') {
		name := strings.ReplaceAll(strings.Trim(s[len("include"):], " \t"), "%c", p.cluster)
		if !path.IsAbs(name) {
			name = path.Join(p.dir, name)
		}
		p.file(name, depth+1, Value{File: file, Line: number})
		return
	}
	for n := 0; s != ""; n++ {
		key, value, rest, ok := pair(s)
		if !ok {
			p.problem(file, number, "not KEY=VALUE: "+clip(s))
			return
		}
		p.c.Values = append(p.c.Values, Value{Key: key, Text: value, File: file, Line: number})
		if strings.EqualFold(key, "ClusterName") {
			p.cluster = strings.ToLower(value)
		}
		if n == 0 {
			for _, k := range lineKeys {
				if strings.EqualFold(k, key) {
					return
				}
			}
		}
		s = rest
	}
}

// pair splits KEY=VALUE or KEY="VALUE" off s. White space may stand around the sign, which may also be +=, -=, *= or /=.
func pair(s string) (key, value, rest string, ok bool) {
	end := 0
	for end < len(s) && (s[end] == '_' || s[end] == '.' || s[end] >= '0' && s[end] <= '9' || s[end]|0x20 >= 'a' && s[end]|0x20 <= 'z') {
		end++
	}
	key, s = s[:end], strings.TrimLeft(s[end:], " \t")
	if len(s) > 0 && strings.IndexByte("-*+/", s[0]) >= 0 {
		s = s[1:]
	}
	if key == "" || len(s) == 0 || s[0] != '=' {
		return "", "", "", false
	}
	s = strings.TrimLeft(s[1:], " \t")
	if strings.HasPrefix(s, `"`) {
		value, rest, ok = strings.Cut(s[1:], `"`)
		if !ok || rest != "" && rest[0] != ' ' && rest[0] != '\t' {
			return "", "", "", false
		}
		return key, value, strings.TrimLeft(rest, " \t"), true
	}
	end = strings.IndexAny(s, " \t")
	if end < 0 {
		end = len(s)
	}
	if end == 0 {
		return "", "", "", false
	}
	return key, s[:end], strings.TrimLeft(s[end:], " \t"), true
}

// clip shortens a quoted line for a message.
func clip(s string) string {
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return s
}
