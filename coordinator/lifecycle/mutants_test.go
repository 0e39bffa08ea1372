package lifecycle

import (
	"testing"

	"github.com/assay-gpu/assay/checks/mutants/byhand"
)

// mutants are wrong machines that somebody could write. The stories and the walk must tell each from the right one.
var mutants = []byhand.Mutant{
	{Name: "a hard fault that does not revoke", File: "fault.go", Old: "	s.revoke(describe(f))\n	if !counted", New: "	if !counted"},
	{Name: "a drain without asking the guard", File: "fault.go", Old: `if !ok && !forced {`, New: `if false {`},
	{Name: "a suspension without asking the guard", File: "fault.go", Old: "ok, why := s.room(\"suspend\")\n		if !ok {", New: "_, why := s.room(\"suspend\")\n		if false {"},
	{Name: "a drain that is not charged", File: "fault.go", Old: "		s.spend(st)\n", New: "		_ = st\n"},
	{Name: "a resume while held", File: "drain.go", Old: "|| s.blocked()", New: ""},
	{Name: "a resume on an old certificate", File: "drain.go", Old: "s.Certificate == nil || s.Suspended || !certificate.Meets", New: "s.Certificate == nil || s.Suspended || false && !certificate.Meets"},
	{Name: "a drain whose reason he changed is still ours", File: "slurm.go", Old: "	s.DrainedByUs, s.DrainPending, s.ResumePending, s.DrainReason, s.Rewriting = false, false, false, \"\", \"\"\n	s.quarantineIfEmpty()", New: "	s.quarantineIfEmpty()"},
	{Name: "a person's drain is not rebooted under him", File: "ladder.go", Old: "case len(s.Holds) > 0:", New: "case false:"},
	{Name: "evidence that never comes keeps the node for ever", File: "quarantined.go", Old: "		s.evidenced(\"partial\")\n		return\n", New: "		return\n"},
	{Name: "quarantined before the drain stands", File: "ladder.go", Old: "if s.State != Draining || s.DrainPending ||", New: "if s.State != Draining ||"},
	{Name: "quarantined with jobs on it", File: "ladder.go", Old: "if len(s.Jobs) == 0 || s.Case.Unkillable {", New: "if true {"},
	{Name: "a third reboot on one day", File: "ladder.go", Old: "len(s.Reboots) >= s.in.Policy.Lifecycle.RebootsPerDay", New: "len(s.Reboots) > s.in.Policy.Lifecycle.RebootsPerDay"},
	{Name: "the third time is no person's", File: "ladder.go", Old: "if times >= 2 {", New: "if times > 2 {"},
	{Name: "Unknown certifies", File: "any.go", Old: "return ev.Verdict == checks.Pass &&", New: "return ev.Verdict != checks.Fail &&"},
	{Name: "any pass resumes, however shallow", File: "screening.go", Old: "ev.Level >= enough", New: "(true || ev.Level >= enough)"},
	{Name: "the prolog that found a soft fault is its retest", File: "suspect.go", Old: "		s.fault(f)\n		if s.asked {", New: "		s.fault(f)\n		if true {"},
	{Name: "an earlier boot's fault takes the node", File: "any.go", Old: `return f.BootID != "" && f.BootID != n.BootID`, New: `return false && f.BootID != n.BootID`},
	{Name: "an answer to an old question counts", File: "any.go", Old: `if s.Screen == "" || s.Screen != ScreenPending && s.Screen != ev.Screen {`, New: `if false {`},
	{Name: "observe mode acts", File: "fault.go", Old: "	case policy.Observe:\n", New: "	case policy.Observe:\n		return true\n"},
	{Name: "a foreign resume is answered for ever", File: "slurm.go", Old: "s.ForeignResumes > 1", New: "s.ForeignResumes > 100"},
	{Name: "a reboot is a loss", File: "any.go", Old: "if s.State != Remediating || !s.at.Before(s.Deadline) {", New: "if true {"},
	{Name: "silence revokes", File: "any.go", Old: "			s.Lost = true\n", New: "			s.Lost = true\n			s.revoke(\"silent\")\n"},
	{Name: "a certificate outlives its boot", File: "any.go", Old: "			s.revoke(s.ended)\n", New: ""},
	{Name: "a planned reset ends a job", File: "draining.go", Old: "|| s.Case.Planned ||", New: "||"},
}

// Each mutant changes one place of the source as it is.
func TestMutantsAreSaid(t *testing.T) { byhand.Said(t, ".", mutants) }

// TestMutants runs this package's stories and walk against each mutant. It takes about a minute.
func TestMutants(t *testing.T) { byhand.Run(t, ".", mutants, "-run", "TestStories|TestWalk") }
