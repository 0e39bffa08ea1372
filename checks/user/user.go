// Package user judges what a site's own executables say of the node.
//
// The contract: the executable gets no input and a small environment, says what it finds on standard output within its
// bounds, and ends in time. It speaks one of three formats: findings in JSON, one a line; the exit statuses of Nagios plugins; or
// any exit status but 0 for a fault. One that does not keep to the contract proves nothing: Unknown. None of its findings is
// hard: no site's script voids a certificate on its own word.
// Sources: monitoring-plugins.org, "Monitoring Plugins Development Guidelines" (exit statuses, performance data); sh(1) for
// 126, 127 and above.
package user

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

// ID is the catalog id of all user checks; each bears ID/NAME.
const ID = "user"

// CheckID is the check id of the user check with that name.
func CheckID(name string) string { return ID + "/" + name }

// An Outcome is how one run of an executable went.
type Outcome struct {
	Err      string `json:"err,omitempty"`       // it could not be run
	TimedOut bool   `json:"timed_out,omitempty"` // it passed its deadline and was ended
	Stuck    bool   `json:"stuck,omitempty"`     // it is there still, after SIGKILL
	Cut      bool   `json:"cut,omitempty"`       // it printed more than it may, and was ended
	Signal   string `json:"signal,omitempty"`    // the signal that ended it, by itself
	Exit     int    `json:"exit"`                // its exit status
	Stdout   string `json:"stdout,omitempty"`
	Stderr   string `json:"stderr,omitempty"` // its end
}

// Bounds on what is taken from one run.
const (
	maxFindings = 64
	maxReason   = 300 // characters
)

// Judge turns a run of the user check called name into findings about the node, or what the findings name. It does no I/O.
func Judge(node, name string, u policy.UserCheck, o Outcome) []checks.Finding {
	j := judge{node: node, id: CheckID(name)}
	switch {
	case o.Err != "":
		return j.one(checks.Unknown, checks.None, "not run: "+o.Err)
	case o.Stuck:
		return j.one(checks.Unknown, checks.Watch, "it is still there after SIGKILL")
	case o.TimedOut:
		return j.one(checks.Unknown, checks.None, fmt.Sprintf("did not end within %s", policy.Duration(u.TimeoutOr())))
	case o.Cut:
		return j.one(checks.Unknown, checks.None, fmt.Sprintf("printed more than %d bytes", u.OutputOr()))
	case o.Signal != "":
		return j.one(checks.Unknown, checks.None, "ended by "+o.Signal+said(o))
	}
	switch u.FormatOr() {
	case policy.FormatJSON:
		return j.json(o)
	case policy.FormatExit:
		return j.exit(o)
	}
	return j.nagios(o)
}

type judge struct{ node, id string }

func (j judge) finding(v checks.Verdict, a checks.Action, reason string) checks.Finding {
	return checks.Finding{Check: j.id, Subject: checks.Subject{Kind: checks.KindNode, Node: j.node}, Verdict: v, Action: a, Reason: clean(reason)}
}

func (j judge) one(v checks.Verdict, a checks.Action, reason string) []checks.Finding {
	return []checks.Finding{j.finding(v, a, reason)}
}

// nagios reads an exit status of a Nagios plugin. WARNING is watched: it is no fault yet.
func (j judge) nagios(o Outcome) []checks.Finding {
	text, _, _ := strings.Cut(firstLine(o.Stdout), "|") // performance data follow
	if strings.TrimSpace(text) == "" {
		text = fmt.Sprintf("exit status %d, and it says nothing", o.Exit)
	}
	switch o.Exit {
	case 0:
		return j.one(checks.Pass, checks.None, text)
	case 1:
		return j.one(checks.Pass, checks.Watch, text)
	case 2:
		return j.one(checks.Fail, checks.Drain, text)
	case 3:
		return j.one(checks.Unknown, checks.None, text)
	}
	return j.one(checks.Unknown, checks.None, fmt.Sprintf("exit status %d is none of a Nagios plugin's%s", o.Exit, said(o)))
}

// exit reads any exit status. 126 and 127 are a shell's for what could not be run, and what is above 128 is a signal.
func (j judge) exit(o Outcome) []checks.Finding {
	switch text := firstLine(o.Stdout); {
	case o.Exit == 0 && text == "":
		return j.one(checks.Pass, checks.None, "exit status 0")
	case o.Exit == 0:
		return j.one(checks.Pass, checks.None, text)
	case o.Exit >= 126 || o.Exit < 0:
		return j.one(checks.Unknown, checks.None, fmt.Sprintf("exit status %d: it could not do its work%s", o.Exit, said(o)))
	default:
		return j.one(checks.Fail, checks.Drain, fmt.Sprintf("exit status %d%s", o.Exit, said(o)))
	}
}

// A row is a finding as an executable may write it. What it may not decide is not read: the check's id, the node, whether
// a fault is hard, and when it was.
type row struct {
	Verdict  *checks.Verdict `json:"verdict"`
	Action   *checks.Action  `json:"action"`
	Code     int             `json:"code"`
	Reason   string          `json:"reason"`
	Evidence string          `json:"evidence"`
	Count    int             `json:"count"`
	Subject  *checks.Subject `json:"subject"`
}

// json reads findings, one a line. A fault without an action asks for a drain; one whose action suspects no hardware is no
// fault and does not apply.
func (j judge) json(o Outcome) []checks.Finding {
	var out []checks.Finding
	lines := 0
	for line := range strings.Lines(o.Stdout) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if lines++; lines > maxFindings {
			out = append(out, j.finding(checks.Unknown, checks.None, fmt.Sprintf("prints more than %d findings", maxFindings)))
			break
		}
		f, err := j.row(line)
		if err != nil {
			f = j.finding(checks.Unknown, checks.None, fmt.Sprintf("line %d is no finding: %v", lines, err))
			f.Evidence = clean(line)
		}
		out = append(out, f)
	}
	if lines == 0 {
		out = j.one(checks.Unknown, checks.None, "prints no finding"+said(o))
	}
	if o.Exit != 0 {
		out = append(out, j.finding(checks.Unknown, checks.None, fmt.Sprintf("ended with exit status %d%s", o.Exit, said(o))))
	}
	return out
}

var kinds = map[checks.Kind]bool{
	checks.KindNode: true, checks.KindGPU: true, checks.KindMIG: true, checks.KindLink: true, checks.KindPort: true, checks.KindSM: true, checks.KindSwitch: true,
}

func (j judge) row(line string) (checks.Finding, error) {
	var r row
	d := json.NewDecoder(bytes.NewReader([]byte(line)))
	if err := d.Decode(&r); err != nil {
		return checks.Finding{}, err
	}
	if d.More() {
		return checks.Finding{}, fmt.Errorf("more follows the object")
	}
	if r.Verdict == nil {
		return checks.Finding{}, fmt.Errorf("it has no verdict")
	}
	f := j.finding(*r.Verdict, checks.None, r.Reason)
	f.Code, f.Count, f.Evidence = max(r.Code, 0), max(r.Count, 0), clean(r.Evidence)
	if f.Reason == "" {
		f.Reason = "it gives no reason"
	}
	if r.Action != nil {
		f.Action = *r.Action
	} else if f.Verdict == checks.Fail {
		f.Action = checks.Drain
	}
	if f.Verdict == checks.Fail && f.Action.Harmless() {
		f.Verdict = checks.NotApplicable
	}
	if r.Subject != nil {
		if !kinds[r.Subject.Kind] {
			return checks.Finding{}, fmt.Errorf("subject kind %q: want one of node, gpu, mig, link, port, sm, switch", r.Subject.Kind)
		}
		f.Subject = *r.Subject
		f.Subject.Node = j.node
		for _, s := range []*string{&f.Subject.GPUUUID, &f.Subject.PCI, &f.Subject.MIG, &f.Subject.Port} {
			*s = clean(*s)
		}
	}
	return f, nil
}

// said adds what the executable said last on standard error or, where it said nothing there, first on standard output.
func said(o Outcome) string {
	text := strings.TrimSpace(o.Stderr)
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		text = text[i+1:]
	}
	if text == "" {
		text = firstLine(o.Stdout)
	}
	if text == "" {
		return ""
	}
	return ": " + text
}

// firstLine is the first line that holds anything.
func firstLine(s string) string {
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}

// clean makes a text one line of printable characters, of bounded length: a script may print anything.
func clean(s string) string {
	var b strings.Builder
	n := 0
	for _, c := range strings.TrimSpace(strings.ToValidUTF8(s, "�")) {
		if n++; n > maxReason {
			b.WriteString("…")
			break
		}
		switch {
		case unicode.IsSpace(c):
			c = ' '
		case !unicode.IsPrint(c):
			c = '�'
		}
		b.WriteRune(c)
	}
	return b.String()
}
