package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/coordinator/certificate"
)

// next says for a person what happens next on the node. It names no time, so that it changes only with the node.
func next(n Node) string {
	who := ""
	if n.Case != nil && n.Case.Due != "" {
		who = n.Case.Due
	}
	if n.Marked(MarkOverridden, time.Time{}) && n.Case != nil && n.Case.Out {
		return "left in service as a person wants it; drained again when the override ends"
	}
	switch n.State {
	case Enrolled:
		if n.Adopt {
			return "a passing prolog certifies it at quick"
		}
		return "the intake screen certifies it"
	case Certified:
		switch {
		case n.Marked(MarkHeldBack, time.Time{}) && n.Case != nil && n.Case.Planned:
			return "drained for a GPU reset when the guard has room"
		case n.Case != nil && !n.Case.Out:
			return "suspended when the guard has room, or cleared by a clean screen"
		case n.DrainedByUs && len(n.Holds) > 0:
			return "resumed when the hold of " + n.Holds[0].Owner + " ends"
		case n.DrainedByUs && n.Lost:
			return "resumed when its agent answers"
		case n.DrainedByUs:
			return "resumed in Slurm"
		}
		return "screened again when its certificate expires"
	case Screening:
		level := n.Want
		if n.Case != nil {
			level = max(level, n.Case.Level)
		}
		switch {
		case n.Case != nil && n.Case.Owner == OnCall:
			return "no verdict from its screens: somebody must look at the node"
		case n.Case != nil && n.Case.Out && n.Case.Rung != "":
			return fmt.Sprintf("a clean %s screen resumes it; a failed one leads to %s", level, nextRung(n.Case.Rung))
		case n.Case != nil && n.Case.Out:
			return fmt.Sprintf("a clean %s screen resumes it", level)
		case n.Case != nil:
			return fmt.Sprintf("a clean %s screen clears it", level)
		}
		return "a clean screen certifies it"
	case Suspect:
		return fmt.Sprintf("retested at %s when idle: clean brings it back, reproduced takes it out", n.Case.Level)
	case Withheld:
		return fmt.Sprintf("drained when the guard has room; a clean %s screen brings it back", n.Case.Level)
	case Draining:
		return "quarantined when its jobs have ended"
	case Quarantined:
		switch {
		case n.Case.Evidence == "collecting":
			return "evidence is gathered, then " + n.Case.Need + " or the rung that its past asks for"
		case who != "":
			return who + " when nothing stands in its way"
		}
		return needs(n)
	case Remediating:
		return fmt.Sprintf("screened at %s when the %s is done; %s if it fails", n.Case.Level, n.Case.Rung, nextRung(n.Case.Rung))
	case RMA:
		return "the intake screen when the part is back: assay rma update " + n.Name + " --outcome TEXT"
	case Retired:
		return "nothing: assay does not manage it any more"
	}
	return ""
}

// needs says what a person has to do for a node that waits for one.
func needs(n Node) string {
	switch {
	case n.Case.Cause == CauseOrder:
		return "resume it: assay node resume " + n.Name + " --reason TEXT"
	case n.Case.Action == checks.RMA:
		return "the part goes back to the vendor: assay rma open " + n.Case.ID + " --reason TEXT"
	case n.Case.Action == checks.FixConfig:
		return "change the setting, then: assay node resume " + n.Name + " --reason TEXT"
	}
	return "automatic repair is spent; look at the node, then: assay node resume " + n.Name + " --reason TEXT, or: assay rma open " + n.Case.ID + " --reason TEXT"
}

// Explain says why the node is where it is, most decisive first, and what happens next.
func Explain(n Node, at time.Time) (why []string, nextStep string) {
	add := func(format string, args ...any) { why = append(why, fmt.Sprintf(format, args...)) }
	if n.State == "" {
		return []string{n.Name + " is not under assay's care."}, "enrol it: assay node enroll " + n.Name
	}
	if c := n.Case; c != nil {
		add("%s is %s for case %s: %s.", n.Name, n.State, c.ID, c.Cause)
		for _, r := range n.Reasons {
			add("Seen: %s.", strings.TrimRight(r, "."))
		}
		if len(c.Rungs) > 0 {
			add("Tried so far: %s.", strings.Join(c.Rungs, ", "))
		}
		if times := repeats(n, c); times > 0 {
			add("The same cause was on the same part %d times within the repeat window.", times)
		}
	} else {
		add("%s is %s since %s.", n.Name, n.State, stamp(n.Since))
	}
	for _, o := range n.Observed {
		add("Only observed in this boot, as policy has it, and not acted on: %s.", o)
	}
	if n.Lost {
		add("Its agent does not answer: nothing is placed on it and it is not resumed until it does.")
	}
	for _, h := range n.Holds {
		kind := "held"
		if h.Drain {
			kind = "drained in Slurm"
		}
		add("It is %s by %s: %s. assay does not resume it.", kind, h.Owner, h.Reason)
	}
	why = append(why, explainMarks(n, at)...)
	why = append(why, explainCertificate(n, at))
	if len(n.Jobs) > 0 && (n.State == Enrolled || n.State == Screening || n.State == Draining || n.State == Suspect) {
		add("%s on it: a screen waits until none is left.", jobsOf(n))
	}
	nextStep = next(n)
	if !n.Deadline.IsZero() {
		nextStep += fmt.Sprintf(" (looked at again by %s; owner %s)", stamp(n.Deadline), Owner(n))
	}
	return why, nextStep
}

// jobsOf names the jobs on a node, the first few of many.
func jobsOf(n Node) string {
	var ids []string
	for _, j := range n.Jobs[:min(len(n.Jobs), 5)] {
		ids = append(ids, j.ID)
	}
	switch more := len(n.Jobs) - len(ids); {
	case more > 0:
		return fmt.Sprintf("Jobs %s and %d more are", strings.Join(ids, ", "), more)
	case len(ids) > 1:
		return fmt.Sprintf("Jobs %s are", strings.Join(ids, ", "))
	}
	return fmt.Sprintf("Job %s is", ids[0])
}

func repeats(n Node, c *Case) int {
	times := 0
	for _, p := range n.Past {
		if p.Cause == c.Cause && p.Part == c.Part {
			times++
		}
	}
	return times
}

func explainMarks(n Node, at time.Time) []string {
	texts := map[string]string{
		MarkLapsed:     "Its certificate expired under a job; it is renewed when the job ends.",
		MarkOverridden: "A person resumed it against assay's word; hooks let jobs through for now, our scheduler places none.",
		MarkHeldBack:   "A step is due and the guard has no room for it.",
		MarkAdopted:    "It was adopted: it never passed an intake screen.",
		MarkSuspicious: "A soft fault was not reproduced by the retest.",
	}
	var out []string
	for m := range n.Marks {
		if t, ok := texts[m]; ok && n.Marked(m, at) {
			out = append(out, t)
		}
	}
	slices.Sort(out)
	return out
}

func explainCertificate(n Node, at time.Time) string {
	c := n.Certificate
	switch {
	case c == nil:
		return "It holds no certificate."
	case n.Suspended:
		return fmt.Sprintf("Certificate %d (%s) is suspended.", c.Serial, c.Level)
	case certificate.Holds(*c, at):
		return fmt.Sprintf("Certificate %d (%s) holds until %s.", c.Serial, c.Level, stamp(c.Expires))
	case certificate.HoldsForHooks(*c, at):
		return fmt.Sprintf("Certificate %d (%s) expired at %s; hooks accept it until %s.", c.Serial, c.Level, stamp(c.Expires), stamp(c.GraceUntil))
	}
	return fmt.Sprintf("Certificate %d (%s) expired at %s.", c.Serial, c.Level, stamp(c.Expires))
}

// HookSays is what a prolog on the node would do now, as far as the control plane knows.
func HookSays(n Node, at time.Time) string {
	switch {
	case n.State == "" || n.State == Retired:
		return "passes: assay does not manage this node"
	case n.Marked(MarkOverridden, at):
		return "passes and is counted: overridden"
	case n.Certificate != nil && !n.Suspended && certificate.HoldsForHooks(*n.Certificate, at) && n.State == Certified:
		return fmt.Sprintf("passes on certificate %d, if its last snapshot is clean and fresh", n.Certificate.Serial)
	case n.State == Enrolled, n.State == Screening, n.State == Certified:
		return "the quick suite decides; a pass lets the job run"
	case n.State == Withheld:
		return "the quick suite runs; a fail asks for a permit, and without room in the guard the job runs"
	}
	return "the quick suite decides; the node is out of service and no job should reach it"
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Due is when the node needs a DeadlinePassed event: its state's deadline, or the end of a hold, of a mark or of the wait
// before a drain or a resume is tried again, whichever is first. Zero: never.
func Due(n Node) time.Time {
	due := n.Deadline
	earlier := func(t time.Time) {
		if !t.IsZero() && (due.IsZero() || t.Before(due)) {
			due = t
		}
	}
	for _, h := range n.Holds {
		earlier(h.Expires)
	}
	for _, until := range n.Marks {
		earlier(until)
	}
	if n.DrainedByUs {
		earlier(n.ResumeAfter)
	}
	earlier(n.RedrainAfter)
	return due
}
