package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/goccy/go-yaml"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"

	"github.com/assay-gpu/assay/coordinator/lifecycle"
)

// emit writes v as JSON or YAML if so asked, else calls show for people.
func (a *app) emit(v any, show func() error) error {
	switch a.output {
	case "json", "yaml":
		body, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return fmt.Errorf("encode the result: %w", err)
		}
		if a.output == "yaml" {
			if body, err = yaml.JSONToYAML(body); err != nil {
				return fmt.Errorf("encode the result: %w", err)
			}
		} else {
			body = append(body, '\n')
		}
		_, err = a.out.Write(body)
		return err
	}
	return show()
}

func (a *app) wide() bool { return a.output == "wide" }

// rows writes a table: a header, then a line each; no borders, so that awk and grep work on it.
func (a *app) rows(header []string, rows [][]string) error {
	w := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	style.Format.Header = text.FormatUpper
	w.SetStyle(style)
	w.AppendHeader(cells(header))
	for _, r := range rows {
		w.AppendRow(cells(r))
	}
	var b strings.Builder
	for line := range strings.Lines(w.Render()) {
		b.WriteString(strings.TrimRight(line, " \n"))
		b.WriteByte('\n')
	}
	_, err := io.WriteString(a.out, b.String())
	return err
}

func cells(ss []string) table.Row {
	r := make(table.Row, len(ss))
	for i, s := range ss {
		r[i] = s
	}
	return r
}

// facts writes "Name  value" lines; a value of several lines is indented under its first, an empty one left out.
func (a *app) facts(pairs ...[2]string) error {
	wide := 0
	for _, p := range pairs {
		if p[1] != "" {
			wide = max(wide, len(p[0]))
		}
	}
	var b strings.Builder
	for _, p := range pairs {
		if p[1] == "" {
			continue
		}
		for i, line := range strings.Split(p[1], "\n") {
			name := p[0]
			if i > 0 {
				name = ""
			}
			fmt.Fprintf(&b, "%-*s  %s\n", wide, name, line)
		}
	}
	_, err := io.WriteString(a.out, b.String())
	return err
}

// stateText is a node's state as a table shows it, lost and marks beside it.
func (a *app) state(state string, lost bool) string {
	s := clean(state)
	if lost {
		s += ",lost"
	}
	if !a.color() {
		return s
	}
	switch lifecycle.State(state) {
	case lifecycle.Certified:
		if lost {
			return text.FgYellow.Sprint(s)
		}
		return text.FgGreen.Sprint(s)
	case lifecycle.Quarantined, lifecycle.RMA, lifecycle.Draining, lifecycle.Withheld, lifecycle.Remediating:
		return text.FgRed.Sprint(s)
	case lifecycle.Suspect, lifecycle.Screening, lifecycle.Enrolled:
		return text.FgYellow.Sprint(s)
	}
	return s
}

// color reports whether stdout is a terminal that wants colours (no-color.org).
func (a *app) color() bool {
	if a.noColor || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	f, ok := a.out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// when is a time for people: local, with its distance from now. Zero is "".
func (a *app) when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format(time.RFC3339) + " (" + a.age(t) + ")"
}

// age is how long ago t was, or how long until it is. Zero is "".
func (a *app) age(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	d := a.now().Sub(t)
	if d < 0 {
		return "in " + span(-d)
	}
	return span(d) + " ago"
}

// span writes a duration by its two greatest units: 45s, 12m, 3h5m, 6d2h.
func span(d time.Duration) string {
	s := int64(d / time.Second)
	m, h, days := s/60, s/3600, s/86400
	two := func(a int64, ua string, b int64, ub string) string {
		if b == 0 {
			return fmt.Sprintf("%d%s", a, ua)
		}
		return fmt.Sprintf("%d%s%d%s", a, ua, b, ub)
	}
	switch {
	case m < 1:
		return fmt.Sprintf("%ds", s)
	case h < 1:
		return fmt.Sprintf("%dm", m)
	case days < 1:
		return two(h, "h", m%60, "m")
	}
	return two(days, "d", h%24, "h")
}

// clean makes text from elsewhere safe for a terminal and a table cell: what does not print becomes "?".
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}

// cleanLines is clean for text of several lines.
func cleanLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = clean(lines[i])
	}
	return strings.Join(lines, "\n")
}

func cut(s string, n int) string {
	r := []rune(clean(s))
	if len(r) <= n {
		return string(r)
	}
	return string(r[:n-1]) + "…"
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
