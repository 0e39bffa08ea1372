package golden

import (
	"fmt"
	"slices"
	"strings"
)

// An Outcome is what a Result proves. The zero value is NotTested.
type Outcome uint8

const (
	NotTested Outcome = iota // some SM or kernel was not verified, or nothing ran
	Verified                 // every kernel that applies gave the golden on every SM
	Wrong                    // a block's output differed
)

var outcomeNames = [...]string{"not tested", "verified", "wrong"}

func (o Outcome) String() string { return outcomeNames[o] }

// A Verdict is an outcome with its reasons.
type Verdict struct {
	Outcome  Outcome
	Reason   string  // one line
	Grade    Grade   // of the worst mismatch, when Wrong
	Hard     bool    // reproduced at least three times, by a kernel of grade prod
	SM       int     // of the worst mismatch, -1 when none
	Kernel   string  // likewise
	Where    *Origin // likewise; nil when not localised
	Wrong    []int   // SMs that gave a wrong result, in order; a rerun counts as well
	Evidence string  // of the worst mismatch: what it was, as name=value words, with the replay
	Verified int     // blocks whose every word was checked and right
	Blocks   int     // how many there should have been: SMs times stages
	Copied   int     // copies whose every byte was checked and right
	Copies   int     // how many there should have been
}

// Reruns is how often a mismatch must come back, with the same seed on the same SM, to count as reproduced.
const Reruns = 3

// Judge gives the verdict on a result. Only a mismatch that was there again when the output was read anew, with inputs
// intact, speaks against the GPU; any other leaves it open.
func Judge(r Result, grades Grades) Verdict {
	v := Verdict{SM: -1}
	var gaps []string
	for _, s := range r.Stages {
		if s.Skip != "" {
			continue
		}
		if s.Copy != nil {
			v.Copied += s.Copy.Verified
			v.Copies += s.Copy.Copies
		} else {
			v.Blocks += r.GPU.SMs
			v.Verified += s.Covered()
		}
		if why := s.Gap(r.GPU.SMs); why != "" {
			gaps = append(gaps, fmt.Sprintf("%s: %s", s.Kernel, why))
		}
		grade := grades.Of(s.Digest, r.GPU.Capability)
		wrong := func(sm int, where *Origin, reason, seen string) {
			hard := grade == Prod && s.Reproduced(sm) >= Reruns
			if v.Outcome != Wrong || hard && !v.Hard || hard == v.Hard && grade > v.Grade {
				v.Outcome, v.Grade, v.Hard, v.SM, v.Kernel, v.Where, v.Reason, v.Evidence = Wrong, grade, hard, sm, s.Kernel, where, reason, seen
			}
		}
		if s.Copy != nil && s.Copy.Wrong != nil && s.Copy.Wrong.Reread && s.Copy.Wrong.Inputs {
			wrong(NoSM, nil, s.describeCopy(), "kernel="+s.Kernel)
		}
		for _, m := range s.SMs {
			if m.Mismatch != nil && m.Mismatch.Reread && m.Mismatch.Inputs {
				v.wrong(m.SM, s)
				wrong(m.SM, m.Mismatch.Where, s.describe(m), evidence(r, s, m))
			}
		}
	}
	switch {
	case v.Outcome == Wrong:
		switch v.Scope() {
		case ScopeTPC:
			v.Reason += fmt.Sprintf("; both SMs of TPC %d were wrong", v.SM/2)
		case ScopeGPU:
			v.Reason += fmt.Sprintf("; %d of %d SMs were wrong: not one SM, but what they share", len(v.Wrong), r.GPU.SMs)
		}
	case r.Err != "":
		v.Reason = r.Err
	case len(gaps) > 0:
		v.Reason = strings.Join(first(gaps, 3), "; ")
	case v.Blocks+v.Copies == 0:
		v.Reason = "no kernel ran"
	case v.Verified != v.Blocks || v.Copied != v.Copies:
		v.Reason = v.counted()
	default:
		v.Outcome = Verified
		v.Reason = v.counted()
	}
	return v
}

// counted says of how much is known what it gave.
func (v Verdict) counted() string {
	switch {
	case v.Copies == 0:
		return fmt.Sprintf("%d of %d blocks verified", v.Verified, v.Blocks)
	case v.Blocks == 0:
		return fmt.Sprintf("%d of %d copies verified", v.Copied, v.Copies)
	}
	return fmt.Sprintf("%d of %d blocks and %d of %d copies verified", v.Verified, v.Blocks, v.Copied, v.Copies)
}

// wrong notes an SM that was wrong, and those that were in the reruns after it.
func (v *Verdict) wrong(sm int, s Stage) {
	v.Wrong = append(v.Wrong, sm)
	for _, r := range s.Retests {
		v.Wrong = append(v.Wrong, r.Wrong...)
	}
	slices.Sort(v.Wrong)
	v.Wrong = slices.Compact(v.Wrong)
}

// A Scope is how much of a GPU a wrong result speaks against.
type Scope string

const (
	ScopeSM  Scope = "sm"  // one SM, over seeds and blocks
	ScopeTPC Scope = "tpc" // the two SMs of a TPC, which share what is around them
	ScopeGPU Scope = "gpu" // more: L2, memory, clocks, or the driver
)

// Scope says what is suspect. Source: the table of the reference on localisation; an SM number halved is its TPC, by inference.
func (v Verdict) Scope() Scope {
	switch n := len(v.Wrong); {
	case n <= 1:
		return ScopeSM
	case n == 2 && v.Wrong[0]/2 == v.Wrong[1]/2:
		return ScopeTPC
	}
	return ScopeGPU
}

// evidence is a mismatch as name=value words.
func evidence(r Result, s Stage, m SM) string {
	same, others, wrongOthers := 0, 0, 0
	for _, t := range s.Retests {
		if t.Seed == s.Seed {
			same++
		} else if others++; slices.Contains(t.Wrong, m.SM) {
			wrongOthers++
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "kernel=%s code=%s ran=%s seed=%d sm=%d tpc=%d words=%d/%d again=%d/%d other_seeds=%d/%d output=%s",
		s.Kernel, s.Digest, s.Ran(), s.Seed, m.SM, m.SM/2, m.Mismatch.Words, s.Words, s.Reproduced(m.SM), same, wrongOthers, others, m.Mismatch.Digest)
	if o := m.Mismatch.Where; o != nil {
		fmt.Fprintf(&b, " step=%d part=%d lane=%d word=%d expected=%08x got=%08x operands=%s", o.Step, o.Partition, o.Lane, o.Word, o.Expected, o.Got, words(o.Operands))
		if o.Stuck != nil {
			fmt.Fprintf(&b, " unit=%s bit=%d stuck=%d lanes=%s", o.Stuck.Unit, o.Stuck.Bit, o.Stuck.At, o.Stuck.Lane)
		}
	}
	fmt.Fprintf(&b, " replay=%s", ReplayOf(r, s, m))
	return b.String()
}

func words(ws []uint32) string {
	var out []string
	for _, w := range ws {
		out = append(out, fmt.Sprintf("%08x", w))
	}
	return strings.Join(out, ":")
}

func first(s []string, n int) []string {
	if len(s) > n {
		return append(slices.Clone(s[:n]), fmt.Sprintf("and %d more", len(s)-n))
	}
	return s
}

// Gap says why a stage does not speak for all SMs, or for all of its copies, empty when it does.
func (s Stage) Gap(sms int) string {
	switch {
	case s.Err != "":
		return s.Err
	case s.Copy != nil:
		return s.copyGap()
	case !s.Canary.Tried:
		return "no canary was planted"
	case !s.Canary.Seen:
		return fmt.Sprintf("the canary on SM %d, thread %d was not reported there and only there", s.Canary.SM, s.Canary.Thread)
	case s.Words < 1:
		return "no word was compared"
	}
	seen := map[int]bool{}
	for _, m := range s.SMs {
		switch {
		case m.SM < 0 || seen[m.SM]:
			return fmt.Sprintf("SM %d is reported twice or cannot be", m.SM)
		case m.Mismatch != nil && !m.Mismatch.Reread:
			return fmt.Sprintf("SM %d: the output differed, and not when it was copied again", m.SM)
		case m.Mismatch != nil && !m.Mismatch.Inputs:
			return fmt.Sprintf("SM %d: the output differed, and so did the inputs", m.SM)
		case m.Moved > 0 && m.Verified == 0:
			return fmt.Sprintf("SM %d: the block moved to another SM while it ran", m.SM)
		}
		seen[m.SM] = true
	}
	if n := s.Covered(); n != sms {
		return fmt.Sprintf("%d of %d SMs verified", n, sms)
	}
	return ""
}

func (s Stage) describe(m SM) string {
	text := fmt.Sprintf("%s gave a wrong result on SM %d: %d of %d words", s.Kernel, m.SM, m.Mismatch.Words, s.Words)
	if o := m.Mismatch.Where; o != nil {
		text += fmt.Sprintf("; first at step %d, partition %d, lane %d, bits %08x", o.Step, o.Partition, o.Lane, o.Expected^o.Got)
		if o.Stuck != nil {
			text += "; explained by " + o.Stuck.String()
		}
	}
	return text + s.again(m.SM)
}

// again says how often what was wrong came back.
func (s Stage) again(sm int) string {
	same := 0
	for _, r := range s.Retests {
		if r.Seed == s.Seed {
			same++
		}
	}
	return fmt.Sprintf("; again in %d of %d reruns", s.Reproduced(sm), same)
}
