package lifecycle

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Name is the event's name in the text form.
func Name(ev Event) string {
	name, _, _ := strings.Cut(ev.String(), " ")
	return name
}

// Lines writes what a step wrote and did, one a line, as history and the test files do.
func Lines(ws []Write, es []Effect) []string {
	lines := make([]string, 0, len(ws)+len(es))
	for _, w := range ws {
		lines = append(lines, WriteText(w))
	}
	for _, e := range es {
		lines = append(lines, e.String())
	}
	return lines
}

// WriteText writes w in one line.
func WriteText(w Write) string {
	c := &codec{writing: true}
	name := ""
	switch w := w.(type) {
	case IssueCertificate:
		name = "issue_certificate"
		level := w.Certificate.Level.String()
		gpus := len(w.Certificate.GPUs)
		c.text("level", &level)
		c.number("gpus", &gpus)
		c.time("expires", &w.Certificate.Expires)
		c.flag("adopted", &w.Certificate.Adopted, false)
	case DeleteCertificate:
		name = "delete_certificate"
		serial := fmt.Sprint(w.Serial)
		c.text("serial", &serial)
		c.text("reason", &w.Reason)
	case OpenCase:
		name = "open_case"
		caseFields(&w.Case, c)
	case UpdateCase:
		name = "update_case"
		caseFields(&w.Case, c)
	case CloseCase:
		name = "close_case"
		c.text("id", &w.ID)
		c.text("outcome", &w.Outcome)
	case Spend:
		name = "spend"
		c.text("step", &w.Step)
		c.text("reason", &w.Reason)
		c.text("leaf", &w.Leaf)
		c.flag("hard", &w.Hard, false)
	case Note:
		name = "note"
		c.text("text", &w.Text)
	}
	return strings.TrimSpace(name + " " + c.out.String())
}

func caseFields(v *Case, c *codec) {
	action, level := v.Action.String(), v.Level.String()
	c.text("id", &v.ID)
	c.text("cause", &v.Cause)
	c.text("part", &v.Part)
	c.text("action", &action)
	c.text("level", &level)
	c.text("owner", &v.Owner)
	c.text("rung", &v.Rung)
	c.text("due", &v.Due)
	c.text("evidence", &v.Evidence)
}

// String writes the effect in one line: kind, arguments by name, then its precondition and deadline.
func (e Effect) String() string {
	c := &codec{writing: true}
	for _, k := range slices.Sorted(maps.Keys(e.Args)) {
		v := e.Args[k]
		c.text(k, &v)
	}
	c.text("boot", &e.BootID)
	c.time("deadline", &e.Deadline)
	return strings.TrimSpace(e.Kind + " " + c.out.String())
}
