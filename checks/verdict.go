// Package checks holds the words every part of assay shares: GPU, Finding, Verdict, Action, Report.
//
// A check turns a reading into findings; findings fold into a verdict. The package is pure: it
// reads no file, no clock and no environment.
package checks

import "fmt"

// A Verdict is what the evidence allows one to say. The zero value is Unknown: no evidence never
// certifies a node. Verdicts are not ordered; Fold combines them.
type Verdict uint8

const (
	Unknown       Verdict = iota // not tested: the tool could not run, was skipped, or printed junk
	Pass                         // read, judged, and within every limit
	Fail                         // read, judged, and beyond a limit
	NotApplicable                // this hardware does not have what the check looks at
)

var verdictNames = [...]string{"unknown", "pass", "fail", "not_applicable"}

func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return fmt.Sprintf("verdict(%d)", v)
}

// MarshalText writes the verdict's name. An out-of-range value is written as unknown.
func (v Verdict) MarshalText() ([]byte, error) {
	if int(v) < len(verdictNames) {
		return []byte(verdictNames[v]), nil
	}
	return []byte(verdictNames[Unknown]), nil
}

// UnmarshalText reads a verdict's name. A name it does not know is an error.
func (v *Verdict) UnmarshalText(b []byte) error {
	for i, n := range verdictNames {
		if n == string(b) {
			*v = Verdict(i)
			return nil
		}
	}
	return fmt.Errorf("verdict %q: want one of unknown, pass, fail, not_applicable", b)
}

// Fold combines the verdicts of several findings: any Fail is Fail; otherwise any Unknown, or no
// Pass at all, is Unknown; otherwise Pass.
func Fold(vs ...Verdict) Verdict {
	passed, unknown := false, false
	for _, v := range vs {
		switch v {
		case Fail:
			return Fail
		case Pass:
			passed = true
		case NotApplicable:
		default:
			unknown = true
		}
	}
	if unknown || !passed {
		return Unknown
	}
	return Pass
}
