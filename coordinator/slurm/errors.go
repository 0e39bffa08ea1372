package slurm

import (
	"fmt"
	"net/http"
)

// An UnavailableError says that Slurm did not answer: nothing is known about what it did.
type UnavailableError struct {
	Verb string
	Msg  string
	Err  error
}

func (e *UnavailableError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("slurm %s: %s", e.Verb, e.Msg)
	}
	return fmt.Sprintf("slurm %s: %s: %v", e.Verb, e.Msg, e.Err)
}
func (e *UnavailableError) Unwrap() error { return e.Err }

// Hint says where to look.
func (e *UnavailableError) Hint() string {
	return "is slurmctld up, and munge? try `scontrol ping` on this host"
}

// Status is the HTTP status.
func (e *UnavailableError) Status() int { return http.StatusServiceUnavailable }

// A RefusedError says that Slurm, or a rule of ours, refuses to do it. It will be refused again until something changes.
type RefusedError struct {
	Verb   string
	Target string // node, hostlist or job
	Msg    string
	Advice string // what to do; empty: the usual
	Err    error
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("slurm %s %s: refused: %s", e.Verb, e.Target, e.Msg)
}
func (e *RefusedError) Unwrap() error { return e.Err }

// Hint says what to do about it.
func (e *RefusedError) Hint() string {
	if e.Advice != "" {
		return e.Advice
	}
	return "run assayd as SlurmUser, root or a user with AdminLevel Admin, and check the name"
}

// Status is the HTTP status.
func (e *RefusedError) Status() int { return http.StatusConflict }

// A ChangedError says that what was expected before a change no longer holds. Nothing was done.
type ChangedError struct {
	Verb   string
	Target string
	What   string // "reason is \"bad fan\", not \"assay:Q-7F3K …\""
	Done   bool   // what was wanted stands: by an earlier try of ours whose answer was lost, or by somebody else
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("slurm %s %s: skipped: %s", e.Verb, e.Target, e.What)
}

// Hint says who has the say.
func (e *ChangedError) Hint() string {
	return "somebody else changed it; look with `scontrol show node` or `scontrol show job`"
}

// Status is the HTTP status.
func (e *ChangedError) Status() int { return http.StatusConflict }

// A FormatError says that a tool printed what we cannot read.
type FormatError struct {
	Verb string
	Line string // cut to 200 bytes
	Msg  string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("slurm %s: %s in %q", e.Verb, e.Msg, clip(e.Line))
}

// Hint asks for the line.
func (e *FormatError) Hint() string { return "an unknown Slurm release? please report this line" }

func clip(s string) string {
	if len(s) > 200 {
		return s[:200] + "…"
	}
	return s
}
