package xid_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/xid"
	"github.com/cockroachdb/datadriven"
)

// TestGrammar prints what Parse reads from lines.
func TestGrammar(t *testing.T) {
	datadriven.RunTest(t, "testdata/grammar", func(t *testing.T, d *datadriven.TestData) string {
		var b strings.Builder
		for line := range strings.Lines(d.Input) {
			line = strings.TrimSuffix(line, "\n")
			if d.HasArg("escaped") {
				s, err := strconv.Unquote(`"` + line + `"`)
				if err != nil {
					t.Fatal(err)
				}
				line = s
			}
			if d.Cmd == "cut" {
				for i := xid.Cut(line); i >= 0; i = xid.Cut(line) {
					b.WriteString(line[:i] + " | ")
					line = line[i:]
				}
				b.WriteString(line + "\n")
				continue
			}
			parse := xid.Parse
			if d.Cmd == "damaged" {
				parse = xid.ParseDamaged
			}
			e, ok := parse(line)
			if !ok {
				b.WriteString("no event\n")
				continue
			}
			b.WriteString(show(e) + "\n")
		}
		return b.String()
	})
}

func show(e xid.Event) string {
	out := "xid"
	if e.Switch {
		out = "sxid"
	}
	out += fmt.Sprintf(" %d", e.Code)
	add := func(name string, value any, set bool) {
		if set {
			out += fmt.Sprintf(" %s=%v", name, value)
		}
	}
	add("pci", e.PCI, e.PCI != "")
	add("mig", e.MIG, e.MIG != "")
	add("link", e.Link, e.Link >= 0)
	add("port", e.Port, e.Port != "")
	add("pid", e.PID, e.PID != 0)
	add("name", strconv.Quote(e.Name), e.Name != "")
	add("cause", e.Cause, e.Cause != 0)
	add("severity", [...]string{"", "nonfatal", "fatal"}[e.Fatal], e.Fatal != xid.Unsaid)
	add("injected", true, e.Injected)
	add("detail", true, e.Detail)
	add("prose", true, e.Prose)
	add("text", strconv.Quote(e.Text), true)
	return out
}

// TestJudge judges whole logs. For each line that gives a finding it prints the line's number, the incident's letter
// (upper case for its root), what was found, and the reason.
func TestJudge(t *testing.T) {
	datadriven.RunTest(t, "testdata/judge", func(t *testing.T, d *datadriven.TestData) string {
		text := d.Input
		var name string
		if d.MaybeScanArgs(t, "file", &name) {
			b, err := os.ReadFile(filepath.Join("testdata/kernel-log", name))
			if err != nil {
				t.Fatal(err)
			}
			text = string(b)
		}
		p := policy.Default()
		for _, a := range d.CmdArgs {
			if code, ok := strings.CutPrefix(a.Key, "action-"); ok {
				n, err := strconv.Atoi(code)
				if err != nil {
					t.Fatal(err)
				}
				if p.XID.Actions == nil {
					p.XID.Actions = map[int]string{}
				}
				p.XID.Actions[n] = a.Vals[0]
			}
		}
		var fs []checks.Finding
		var at []int
		log := catalog.Log{}
		clock := &clock{}
		n := 0
		for line := range strings.Lines(text) {
			n++
			clock.read(line)
			if e, ok := xid.Parse(line); ok {
				for _, f := range log.Judge([]catalog.LogEvent{{Event: e, At: clock.now}}, checks.Inventory{Node: "n", BootID: "b"}, p) {
					fs, at = append(fs, f), append(at, n)
				}
			}
		}
		fs = checks.GroupIncidents(fs, p.Agent.IncidentGap.D(), p.Agent.IncidentCause.D())
		return report(fs, at)
	})
}

func report(fs []checks.Finding, at []int) string {
	var b strings.Builder
	letters := map[string]string{}
	for i, f := range fs {
		l, ok := letters[f.Incident]
		if !ok {
			l = string(rune('a' + len(letters)))
			letters[f.Incident] = l
		}
		if !f.Secondary {
			l = strings.ToUpper(l)
		}
		hard := ""
		if f.HardFault() {
			hard = " hard"
		} else if f.SoftFault() {
			hard = " soft"
		}
		fmt.Fprintf(&b, "%d: %s %s %d %s: %s %s%s: %s\n", at[i], l, f.Check, f.Code, where(f.Subject), f.Verdict, f.Action, hard, f.Reason)
	}
	if b.Len() == 0 {
		return "no event\n"
	}
	return b.String()
}

func where(s checks.Subject) string {
	out := string(s.Kind)
	if s.PCI != "" {
		out += " " + s.PCI
	}
	if s.MIG != "" {
		out += " mig " + s.MIG
	}
	if s.Link != nil {
		out += fmt.Sprintf(" link %d", *s.Link)
	}
	if s.Port != "" {
		out += " port " + s.Port
	}
	return out
}

// A clock reads the times that logs print. A line without one has the time of the line before.
type clock struct{ now time.Time }

var (
	sinceBoot = regexp.MustCompile(`^\[\s*(\d+\.\d+)\]`)
	inWords   = regexp.MustCompile(`^\[(\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4})\]`)
	syslog    = regexp.MustCompile(`^(\w{3} [ \d]\d \d\d:\d\d:\d\d) `)
)

func (c *clock) read(line string) {
	if m := sinceBoot.FindStringSubmatch(line); m != nil {
		s, _ := strconv.ParseFloat(m[1], 64)
		c.now = time.Unix(0, 0).Add(time.Duration(s * float64(time.Second)))
	} else if m := inWords.FindStringSubmatch(line); m != nil {
		c.now, _ = time.Parse("Mon Jan _2 15:04:05 2006", m[1])
	} else if m := syslog.FindStringSubmatch(line); m != nil {
		c.now, _ = time.Parse("Jan _2 15:04:05", m[1])
	}
}
