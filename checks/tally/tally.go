// Package tally makes one finding about a node of the several things that one check looks at there.
package tally

import (
	"fmt"
	"strings"

	"github.com/assay-gpu/assay/checks"
)

// A Tally gathers what a check has to say about a node.
type Tally struct {
	check                 string
	faults, doubts, watch []string
	action                checks.Action // the severest fault's
}

// New begins the tally of the check with that id.
func New(check string) *Tally { return &Tally{check: check} }

// Fault notes something beyond a limit, and what it asks for.
func (t *Tally) Fault(a checks.Action, format string, args ...any) {
	t.faults, t.action = append(t.faults, fmt.Sprintf(format, args...)), max(t.action, a)
}

// Doubt notes something that could not be told.
func (t *Tally) Doubt(format string, args ...any) {
	t.doubts = append(t.doubts, fmt.Sprintf(format, args...))
}

// Watch notes something that is no fault yet.
func (t *Tally) Watch(format string, args ...any) {
	t.watch = append(t.watch, fmt.Sprintf(format, args...))
}

// Finding is what all of it comes to: a fault outranks a doubt, and a doubt what is to be watched. Whatever else was
// noted stands in the reason. well is the reason when nothing was.
func (t *Tally) Finding(evidence, well string) checks.Finding {
	f := checks.Finding{Check: t.check, Subject: checks.Subject{Kind: checks.KindNode}, Evidence: evidence}
	switch {
	case len(t.faults) > 0:
		f.Verdict, f.Action = checks.Fail, t.action
	case len(t.doubts) > 0:
		f.Verdict, f.Action = checks.Unknown, checks.None
	default:
		f.Verdict = checks.Pass
	}
	if len(t.watch) > 0 && f.Verdict != checks.Fail {
		f.Action = checks.Watch
	}
	f.Reason = strings.Join(append(append(append([]string{}, t.faults...), t.doubts...), t.watch...), "; ")
	if f.Reason == "" {
		f.Reason = well
	}
	return f
}

// Unread is the finding of a check that could not look.
func Unread(check, what, err string) checks.Finding {
	f := checks.Finding{Check: check, Subject: checks.Subject{Kind: checks.KindNode}, Reason: what + " not read"}
	if err != "" {
		f.Reason += ": " + err
	}
	return f
}

// Bytes writes a size for people, in the units in which memory and disks are sold: 2.0 TB, 512 GB.
func Bytes(n uint64) string {
	switch {
	case n >= 1e12:
		return fmt.Sprintf("%.2f TB", float64(n)/1e12)
	case n >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}
