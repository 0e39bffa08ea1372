package lifecycle

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

// OnCall owns what assay cannot settle by itself; Assay all else.
const (
	Assay  = "assay"
	OnCall = "on-call"
)

// Causes of cases that no fault opened.
const (
	CauseOrder        = "order"         // a person's drain
	CauseCannotScreen = "cannot screen" // screens end Unknown
)

const (
	maxFaults = 64 // faults kept in a case; more are in its findings
	maxPast   = 32 // closed causes kept on a node
)

// Cause names what a finding is about in one short phrase: check and code, as "xid 79".
func Cause(f checks.Finding) string {
	if f.Code != 0 {
		return f.Check + " " + strconv.Itoa(f.Code)
	}
	return f.Check
}

// describe is the finding for people, as "xid 79 GPU 3 fell off the bus".
func describe(f checks.Finding) string {
	parts := []string{Cause(f)}
	if where := part(f.Subject); where != "" {
		parts = append(parts, where)
	}
	// A check's reason may begin with the cause, and is read alone elsewhere.
	why := strings.TrimPrefix(f.Reason, parts[0]+" ")
	if len(parts) > 1 {
		why = strings.TrimPrefix(why, "GPU ") // named just before
	}
	if why != "" {
		parts = append(parts, why)
	}
	return strings.Join(parts, " ")
}

// part names what a finding is about for people, and nothing for the node itself.
func part(s checks.Subject) string {
	switch {
	case s.GPUIndex != nil:
		return "GPU " + strconv.Itoa(*s.GPUIndex)
	case s.Port != "":
		return "port " + s.Port
	case s.PCI == "":
		return ""
	case s.Kind == checks.KindNode, s.Kind == checks.KindPort:
		return "device " + s.PCI
	case s.Kind == checks.KindSwitch:
		return "switch " + s.PCI
	}
	return "GPU at " + s.PCI
}

// caseLevel is how deep a screen must go to end a case that f opened. A golden mismatch needs a soak: quick reruns
// miss a defect that shows once in a hundred runs.
func caseLevel(f checks.Finding, p policy.Policy) checks.Level {
	if f.Check == "golden" || f.Check == "sdc" {
		return checks.Soak
	}
	name, level := p.Lifecycle.SoftCaseLevel, checks.Quick
	if f.Hard {
		name, level = p.Lifecycle.HardCaseLevel, checks.Standard
	}
	var l checks.Level
	if err := l.UnmarshalText([]byte(name)); err == nil && l != checks.NoLevel {
		level = l
	}
	return level
}

// fault enters f in the node's case, opening one if there is none, and reports whether it is news: a fault not known
// yet, a severer action, or a hard fault in a soft case.
func (s *step) fault(f checks.Finding) bool {
	key := Cause(f) + " " + f.Subject.Key()
	level := caseLevel(f, s.in.Policy)
	if s.Case == nil {
		s.open(Case{Cause: Cause(f), Part: f.Subject.Key(), Action: f.Action, Level: level, Hard: f.Hard,
			Planned: f.Verdict != checks.Fail})
		s.Reasons = []string{describe(f)}
	} else {
		c := s.Case
		known := slices.Contains(c.Faults, key)
		harder := f.Hard && !c.Hard
		fails := c.Planned && f.Verdict == checks.Fail
		if known && f.Action <= c.Action && !harder && !fails {
			return false
		}
		switch {
		case harder || fails || c.Cause == CauseCannotScreen:
			// The graver fault gives the case its name; what was known stays behind it.
			c.Cause, c.Part, c.Hard, c.Planned = Cause(f), f.Subject.Key(), f.Hard, f.Verdict != checks.Fail
			s.Reasons = slices.Insert(s.Reasons, 0, describe(f))
			if c.Owner == OnCall && c.Rung != RungPerson {
				c.Owner = Assay
			}
		case !known:
			s.Reasons = append(s.Reasons, describe(f))
		}
		c.Action, c.Level = max(c.Action, f.Action), max(c.Level, level)
	}
	s.Reasons = s.Reasons[:min(len(s.Reasons), maxFaults)]
	c := s.Case
	c.Need = deeper(c.Need, rungFor(f.Action))
	if !slices.Contains(c.Faults, key) && len(c.Faults) < maxFaults {
		c.Faults = append(c.Faults, key)
	}
	if f.Check != "" && !slices.Contains(c.Sources, f.Check) {
		c.Sources = append(c.Sources, f.Check)
	}
	if u := f.Subject.GPUUUID; u != "" && !slices.Contains(c.GPUs, u) {
		c.GPUs = append(c.GPUs, u)
	}
	s.findings = append(s.findings, f)
	return true
}

// open gives the node a case, owned by assay unless c says otherwise.
func (s *step) open(c Case) {
	c.ID, c.Opened = s.in.CaseID, s.at
	if c.Owner == "" {
		c.Owner = Assay
	}
	s.Case, s.opened = &c, true
}

// close ends the node's case and remembers its cause, so that its return is known for what it is.
func (s *step) close(outcome string) {
	c := s.Case
	if c == nil {
		return
	}
	s.Past = slices.DeleteFunc(s.Past, func(p PastCause) bool {
		return s.at.Sub(p.Closed) > s.in.Policy.Lifecycle.RepeatWindow.D()
	})
	if c.Out && c.Cause != CauseOrder && c.Cause != CauseCannotScreen {
		s.Past = append(s.Past, PastCause{Cause: c.Cause, Part: c.Part, Rung: c.Rung, Closed: s.at})
	}
	if n := len(s.Past); n > maxPast {
		s.Past = s.Past[n-maxPast:]
	}
	if len(s.Past) == 0 {
		s.Past = nil
	}
	s.flushCase(nil)
	s.write(CloseCase{ID: c.ID, Outcome: outcome})
	s.Case, s.Reasons, s.ForeignResumes = nil, nil, 0
	s.unmark(MarkHeldBack)
}

// finish writes the case as it stands at the end of the step, if it changed.
func (s *step) finish(before *Case) {
	if s.Case == nil {
		return
	}
	s.Case.Next = next(s.Node)
	s.flushCase(before)
}

func (s *step) flushCase(before *Case) {
	if s.Case == nil {
		return
	}
	switch {
	case s.opened:
		s.write(OpenCase{Case: cloneCase(*s.Case), Findings: s.findings})
	case len(s.findings) > 0, before != nil && !reflect.DeepEqual(before, s.Case):
		s.write(UpdateCase{Case: cloneCase(*s.Case), Findings: s.findings})
	}
	s.opened, s.findings = false, nil
}

// Owner is who must move next on the node.
func Owner(n Node) string {
	switch {
	case n.Case != nil:
		return n.Case.Owner
	case len(n.Holds) > 0:
		return n.Holds[0].Owner
	}
	return Assay
}

func outcomeClean(level checks.Level) string { return fmt.Sprintf("clean %s screen", level) }
