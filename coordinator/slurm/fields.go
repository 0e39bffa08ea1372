package slurm

import (
	"strings"
	"time"
)

// freeText are the keys whose value may hold spaces. All others end at the first.
var freeText = map[string]bool{"OS": true, "Reason": true, "Comment": true, "Extra": true}

// fields reads one line of `scontrol show … -o`: KEY=value pairs in any order. The first value of a key counts: slurmctld
// prints its own fields before those that people write, so a reason or comment that says "State=IDLE" stays text. A value
// of free text ends where a key begins that is known and has not been seen.
func fields(line string, known map[string]bool) map[string]string {
	out := map[string]string{}
	open := "" // the free-text key whose value goes on
	var text strings.Builder
	closeText := func() {
		if open != "" {
			out[open] = strings.TrimSpace(text.String())
			open = ""
			text.Reset()
		}
	}
	for word := range strings.FieldsSeq(line) {
		key, value, ok := strings.Cut(word, "=")
		_, seen := out[key]
		fresh := ok && key != open && !seen
		switch {
		case open != "" && !(fresh && known[key]):
			text.WriteByte(' ')
			text.WriteString(word)
		case fresh && freeText[key]:
			closeText()
			open = key
			text.WriteString(value)
		case fresh:
			closeText()
			out[key] = value
		}
	}
	closeText()
	return out
}

// parseTime reads Slurm's standard time in UTC; "None", "Unknown", "N/A" and anything else are no time.
func parseTime(s string) time.Time {
	t, err := time.Parse("2006-01-02T15:04:05", s)
	if err != nil {
		return time.Time{}
	}
	return t
}

// null turns Slurm's words for nothing into nothing.
func null(s string) string {
	switch s {
	case "(null)", "N/A", "n/a", "None", "none", "NONE":
		return ""
	}
	return s
}
