package dcgm

import (
	"regexp"
	"strconv"
	"strings"
)

// The table that dcgmi prints for people. A cell's text runs over several rows, in which the first column is empty.
//
//	| memory                    | Pass                                           |    since 4.0: a row for each entity follows
//	|                           | GPU0: Pass                                     |
//	| Warning: GPU0             | Insufficient memory was allocated …            |
//	| GPU Memory                | Fail - GPU: 0                                  |    2.x and 3.x
//	| Warning                   | GPU 0 …                                        |
var (
	tableRow     = regexp.MustCompile(`^[|+](.+)[|+](.+)[|+]\s*$`)
	tableSection = regexp.MustCompile(`^-{3,}\s+(.+?)\s+-{3,}$`)
	tableEntity  = regexp.MustCompile(`^([A-Z]+) ?(\d{1,4}): (\w+)$`)
	tableResult  = regexp.MustCompile(`^(Pass|Fail|Warn|Skip)(?: - (.*))?$`)
	tableNote    = regexp.MustCompile(`^(Warning|Info|Error)(?:: ?([A-Z]+) ?(\d{1,4}))?$`)
	someDigits   = regexp.MustCompile(`\d{1,3}`)
)

// parseTable reads the table; false when the text holds none.
func parseTable(text string) (*parser, bool) {
	if !strings.Contains(text, "Diagnostic") || !strings.Contains(text, "| Result") {
		return nil, false
	}
	t := tableParser{p: &parser{}}
	for line := range strings.Lines(text) {
		m := tableRow.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		if m == nil {
			continue
		}
		left, right := strings.TrimSpace(m[1]), strings.TrimSpace(m[2])
		if s := tableSection.FindStringSubmatch(left); s != nil {
			t.flush()
			t.section, t.test = s[1], nil
			continue
		}
		if strings.Trim(left, "-=") != "" || strings.Trim(right, "-=") != "" {
			t.row(left, right)
		}
	}
	t.flush()
	t.p.Table = true
	t.p.Runs = 1
	return t.p, len(t.p.Tests) > 0
}

type tableParser struct {
	p       *parser
	section string
	test    *Test
	of3     bool // the test's result is told in one row, as before 4.0
	note    string
	noteOf  Entity
	named   bool // the note names its entity
	noteTxt []string
}

func (t *tableParser) row(left, right string) {
	if note := tableNote.FindStringSubmatch(left); note != nil {
		t.flush()
		t.note, t.named = note[1], note[2] != ""
		t.noteOf, t.noteTxt = entityOf(note[2], note[3]), []string{right}
		return
	}
	switch {
	case left == "":
		if e := tableEntity.FindStringSubmatch(right); e != nil && t.test != nil {
			t.flush()
			t.entity(entityOf(e[1], e[2]), statusOf(e[3]))
			return
		}
		if t.note != "" {
			t.noteTxt = append(t.noteTxt, right)
		}
	case left == "Diagnostic" && right == "Result":
	case left == "DCGM Version" || left == "Driver Version Detected":
		t.flush()
		if left == "DCGM Version" {
			t.p.Version = right
		} else {
			t.p.Driver = right
		}
	case strings.HasPrefix(left, "GPU Device IDs"):
		t.flush()
	default:
		t.flush()
		if r := tableResult.FindStringSubmatch(right); r != nil {
			t.start(left, statusOf(r[1]), r[2])
		}
	}
}

// start begins a test. Before 4.0 the result names its GPUs: "Pass - All", "Fail - GPUs: 0, 1".
func (t *tableParser) start(name string, s Status, whose string) {
	t.p.Tests = append(t.p.Tests, Test{Category: t.section, Name: oneLine(name)})
	t.test = &t.p.Tests[len(t.p.Tests)-1]
	for _, d := range someDigits.FindAllString(whose, -1) {
		if n, err := strconv.Atoi(d); err == nil {
			t.entity(Entity{OfGPU, n}, s)
		}
	}
	if t.of3 = len(t.test.Rows) > 0 || whose != ""; len(t.test.Rows) == 0 {
		t.test.Rows = []Row{{Status: s}} // of the node, until entities follow
	}
}

func (t *tableParser) entity(e Entity, s Status) {
	if len(t.test.Rows) == 1 && t.test.Rows[0].Entity == (Entity{}) && !t.of3 {
		t.test.Rows = nil // the test's own row repeats the worst of these
	}
	t.test.Rows = append(t.test.Rows, Row{Entity: e, Status: s})
	if e.Group == OfGPU {
		t.p.device(e.ID, "")
	}
}

// flush ends a note and gives it to the result that it is about.
func (t *tableParser) flush() {
	text := oneLine(strings.Join(t.noteTxt, " "))
	note, of, named := t.note, t.noteOf, t.named
	t.note, t.noteTxt = "", nil
	if note == "" || text == "" || t.test == nil {
		return
	}
	if !named {
		if id, ok := namedGPU(text); ok {
			of = Entity{OfGPU, id}
		}
	}
	at := -1
	for i, r := range t.test.Rows {
		if r.Entity == of || at < 0 && len(t.test.Rows) == 1 && r.Entity == (Entity{}) {
			at = i
		}
	}
	if at < 0 {
		t.test.Rows = append(t.test.Rows, Row{Entity: of, Status: StatusUnknown})
		at = len(t.test.Rows) - 1
	}
	r := &t.test.Rows[at]
	if note == "Info" {
		r.Info = append(r.Info, text)
		return
	}
	if r.Entity == (Entity{}) {
		r.Entity = of
	}
	r.Errors = append(r.Errors, Error{Code: -1, Category: -1, Severity: Unsaid, Text: text})
}

func entityOf(group, id string) Entity {
	n, err := strconv.Atoi(id)
	if err != nil || n >= maxIndex {
		return Entity{}
	}
	switch group {
	case "GPU":
		return Entity{OfGPU, n}
	case "CPU":
		return Entity{OfCPU, n}
	}
	return Entity{}
}
