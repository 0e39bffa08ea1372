package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
)

// An Outcome is how a hook ended, as it is counted.
type Outcome string

const (
	FastPass    Outcome = "fast_pass"    // on the certificate alone
	SuitePass   Outcome = "suite_pass"   // the quick suite passed
	UnknownPass Outcome = "unknown_pass" // something could not be tested; the hook passes and it is counted
	Bypass      Outcome = "bypass"       // the node is overridden, retired or not managed
	Refused     Outcome = "refused"      // exit 1 on a permit
	RefusedHard Outcome = "refused_hard" // exit 1 on a hard fault without a permit's answer, or for a job whose own GPU is gone
	HeldBack    Outcome = "held_back"    // a fault was found but exit 1 was not permitted: the hook passes
	Observed    Outcome = "observed"     // a fault was found that nothing acts on yet: the hook passes
)

// Outcomes lists every outcome.
var Outcomes = []Outcome{FastPass, SuitePass, UnknownPass, Bypass, Refused, RefusedHard, HeldBack, Observed}

// A Next is what to do now for a hook.
type Next string

const (
	Answer    Next = "answer"     // exit with Decision.Exit
	RunSuite  Next = "run_suite"  // run the quick suite, then decide again
	AskPermit Next = "ask_permit" // ask for leave to exit 1, then decide again
)

// A Decision is what to do for a hook now.
type Decision struct {
	Next    Next
	Exit    int     // with Answer: the hook's exit status
	Outcome Outcome // with Answer
	OwnGPU  bool    // with AskPermit: one of the job's own GPUs is missing or lost
	Why     string  // for people: the hook's standard error and the log
}

// Decide says what to do for a hook, given all that is known. It is called anew after each step it asks for, with the
// step's result in r. It does no I/O and reads no clock.
func Decide(s State, r HookRequest) Decision {
	if r.Hook != Prolog {
		return Decision{Next: Answer, Outcome: Bypass} // epilog and health check always exit 0
	}
	if why, ok := s.notOurs(); ok {
		return Decision{Next: Answer, Outcome: Bypass, Why: why}
	}
	uuids, known := s.jobUUIDs(r.GPUs)
	if r.Suite == nil {
		ok, why := s.fast(uuids)
		if ok {
			return Decision{Next: Answer, Outcome: FastPass}
		}
		return Decision{Next: RunSuite, Why: why}
	}
	if known && len(uuids) > 0 {
		if d, ok := decideOwnGPU(s, r, uuids); ok {
			return d
		}
	}
	return decideSuite(s, r)
}

// notOurs reports whether the node's hooks pass without a look, and why.
func (s State) notOurs() (string, bool) {
	switch {
	case !s.Known:
		return "this node is not enrolled", true
	case !s.Managed:
		return "this node is not managed by assay", true
	case s.Node == string(lifecycle.Retired):
		return "this node is retired", true
	case slices.Contains(s.Marks, lifecycle.MarkOverridden):
		return "this node is overridden: a person resumed it against assay's case", true
	}
	return "", false
}

// fast reports whether the certificate alone lets a job on these GPUs pass, and if not, why.
func (s State) fast(uuids []string) (bool, string) {
	if ok, why := s.Held.holds(s, uuids); !ok {
		return false, why
	}
	h := s.Policy.Hooks
	switch {
	case s.Golden > 0:
		return false, fmt.Sprintf("%d golden children have not ended", s.Golden)
	case s.Snapshot == nil:
		return false, "no snapshot yet"
	case !s.Snapshot.Clean:
		return false, "the last snapshot is not clean: " + s.Snapshot.Why
	case s.Now-s.Snapshot.At >= h.SnapshotAge.D():
		return false, fmt.Sprintf("the last snapshot is %.0f s old", (s.Now - s.Snapshot.At).Seconds())
	case s.kernelDoubt() != "":
		return false, s.kernelDoubt()
	case s.Contact == nil:
		return false, "the control plane has not been heard in this boot"
	case s.Now-*s.Contact >= h.OfflineMax.D():
		return false, fmt.Sprintf("the control plane was last heard %.1f h ago", (s.Now - *s.Contact).Hours())
	}
	return true, ""
}

// kernelDoubt says why the kernel log proves nothing now; empty when it does. A loss counts for as long as a snapshot
// taken before it would.
func (s State) kernelDoubt() string {
	k := s.Kernel
	switch {
	case k.Err != "":
		return "the kernel log cannot be read: " + k.Err
	case !k.Drained:
		return "the kernel log is not read to its end"
	case k.Lost > 0 && s.Now-k.LostAt < s.Policy.Hooks.SnapshotAge.D():
		return fmt.Sprintf("%d kernel log records were overwritten before they were read", k.Lost)
	}
	return ""
}

// decideOwnGPU refuses a job one of whose own GPUs is missing or lost, where policy lets that finding act: the job could
// not run. The permit is asked for so that our drain stands first, and the refusal is counted; it is not waited for in vain.
func decideOwnGPU(s State, r HookRequest, uuids []string) (Decision, bool) {
	why, acts, gone := r.Suite.ownGPU(s.Policy, uuids)
	act, _ := Acting(s.Policy, r.Suite.Findings)
	_, other := checks.Worst(act)
	switch {
	case !gone || !acts && other:
		return Decision{}, false // what else was found decides
	case !acts:
		return Decision{Next: Answer, Outcome: Observed, Why: "observe mode: would have refused the job: " + why}, true
	case r.Permit == nil:
		return Decision{Next: AskPermit, OwnGPU: true, Why: why}, true
	case r.Permit.Granted:
		return Decision{Next: Answer, Exit: 1, Outcome: Refused, Why: orElse(r.Permit.Reason, why)}, true
	}
	return Decision{Next: Answer, Exit: 1, Outcome: RefusedHard, Why: "the job could not run: " + why}, true
}

// decideSuite decides by the quick suite's findings.
func decideSuite(s State, r HookRequest) Decision {
	act, observe := Acting(s.Policy, r.Suite.Findings)
	if worst, bad := checks.Worst(act); bad {
		return decideFault(r, worst.HardFault(), describe(worst))
	}
	if worst, bad := checks.Worst(observe); bad {
		return Decision{Next: Answer, Outcome: Observed, Why: "observe mode: would have asked to refuse the job: " + describe(worst)}
	}
	if r.Suite.Verdict == checks.Pass {
		return Decision{Next: Answer, Outcome: SuitePass}
	}
	why := "not everything could be tested: " + unknowns(r.Suite.Findings)
	if s.Policy.Hooks.FailMode == "closed" && s.Policy.Mode == policy.Act {
		d := decideFault(r, false, why)
		if d.Outcome == HeldBack {
			d.Outcome = UnknownPass
		}
		return d
	}
	return Decision{Next: Answer, Outcome: UnknownPass, Why: why}
}

// decideFault asks for a permit to exit 1 and goes by its answer. Without one only a hard fault exits 1.
func decideFault(r HookRequest, hard bool, why string) Decision {
	switch p := r.Permit; {
	case p == nil:
		return Decision{Next: AskPermit, Why: why}
	case p.Answered && p.Granted:
		return Decision{Next: Answer, Exit: 1, Outcome: Refused, Why: orElse(p.Reason, why)}
	case p.Answered:
		return Decision{Next: Answer, Outcome: HeldBack, Why: why + "; not refused: " + orElse(p.Reason, "no permit")}
	case hard:
		return Decision{Next: Answer, Exit: 1, Outcome: RefusedHard, Why: why + "; the control plane did not answer: " + p.Reason}
	default:
		return Decision{Next: Answer, Outcome: HeldBack, Why: why + "; passed, for the control plane did not answer: " + p.Reason}
	}
}

// describe puts a finding in a few words.
func describe(f checks.Finding) string {
	var w []string
	if !strings.HasPrefix(f.Reason, f.Check) {
		w = append(w, f.Check)
	}
	switch {
	case f.Subject.GPUIndex != nil:
		w = append(w, fmt.Sprintf("GPU %d", *f.Subject.GPUIndex))
	case f.Subject.Kind == checks.KindPort && f.Subject.Port != "":
		w = append(w, f.Subject.Port)
	case f.Subject.PCI != "":
		w = append(w, f.Subject.PCI)
	}
	if len(w) == 0 {
		return f.Reason
	}
	return strings.Join(w, " ") + ": " + f.Reason
}

// unknowns names what could not be tested.
func unknowns(fs []checks.Finding) string {
	var ws []string
	for _, f := range fs {
		if f.Verdict == checks.Unknown && !f.Secondary {
			ws = append(ws, describe(f))
		}
	}
	if len(ws) == 0 {
		return "no check gave an answer"
	}
	if len(ws) > 3 {
		ws = append(ws[:3], fmt.Sprintf("and %d more", len(ws)-3))
	}
	return strings.Join(ws, "; ")
}

func orElse(s, or string) string {
	if s != "" {
		return s
	}
	return or
}
