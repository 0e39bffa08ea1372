package slurm

import (
	"regexp"
	"strings"
	"unicode"
)

// maxReason is the longest reason we write, in bytes: sinfo -R with a width people use still tells nodes apart, and an
// answer that shows all nodes stays small.
const maxReason = 200

// CleanReason turns text into a reason that Slurm keeps as it is and that cannot be more than a reason: no quotes, which
// scontrol strips at the ends, no control characters, no brackets that would pass for the "[user@time]" Slurm adds, no
// equal signs that would pass for another field, single spaces, at most 200 bytes.
func CleanReason(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '"' || r == '\'' || r == '`' || r == '\\' || r == unicode.ReplacementChar:
			return -1
		case r == '=':
			return ':'
		case r == '[':
			return '('
		case r == ']':
			return ')'
		case unicode.IsSpace(r) || unicode.IsControl(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	var b strings.Builder
	for word := range strings.FieldsSeq(s) {
		if b.Len() > 0 {
			if b.Len()+1+len(word) > maxReason {
				break
			}
			b.WriteByte(' ')
		}
		for _, r := range word {
			if b.Len()+len(string(r)) > maxReason {
				break
			}
			b.WriteRune(r)
		}
	}
	return b.String()
}

// rebootNotes are what Slurm puts behind a reason during a reboot. Source: slurmctld node_mgr.c, proc_req.c.
var rebootNotes = regexp.MustCompile(`(?: ?: ?)?\breboot (?:issued|complete|requested|timed out|cancelled|ASAP|ASAP : reboot issued)$`)

// BareReason is a reason without what Slurm added during a reboot: "… : reboot issued : reboot complete".
func BareReason(s string) string {
	for {
		loc := rebootNotes.FindStringIndex(s)
		if loc == nil || loc[0] == 0 {
			return s
		}
		s = strings.TrimRight(s[:loc[0]], " :")
	}
}

// SameReason reports whether the reason that Slurm shows is the one we wrote, perhaps with a reboot's notes behind it.
func SameReason(shown, ours string) bool { return BareReason(shown) == BareReason(CleanReason(ours)) }

// ReasonProlog and ReasonKillTask are two of Slurm's own reasons that mean something to us.
const (
	ReasonProlog   = "Prolog error"
	ReasonKillTask = "Kill task failed"
)

// slurmReasons are the texts with which Slurm itself drains or downs a node. Source: slurmctld node_mgr.c, job_mgr.c,
// ping_nodes.c, proc_req.c; slurmd req.c; stepd job_mgr.c.
var slurmReasons = []string{
	ReasonProlog, "Epilog error", "Job env setup error", ReasonKillTask, "Duplicate jobid", "batch job complete failure",
	"Not responding", "Node unexpectedly rebooted", "Reboot ASAP", "reboot timed out", "reboot issued", "reboot requested", "reboot complete",
	"ResumeTimeout reached", "SuspendTimeout reached", "Scheduled reboot", "Prolog failed", "Node configuration differs",
}

// slurmPatterns are those that carry numbers.
var slurmPatterns = regexp.MustCompile(`^(?:Low (?:RealMemory|TmpDisk|CPUs|socket\*core\*thread count)\b.*|gres/[^ ]+ (?:count (?:reported lower than configured|too low)|GRES core specification).*)$`)

// IsSlurmReason reports whether Slurm itself, and no person, wrote the reason.
func IsSlurmReason(s string) bool {
	s = BareReason(s)
	for _, r := range slurmReasons {
		if s == r {
			return true
		}
	}
	return slurmPatterns.MatchString(s)
}
