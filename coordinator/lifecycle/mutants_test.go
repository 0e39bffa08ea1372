package lifecycle

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mutants are wrong machines that somebody could write. The stories and the walk must tell each from the right one.
var mutants = []struct{ name, file, old, new string }{
	{"a hard fault that does not revoke", "fault.go", "	s.revoke(describe(f))\n	if !counted", "	if !counted"},
	{"a drain without asking the guard", "fault.go", `if !ok && !forced {`, `if false {`},
	{"a suspension without asking the guard", "fault.go", "ok, why := s.room(\"suspend\")\n		if !ok {", "_, why := s.room(\"suspend\")\n		if false {"},
	{"a drain that is not charged", "fault.go", "		s.spend(st)\n", "		_ = st\n"},
	{"a resume while held", "drain.go", "|| s.blocked()", ""},
	{"a resume on an old certificate", "drain.go", "s.Certificate == nil || s.Suspended || !certificate.Meets", "s.Certificate == nil || s.Suspended || false && !certificate.Meets"},
	{"a drain whose reason he changed is still ours", "slurm.go", "	s.DrainedByUs, s.DrainPending, s.ResumePending, s.DrainReason, s.Rewriting = false, false, false, \"\", \"\"\n	s.quarantineIfEmpty()", "	s.quarantineIfEmpty()"},
	{"a person's drain is not rebooted under him", "ladder.go", "case len(s.Holds) > 0:", "case false:"},
	{"evidence that never comes keeps the node for ever", "quarantined.go", "		s.evidenced(\"partial\")\n		return\n", "		return\n"},
	{"quarantined before the drain stands", "ladder.go", "if s.State != Draining || s.DrainPending ||", "if s.State != Draining ||"},
	{"quarantined with jobs on it", "ladder.go", "if len(s.Jobs) == 0 || s.Case.Unkillable {", "if true {"},
	{"a third reboot on one day", "ladder.go", "len(s.Reboots) >= s.in.Policy.Lifecycle.RebootsPerDay", "len(s.Reboots) > s.in.Policy.Lifecycle.RebootsPerDay"},
	{"the third time is no person's", "ladder.go", "if times >= 2 {", "if times > 2 {"},
	{"Unknown certifies", "any.go", "return ev.Verdict == checks.Pass &&", "return ev.Verdict != checks.Fail &&"},
	{"any pass resumes, however shallow", "screening.go", "ev.Level >= enough", "(true || ev.Level >= enough)"},
	{"the prolog that found a soft fault is its retest", "suspect.go", "		s.fault(f)\n		if s.asked {", "		s.fault(f)\n		if true {"},
	{"an earlier boot's fault takes the node", "any.go", `return f.BootID != "" && f.BootID != n.BootID`, `return false && f.BootID != n.BootID`},
	{"an answer to an old question counts", "any.go", `if s.Screen == "" || s.Screen != ScreenPending && s.Screen != ev.Screen {`, `if false {`},
	{"observe mode acts", "fault.go", "	case policy.Observe:\n", "	case policy.Observe:\n		return true\n"},
	{"a foreign resume is answered for ever", "slurm.go", "s.ForeignResumes > 1", "s.ForeignResumes > 100"},
	{"a reboot is a loss", "any.go", "if s.State != Remediating || !s.at.Before(s.Deadline) {", "if true {"},
	{"silence revokes", "any.go", "			s.Lost = true\n", "			s.Lost = true\n			s.revoke(\"silent\")\n"},
	{"a certificate outlives its boot", "any.go", "			s.revoke(s.ended)\n", ""},
	{"a planned reset ends a job", "draining.go", "|| s.Case.Planned ||", "||"},
}

// TestMutants runs this package's tests against each mutant, by an overlay of one file. It takes about a minute.
func TestMutants(t *testing.T) {
	if testing.Short() || os.Getenv("ASSAY_MUTANT") != "" {
		t.Skip("long, and never within itself")
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			src, err := os.ReadFile(m.file)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(src), m.old); n != 1 {
				t.Fatalf("%s has %q %d times, want once: say the mutant anew", m.file, m.old, n)
			}
			dir := t.TempDir()
			mutant := filepath.Join(dir, m.file)
			if err := os.WriteFile(mutant, []byte(strings.Replace(string(src), m.old, m.new, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			at, err := filepath.Abs(m.file)
			if err != nil {
				t.Fatal(err)
			}
			overlay, err := json.Marshal(map[string]map[string]string{"Replace": {at: mutant}})
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("go", "test", "-overlay", filepath.Join(dir, "overlay.json"), "-vet=off", "-failfast", "-run", "TestStories|TestWalk", "-rapid.nofailfile", "-rapid.shrinktime=0", ".")
			cmd.Env = append(os.Environ(), "ASSAY_MUTANT=1")
			out, err := cmd.CombinedOutput()
			switch {
			case err == nil:
				t.Errorf("nothing tells it from the right machine: %q in place of %q", m.new, m.old)
			case strings.Contains(string(out), "[build failed]"):
				t.Errorf("does not build:\n%s", out)
			}
		})
	}
}
